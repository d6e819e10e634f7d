"""Likeness of words: numbers of units in common, compared with definitions of one line."""

import random

import pytest

from onmt_entmax.strings.likeness import KnownWords, Likeness, Shared
from onmt_entmax.strings.proportions import common_subsequence


def words(count: int) -> list[str]:
    """Return random words of few letters, so that they have units in common."""
    generator = random.Random(5)
    return ["".join(generator.choices("abc", k=generator.randint(1, 9))) for _ in range(count)]


def first_in_common(word: str, other: str) -> int:
    sizes = range(min(len(word), len(other)), -1, -1)
    return next(size for size in sizes if word[:size] == other[:size])


KNOWN = words(40)
# One has no unit, one units that no known word has, and the last are known.
NEW = [*words(60)[40:], "", "xyz", "xay", *KNOWN[:5]]


@pytest.fixture(scope="module")
def known() -> KnownWords:
    return KnownWords(KNOWN)


@pytest.mark.parametrize("new", NEW)
def test_first_units_in_common(known: KnownWords, new: str) -> None:
    assert known.shared(new).first.tolist() == [first_in_common(word, new) for word in KNOWN]


@pytest.mark.parametrize("new", NEW)
def test_last_units_in_common(known: KnownWords, new: str) -> None:
    expected = [first_in_common(word[::-1], new[::-1]) for word in KNOWN]
    assert known.shared(new).last.tolist() == expected


@pytest.mark.parametrize("new", NEW)
def test_units_of_a_longest_common_subsequence(known: KnownWords, new: str) -> None:
    expected = [len(common_subsequence(word, new)) for word in KNOWN]
    assert known.shared(new).anywhere.tolist() == expected


@pytest.mark.parametrize("new", NEW)
def test_differences_of_lengths(known: KnownWords, new: str) -> None:
    assert known.shared(new).difference.tolist() == [abs(len(word) - len(new)) for word in KNOWN]


@pytest.mark.parametrize(
    ("word", "new", "expected"),
    [
        pytest.param("ab" * 32, "b" * 64, 32, id="64 units"),
        pytest.param("c" + "ab" * 32, "c" + "b" * 64, 32, id="the first of 65 units is left out"),
        pytest.param("ab" * 50, "ab" * 50, 64, id="the same 100 units"),
    ],
)
def test_at_most_64_units_are_in_a_subsequence(word: str, new: str, expected: int) -> None:
    assert KnownWords([word]).shared(new).anywhere.tolist() == [expected]


def test_at_most_64_units_are_in_common_at_either_end() -> None:
    shared = KnownWords(["a" * 100]).shared("a" * 90)
    assert (shared.first.item(), shared.last.item()) == (64, 64)


def test_differences_of_lengths_count_up_to_64() -> None:
    assert KnownWords(["a" * 63, "a" * 65]).shared("").difference.tolist() == [63, 64]


def test_few_arrays_of_units_are_kept() -> None:
    """An alphabet may have thousands of units."""
    known = KnownWords(["abc"])
    for unit in range(1000):
        known.shared([str(unit), "a"])
    assert known._places_of.cache_info().currsize < 200


def test_a_likeness_weighs_what_is_shared() -> None:
    """Of `abcde` and `axcdde`: e and d are last, a is first, c is inside as well."""
    shared = KnownWords(["abcde"]).shared("axcdde")
    assert Shared(*(numbers.item() for numbers in shared)) == Shared(2, 1, 4, 1)
    likeness = Likeness(inside=0.5, first=0.25, difference=0.125)
    assert likeness.of(shared).tolist() == [2 + 0.5 * 2 + 0.25 * 1 - 0.125 * 1]
