"""What known words share with a new one, by definitions of one line, and how measures weigh it."""

import random

import pytest

from onmt_entmax.strings import likeness
from onmt_entmax.strings.likeness import KnownWords, Likeness, Shared
from onmt_entmax.strings.proportions import common_subsequence


def random_words(count: int, seed: int) -> list[str]:
    """Return random words of few different letters, so that they have units in common."""
    generator = random.Random(seed)
    return ["".join(generator.choices("abc", k=generator.randint(1, 9))) for _ in range(count)]


KNOWN = random_words(40, seed=5)
NEW = [
    *random_words(20, seed=6),
    "",  # has no unit
    "xyz",  # has no unit that a known word has
    "xay",
    *KNOWN[:5],
]
each_new_word = pytest.mark.parametrize("new", NEW)


@pytest.fixture(scope="module")
def known() -> KnownWords:
    return KnownWords(KNOWN)


def first_in_common(word: str, other: str) -> int:
    """Return how many first letters two words have in common."""
    sizes = range(min(len(word), len(other)), -1, -1)
    return next(size for size in sizes if word[:size] == other[:size])


@each_new_word
def test_first_units_in_common_are_counted(known: KnownWords, new: str) -> None:
    assert known.shared(new).first.tolist() == [first_in_common(word, new) for word in KNOWN]


@each_new_word
def test_last_units_in_common_are_counted(known: KnownWords, new: str) -> None:
    expected = [first_in_common(word[::-1], new[::-1]) for word in KNOWN]
    assert known.shared(new).last.tolist() == expected


@each_new_word
def test_units_of_a_longest_common_subsequence_are_counted(known: KnownWords, new: str) -> None:
    expected = [len(common_subsequence(word, new)) for word in KNOWN]
    assert known.shared(new).anywhere.tolist() == expected


@each_new_word
def test_the_difference_of_the_lengths_is_counted(known: KnownWords, new: str) -> None:
    assert known.shared(new).difference.tolist() == [abs(len(word) - len(new)) for word in KNOWN]


# --- bounds ----------------------------------------------------------------------------------


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


def test_the_places_of_a_limited_number_of_units_are_cached() -> None:
    """A script may have thousands of units, each of which needs a number for each known word."""
    units = [str(number) for number in range(1000)]
    known = KnownWords([units])
    for unit in units:
        known.shared([unit])
    assert known._places_of.cache_info().currsize == likeness._CACHED_UNITS


# --- measures --------------------------------------------------------------------------------


def test_a_likeness_weighs_what_is_shared() -> None:
    """Of `abcde` and `axcdde`: d and e are last, a is first, and c is inside as well."""
    shared = KnownWords(["abcde"]).shared("axcdde")
    assert Shared(*(numbers.item() for numbers in shared)) == Shared(
        last=2, first=1, anywhere=4, difference=1
    )
    weights = Likeness(inside=0.5, first=0.25, difference=0.125)
    assert weights.of(shared).tolist() == [2 + 0.5 * 2 + 0.25 * 1 - 0.125 * 1]
