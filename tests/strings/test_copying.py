"""Placeholders of rare and unknown symbols, and which data they suit."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.strings.copying import MOST, PLACEHOLDERS, copies_of, useful_frequency

WORDS = st.lists(st.sampled_from("abcdefg"), max_size=6)
FREQUENT = frozenset("abc")


def test_placeholders_are_in_order_of_first_occurrence() -> None:
    copies = copies_of("xaybx", FREQUENT)
    assert copies.symbols == {"<copy1>": "x", "<copy2>": "y"}
    assert copies.hide("xaybx") == ["<copy1>", "a", "<copy2>", "b", "<copy1>"]


def test_a_source_can_have_20_copied_symbols() -> None:
    """docs/guide-tables.md names this number."""
    assert tuple(f"<copy{number}>" for number in range(1, 21)) == PLACEHOLDERS


@given(WORDS, WORDS)
def test_showing_is_the_inverse_of_hiding(source: list[str], target: list[str]) -> None:
    copies = copies_of(source, FREQUENT)
    assert copies.show(copies.hide(target)) == target


@given(WORDS)
def test_different_allowed_outputs_are_different_texts(source: list[str]) -> None:
    """The property on which certificates rest: see docs/proofs.md."""
    copies = copies_of(source, FREQUENT)
    vocabulary = [*"abcdef", *PLACEHOLDERS[:4]]
    allowed = set(vocabulary) - set(copies.excluded(vocabulary))
    outputs = list(itertools.product(sorted(allowed), repeat=2))
    assert len({tuple(copies.show(output)) for output in outputs}) == len(outputs)


@given(WORDS, WORDS)
def test_the_encoded_target_is_allowed(source: list[str], target: list[str]) -> None:
    copies = copies_of(source, FREQUENT)
    assert not set(copies.hide(target)) & set(copies.excluded([*"abcdefg", *PLACEHOLDERS]))


def test_what_the_source_lacks_and_what_it_copies_is_excluded() -> None:
    copies = copies_of("xa", FREQUENT)
    assert set(copies.excluded(["a", "x", "y", "<copy1>", "<copy2>"])) == {"x", "<copy2>"}


def test_more_symbols_than_placeholders_stay_unknown() -> None:
    source = [chr(0x4E00 + n) for n in range(MOST + 1)]
    assert copies_of(source, FREQUENT).hide(source)[-1] == source[-1]


def test_an_unknown_token_is_not_copied() -> None:
    assert copies_of(["<unk>", "a"], FREQUENT).symbols == {}


# --- which data copying suits ------------------------------------------------------------------

COMMON = ("ab", "ab")
"""A pair of frequent symbols"""


@pytest.mark.parametrize(
    ("pairs", "frequency"),
    [
        pytest.param(
            [*[COMMON] * 300, ("ax", "ax"), ("ay", "ay"), ("az", "a")],
            3,  # 1 % of 303 pairs; x and y are copied, z is not
            id="most rare symbols are copied",
        ),
        pytest.param(
            [*[COMMON] * 300, ("ax", "ax"), ("ay", "a"), ("az", "a")], 0, id="one of three is"
        ),
        pytest.param([*[COMMON] * 300, ("ax", "ax"), ("ay", "a")], 0, id="one of two is"),
        pytest.param(
            [*[COMMON] * 9000, *[("ax", "ax")] * 49],
            50,  # not 90, 1 % of the pairs
            id="49 sources have x, which is rare",
        ),
        pytest.param([*[COMMON] * 9000, *[("ax", "ax")] * 50], 0, id="50 do: no symbol is rare"),
        pytest.param([COMMON, ("cd", "cd")], 2, id="two pairs"),
        pytest.param([], 0, id="no pairs"),
    ],
)
def test_rare_symbols_are_copied_if_enough_pairs_copy_theirs(
    pairs: list[tuple[str, str]], frequency: int
) -> None:
    assert useful_frequency(pairs, alike=True) == frequency


@pytest.mark.parametrize(
    ("sources_with_x", "frequency"),
    [
        (19, 0),
        (20, 21),  # 1 % of 2,120 pairs
    ],
)
def test_between_units_of_two_kinds_few_rare_symbols_say_nothing(
    sources_with_x: int, frequency: int
) -> None:
    pairs = [*[COMMON] * 2100, *[("ax", "ax")] * sources_with_x]
    assert useful_frequency(pairs, alike=False) == frequency
