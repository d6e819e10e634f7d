"""A slow reference implementation of the edit distance."""

from collections.abc import Sequence
from functools import cache


def edit_distance(first: Sequence[object], second: Sequence[object]) -> int:
    """Return Levenshtein's distance of two sequences, by its recursive definition."""

    @cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        substitution = 0 if first[i - 1] == second[j - 1] else 1
        return min(
            distance(i - 1, j - 1) + substitution, distance(i - 1, j) + 1, distance(i, j - 1) + 1
        )

    return distance(len(first), len(second))
