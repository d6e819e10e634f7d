"""The edit distance of `search.mbr`, against its definition."""

import functools

from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.search.mbr import edit_distance

TEXTS = st.text(alphabet="abcé", max_size=7)


@given(TEXTS, TEXTS)
def test_edit_distance_is_the_recursive_definition(first: str, second: str) -> None:
    @functools.cache
    def distance(i: int, j: int) -> int:
        """Return the distance of the first i characters of one and j of the other."""
        if not i or not j:
            return i + j
        substitution = 0 if first[i - 1] == second[j - 1] else 1
        return min(
            distance(i - 1, j - 1) + substitution, distance(i - 1, j) + 1, distance(i, j - 1) + 1
        )

    assert edit_distance(first, second) == distance(len(first), len(second))
