"""Arrays of a search: their types, and ranks and largest values within groups."""

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
        turn: `(n,)`, if given, comes before the score: smaller numbers first.

    Returns:
        The order `(n,)`, and `(n,)` the rank, from 0, of each item of that order in its group.
    """
    order = np.lexsort((-score, group) if turn is None else (-score, turn, group))
    ordered = group[order]
    return order, np.arange(len(ordered)) - np.searchsorted(ordered, ordered)


def rank_in_turns(group: Ints, distance: Ints, score: Floats) -> tuple[Ints, Ints]:
    """Sort items as `rank_within`, but let the best of each distance come in turn.

    With a, b, ... of distance 0 and x, y, ... of several distances above it, each from the best
    score down, the order within a group is

        turn    0     1      2     3      4    ...
        items   a   all x    b   all y    c    ...

    Args:
        group: `(n,)` group of each item.
        distance: `(n,)`, at least 0.
        score: `(n,)`.

    Returns:
        As `rank_within`.
    """
    distances = distance.max(initial=0) + 1
    order, rank = rank_within(group * distances + distance, score)  # within group and distance
    turn = np.empty_like(group)
    turn[order] = 2 * rank + (distance[order] > 0)
    return rank_within(group, score, turn)


def largest_within(group: Ints, score: Floats, groups: int) -> Floats:
    """Return the largest score of each group `(groups,)`; -inf for an empty group."""
    largest = np.full(groups, -np.inf)
    np.maximum.at(largest, group, score)
    return largest
