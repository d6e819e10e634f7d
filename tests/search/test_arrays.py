"""Items in groups, as hypotheses in sentences: their ranks, and the largest score of each group."""

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.search.arrays import largest_within, rank_within

GROUPS = 4


class Item(NamedTuple):
    """A member of a group, from 0 to 3."""

    group: int
    score: float


ITEMS = st.lists(st.builds(Item, st.integers(0, GROUPS - 1), st.floats(-5, 5)), max_size=30)


def as_arrays(items: list[Item]) -> tuple[np.ndarray, np.ndarray]:
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
