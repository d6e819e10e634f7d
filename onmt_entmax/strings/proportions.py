"""Proportional analogies: a new source is to its target as a known source to the known target.

The new source is the known one with some units replaced. `fourth_term` replaces the same units in
the known target, wherever they stand there:

    Hund       : Hunde         =  Mund      : ?    H -> M                            Munde
    kataba     : yaktubu       =  qatala    : ?    k -> q, b -> l                    yaqtulu
    anrufen    : rief an       =  abrufen   : ?    an -> ab                          rief ab

These are the analogies of Lepage (1998, "Solving Analogies on Words: An Algorithm"). That method
needs no alignments, but all units of the known source must be in its target. Here some may be
missing: a longest common subsequence aligns the two sources, and the known source with its target.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, takewhile
from typing import NamedTuple

Units = tuple[str, ...]
_MOST_CELLS = 10_000
"""Most cells of an alignment's table: 100 by 100 units take about a millisecond"""


class Replacement(NamedTuple):
    """Units of a known source in whose place a new source has other units.

    Attributes:
        start: index of the first of them.
        end: index behind the last of them; equal to `start` if units are only inserted.
        units: those of the new source; empty if units are only left out.
    """

    start: int
    end: int
    units: Units


def fourth_term(source: Units, known_source: Units, known_target: Units) -> Units | None:
    """Return the fourth term of the analogy known_source : known_target = source : ?

    Args:
        source: units of the new source.
        known_source: units of the source of a training pair.
        known_target: units of its target.

    Returns:
        The known target after the replacements that turn the known source into the new one. If it
        lacks some of the units to replace, only the beginning by which the sources differ is
        replaced as a whole. None if it lacks this, too, or if nothing would be left.
    """
    places = dict(common_subsequence(known_source, known_target))
    output: list[Units] = [(unit,) for unit in known_target]  # at each place of the known target
    for replacement in replacements(known_source, source):
        if not _replace(output, replacement, places):
            return _with_new_beginning(source, known_source, known_target)
    return tuple(chain.from_iterable(output)) or None


def _replace(output: list[Units], replacement: Replacement, places: Mapping[int, int]) -> bool:
    """Replace units of a known target; return whether it has them.

    New units are inserted behind the unit that precedes them in the source, or else in front of the
    unit that follows. If as many units replace the old ones, each replaces one, even if these do
    not stand together in the target. If fewer or more do, the old ones must stand together.

    Args:
        output: the units at each place of the known target; changed in place.
        replacement: the replacement in the known source.
        places: for each unit of the known source that the known target has, its place there.
    """
    start, end, units = replacement
    if start == end:
        if start - 1 in places:
            output[places[start - 1]] += units
        elif start in places:
            output[places[start]] = units + output[places[start]]
        return start - 1 in places or start in places
    replaced = [places[index] for index in range(start, end) if index in places]
    if len(replaced) < end - start:
        return False
    first, last = replaced[0], replaced[-1]
    if len(units) == len(replaced):
        for place, unit in zip(replaced, units, strict=True):
            output[place] = (unit,)
        return True
    if last - first >= len(replaced):
        return False
    output[first : last + 1] = [units, *[()] * (last - first)]
    return True


def _with_new_beginning(source: Units, known_source: Units, known_target: Units) -> Units | None:
    """Return a known target with the beginning of a new source in place of the known one's.

    The beginnings end where the sources start to agree up to their ends. Returns None if the known
    target does not contain the beginning of the known source, or if nothing would be left.
    """
    common = _first_in_common(source[::-1], known_source[::-1])
    beginning, replaced = source[: len(source) - common], known_source[: len(known_source) - common]
    size = len(replaced)
    for start in range(len(known_target) - size + 1):
        if known_target[start : start + size] == replaced:
            return known_target[:start] + beginning + known_target[start + size :] or None
    return None


def replacements(known_source: Units, source: Units) -> Iterator[Replacement]:
    """Yield the replacements that make a new source of a known one, from left to right."""
    known_begin = begin = 0
    ends = (len(known_source), len(source))
    for known_index, index in [*common_subsequence(known_source, source), ends]:
        if known_index > known_begin or index > begin:
            yield Replacement(known_begin, known_index, source[begin:index])
        known_begin, begin = known_index + 1, index + 1


def common_subsequence(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """Return a longest common subsequence: the indices of its units in both sequences.

    The time is quadratic in what lies between the common first and last units. If that is too long,
    with more than `_MOST_CELLS` cells, it is not aligned.
    """
    # Units in common at both ends are in some longest common subsequence.
    end = _first_in_common(first[::-1], second[::-1])
    begin = _first_in_common(first[: len(first) - end], second[: len(second) - end])
    middle: list[tuple[int, int]] = []
    if (len(first) - begin - end) * (len(second) - begin - end) <= _MOST_CELLS:
        middle = _aligned(first[begin : len(first) - end], second[begin : len(second) - end])
    return [
        *((index, index) for index in range(begin)),
        *((begin + i, begin + j) for i, j in middle),
        *((len(first) - left, len(second) - left) for left in range(end, 0, -1)),
    ]


def _aligned(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """Return a longest common subsequence as `common_subsequence` does, for any lengths."""
    # lengths[i][j]: length of a longest common subsequence of the first i and the first j units.
    lengths = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, unit in enumerate(first, 1):
        row, above = lengths[i], lengths[i - 1]
        for j, other in enumerate(second, 1):
            if unit == other:
                row[j] = above[j - 1] + 1
            else:
                row[j] = above[j] if above[j] > row[j - 1] else row[j - 1]  # faster than max
    pairs: list[tuple[int, int]] = []
    i, j = len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif lengths[i - 1][j] >= lengths[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return pairs[::-1]


def _first_in_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many first units two sequences have in common."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
