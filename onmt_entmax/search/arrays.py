"""Arrays of a search: their types, and ranks, counts and largest values within groups."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def rank_within(group: Ints, score: Floats, turn: Ints | None = None) -> tuple[Ints, Ints]:
    """Sort items by group, and within a group by score, best first; ties keep their order.

    Args:
        group: `(n,)` group of each item.
        score: `(n,)`.
        turn: `(n,)`; if given, items are sorted by it first, smaller numbers first, and then by
            score.

    Returns:
        The order `(n,)`, and `(n,)` the rank, from 0, of each item of that order in its group.
    """
    order = np.lexsort((-score, group) if turn is None else (-score, turn, group))
    ordered = group[order]
    return order, np.arange(len(ordered)) - np.searchsorted(ordered, ordered)


def rank_in_turns(group: Ints, distance: Ints, score: Floats) -> tuple[Ints, Ints]:
    """Sort items as `rank_within`, but let the best items of each distance take turns.

    With a, b, ... of distance 0 and x, y, ... of several distances above it, each from the best
    score down, the order within a group is

        turn    0     1      2     3      4    ...
        items   a   all x    b   all y    c    ...

    Within an odd turn, the items of several distances are sorted by score.

    Args:
        group: `(n,)` group of each item.
        distance: `(n,)`, at least 0.
        score: `(n,)`.

    Returns:
        As `rank_within`.
    """
    distances = distance.max(initial=0) + 1
    key = group * distances + distance  # one number for each group and distance
    order, rank = rank_within(key, score)
    turn = np.empty_like(group)
    turn[order] = 2 * rank + (distance[order] > 0)
    return rank_within(group, score, turn)


def count_within(group: Ints, groups: int, amount: Ints | None = None) -> list[int]:
    """Return how many items each group has, or the sum of their amounts.

    Args:
        group: `(n,)` group of each item.
        groups: number of groups.
        amount: `(n,)`; None: each item counts as 1.
    """
    return np.bincount(group, amount, groups).astype(np.int64).tolist()


def largest_within(group: Ints, score: Floats, groups: int) -> Floats:
    """Return the largest score of each group `(groups,)`; -inf for an empty group."""
    largest = np.full(groups, -np.inf)
    np.maximum.at(largest, group, score)
    return largest
