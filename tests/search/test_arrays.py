"""Items in groups, as candidates of sentences: their order, ranks, numbers and largest scores."""

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.search.arrays import (
    Floats,
    Ints,
    count_within,
    largest_within,
    rank_in_turns,
    rank_within,
)

GROUPS = 4


class Item(NamedTuple):
    """A member of a group, from 0 to 3."""

    group: int
    score: float


ITEMS = st.lists(
    st.builds(Item, st.integers(0, GROUPS - 1), st.floats(-5, 5)), min_size=1, max_size=30
)


def as_arrays(items: list[Item]) -> tuple[Ints, Floats]:
    """Return the groups of items and their scores as arrays."""
    groups = np.array([item.group for item in items], dtype=np.int64)
    return groups, np.array([item.score for item in items], dtype=np.float64)


@given(ITEMS)
def test_items_are_ordered_by_group_and_falling_score(items: list[Item]) -> None:
    """Items of equal scores keep their order."""
    order, _ = rank_within(*as_arrays(items))
    expected = sorted(range(len(items)), key=lambda i: (items[i].group, -items[i].score, i))
    assert order.tolist() == expected


@given(ITEMS)
def test_ranks_are_counted_from_0_in_each_group(items: list[Item]) -> None:
    order, ranks = rank_within(*as_arrays(items))
    for group in range(GROUPS):
        of_group = [rank for i, rank in zip(order, ranks, strict=True) if items[i].group == group]
        assert of_group == list(range(len(of_group)))


@given(ITEMS)
def test_each_group_has_its_largest_score(items: list[Item]) -> None:
    """An empty group has minus infinity."""
    largest = largest_within(*as_arrays(items), GROUPS)
    for group in range(GROUPS):
        scores = [item.score for item in items if item.group == group]
        assert largest[group] == max(scores, default=-np.inf)


def test_no_items_have_no_ranks() -> None:
    order, ranks = rank_within(*as_arrays([]))
    assert len(order) == len(ranks) == 0


def test_items_are_counted_in_each_group() -> None:
    assert count_within(np.array([2, 0, 2]), GROUPS) == [1, 0, 2, 0]


def test_amounts_are_summed_in_each_group() -> None:
    amounts = np.array([5, 1, 3])
    assert count_within(np.array([2, 0, 2]), GROUPS, amounts) == [1, 0, 5 + 3, 0]


# --- turns -----------------------------------------------------------------------------------


class Placed(NamedTuple):
    """An item of a single group, at a distance from its goal."""

    name: str
    distance: int
    score: float


def names_in_turns(items: list[Placed]) -> str:
    """Return the names of items in the order of their turns."""
    order, _ = rank_in_turns(
        group=np.zeros(len(items), dtype=np.int64),
        distance=np.array([item.distance for item in items]),
        score=np.array([item.score for item in items]),
    )
    return "".join(items[index].name for index in order)


def test_items_at_the_goal_and_others_take_turns() -> None:
    """One of the former, then the best of each distance of the latter."""
    at_the_goal = [Placed("a", 0, -1.0), Placed("b", 0, -2.0), Placed("c", 0, -3.0)]
    one_away = [Placed("x", 1, -4.0), Placed("y", 1, -6.0)]
    two_away = [Placed("z", 2, -5.0)]
    assert names_in_turns([*two_away, *one_away, *at_the_goal]) == "a" + "xz" + "b" + "y" + "c"


def test_in_one_turn_the_more_probable_distance_is_first() -> None:
    assert names_in_turns([Placed("near", 1, -2.0), Placed("far", 9, -1.0)]) == "farnear"


def test_groups_take_their_turns_apart() -> None:
    """Items 0 and 2 are of one group, and 1 of another."""
    order, ranks = rank_in_turns(
        group=np.array([1, 0, 1]), distance=np.array([3, 2, 0]), score=np.array([-1.0, -2.0, -3.0])
    )
    assert (order.tolist(), ranks.tolist()) == ([1, 2, 0], [0, 0, 1])
