"""Proportional analogies: the fourth term, and the alignments behind it."""

import itertools

import pytest

from onmt_entmax.strings.proportions import (
    Replacement,
    common_subsequence,
    fourth_term,
    replacements,
)

# --- the fourth term -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "target", "source", "expected"),
    [
        pytest.param("Jahreszeit", "Jahreszeiten", "Eisenzeit", "Eisenzeiten", id="another stem"),
        pytest.param("anrufen", "rief an", "abrufen", "rief ab", id="moved to the end"),
        pytest.param("kataba", "yaktubu", "qatala", "yaqtulu", id="consonants of a root"),
        pytest.param("abwaschen", "abgewaschen", "waschen", "gewaschen", id="a shorter word"),
        pytest.param("waschen", "gewaschen", "abwaschen", "geabwaschen", id="a longer word"),
        pytest.param("haus", "hauses", "haus", "hauses", id="the same word"),
        pytest.param("lag", "legen", "lang", "lengen", id="units inside a stem"),
        pytest.param("lag", "lagt", "lagx", "lagxt", id="units before an ending"),
    ],
)
def test_the_fourth_term_is_the_known_target_with_units_replaced(
    known: str, target: str, source: str, expected: str
) -> None:
    assert fourth_term(tuple(source), tuple(known), tuple(target)) == tuple(expected)


@pytest.mark.parametrize(
    ("known", "target", "source"),
    [
        pytest.param("gut", "besser", "hut", id="a replaced unit that the target lacks"),
        pytest.param("abc", "bc", "xyc", id="two replaced units, one of which the target lacks"),
        pytest.param("xya", "xzya", "wa", id="one unit for two that no longer stand together"),
        pytest.param("a", "b", "ac", id="a unit beside one that the target lacks"),
        pytest.param("ab", "a", "b", id="nothing would be left"),
    ],
)
def test_there_is_no_fourth_term(known: str, target: str, source: str) -> None:
    assert fourth_term(tuple(source), tuple(known), tuple(target)) is None


# --- what replacements make of the known source ------------------------------------------------


def test_replacements_name_the_units_of_the_known_source() -> None:
    found = list(replacements(tuple("abcde"), tuple("xbdeyz")))
    assert found == [
        Replacement(0, 1, ("x",)),
        Replacement(2, 3, ()),
        Replacement(5, 5, ("y", "z")),
    ]


@pytest.mark.parametrize("known", ["", "a", "ab", "abca", "bcb"])
@pytest.mark.parametrize("source", ["", "a", "ba", "abab", "cab"])
def test_replacements_make_the_new_source_of_the_known_one(known: str, source: str) -> None:
    units = list(known)
    for start, end, new in reversed(list(replacements(tuple(known), tuple(source)))):
        units[start:end] = new
    assert "".join(units) == source


# --- longest common subsequences ---------------------------------------------------------------


def longest(first: str, second: str) -> int:
    """Return the length of a longest common subsequence, by trying all subsequences."""
    sizes = range(min(len(first), len(second)), -1, -1)
    of_second = {size: set(itertools.combinations(second, size)) for size in sizes}
    return next(
        size for size in sizes if of_second[size] & set(itertools.combinations(first, size))
    )


WORDS = ["", "a", "ab", "ba", "abcab", "bacbb", "ccab"]


@pytest.mark.parametrize("first", WORDS)
@pytest.mark.parametrize("second", WORDS)
def test_a_common_subsequence_is_longest(first: str, second: str) -> None:
    pairs = common_subsequence(first, second)
    assert len(pairs) == longest(first, second)


@pytest.mark.parametrize("first", WORDS)
@pytest.mark.parametrize("second", WORDS)
def test_a_common_subsequence_pairs_equal_units(first: str, second: str) -> None:
    pairs = common_subsequence(first, second)
    assert [first[i] for i, _ in pairs] == [second[j] for _, j in pairs]


@pytest.mark.parametrize("first", WORDS)
@pytest.mark.parametrize("second", WORDS)
def test_a_common_subsequence_keeps_the_order_of_both(first: str, second: str) -> None:
    """No unit is in two pairs."""
    pairs = common_subsequence(first, second)
    assert [i for i, _ in pairs] == sorted({i for i, _ in pairs})
    assert [j for _, j in pairs] == sorted({j for _, j in pairs})


def test_units_in_common_at_the_end_come_before_those_at_the_beginning() -> None:
    assert common_subsequence("aba", "a") == [(2, 0)]


def test_long_sequences_are_aligned_at_their_ends_alone() -> None:
    """A table of 5,000 by 5,000 would take seconds."""
    first, second = "ab" + "xy" * 2500 + "c", "ab" + "yx" * 2500 + "zc"
    last = (len(first) - 1, len(second) - 1)
    assert common_subsequence(first, second) == [(0, 0), (1, 1), last]
