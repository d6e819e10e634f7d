"""Placeholders of rare and unknown symbols."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.strings.copying import MOST_PLACEHOLDERS, PLACEHOLDERS, copies_of

# Words of three frequent symbols and of four rare ones.
WORDS = st.lists(st.sampled_from("abcdefg"), max_size=6)
FREQUENT = frozenset("abc")


def test_placeholders_are_in_order_of_first_occurrence() -> None:
    assert copies_of("xaybx", FREQUENT).symbols == {"<copy1>": "x", "<copy2>": "y"}


def test_a_placeholder_hides_each_occurrence_of_its_symbol() -> None:
    assert copies_of("xaybx", FREQUENT).hide("xaybx") == ["<copy1>", "a", "<copy2>", "b", "<copy1>"]


def test_a_source_can_have_20_copied_symbols() -> None:
    """docs/guide-better-tables.md names this number."""
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
    excluded = copies.excluded([*"abcdefg", *PLACEHOLDERS])
    assert excluded
    assert set(copies.hide(target)).isdisjoint(excluded)


def test_unused_placeholders_and_copied_symbols_are_excluded() -> None:
    """The source has one placeholder, for x; y is rare, but the source does not have it."""
    copies = copies_of("xa", FREQUENT)
    assert set(copies.excluded(["a", "x", "y", "<copy1>", "<copy2>"])) == {"x", "<copy2>"}


def test_a_symbol_beyond_the_last_placeholder_is_not_copied() -> None:
    source = [f"symbol{number}" for number in range(MOST_PLACEHOLDERS + 1)]
    assert copies_of(source, FREQUENT).hide(source)[-1] == source[-1]


def test_an_unknown_token_is_not_copied() -> None:
    assert copies_of(["<unk>", "a"], FREQUENT).symbols == {}
