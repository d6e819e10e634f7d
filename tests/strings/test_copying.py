"""Placeholders of rare and unknown symbols."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.strings.copying import MOST, PLACEHOLDERS, Copies, copies_of, useful_frequency
from onmt_entmax.strings.task import (
    Codec,
    Query,
    StringTask,
    TaskError,
    frequent_symbols,
)

WORDS = st.lists(st.sampled_from("abcdefg"), max_size=6)
FREQUENT = frozenset("abc")
TASK = StringTask(("source", "target", "tags"), copies=True)


def test_placeholders_are_in_order_of_first_occurrence() -> None:
    copies = copies_of("xaybx", FREQUENT)
    assert copies.symbols == {"<copy1>": "x", "<copy2>": "y"}
    assert copies.hide("xaybx") == ["<copy1>", "a", "<copy2>", "b", "<copy1>"]


def test_a_source_can_have_20_copied_symbols() -> None:
    """As docs/guide-tables.md says."""
    assert tuple(f"<copy{number}>" for number in range(1, 21)) == PLACEHOLDERS


@given(WORDS, WORDS)
def test_showing_is_the_inverse_of_hiding(source: list[str], target: list[str]) -> None:
    copies = copies_of(source, FREQUENT)
    assert copies.show(copies.hide(target)) == target


@given(WORDS)
def test_different_allowed_outputs_are_different_texts(source: list[str]) -> None:
    # The property on which certificates rest: see docs/certificates.md.
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


def test_symbols_of_few_sources_are_rare() -> None:
    sources = [list("ab"), list("ac"), list("aa")]
    assert frequent_symbols(sources, TASK, 2) == {"a"}


def test_marks_are_never_copied() -> None:
    source = TASK.encode_source(Query("x", ("RARE",), "german"))
    assert frequent_symbols([source], TASK, 2) == {"lang=german", "+RARE"}
    assert Codec(TASK).copies(source).symbols == {"<copy1>": "x"}


def test_a_placeholder_in_the_data_is_refused() -> None:
    task = StringTask(source=StringTask().source.between(" "), copies=True)
    with pytest.raises(TaskError, match="<copy1> is a symbol of the data"):
        frequent_symbols([["<copy1>"]], task, 2)


def test_a_vocabulary_says_what_is_copied_and_by_how_many_placeholders() -> None:
    codec = Codec.of_vocabulary(TASK, {"a", "<copy1>", "<copy3>"})
    assert codec.copies(list("axy")).symbols == {"<copy1>": "x"}


@given(WORDS, WORDS, st.booleans())
def test_the_codec_decodes_what_it_encodes(
    source: list[str], target: list[str], right_to_left: bool
) -> None:
    codec = Codec(StringTask(right_to_left=right_to_left, copies=True), FREQUENT)
    _, encoded, copies = codec.encode(source, target)
    assert codec.decode(encoded, copies) == target


def test_a_right_to_left_network_writes_the_last_symbol_first() -> None:
    codec = Codec(StringTask(right_to_left=True))
    assert codec.encode("ab", "xyz")[:2] == (["a", "b"], ["z", "y", "x"])


def test_without_copying_nothing_is_replaced_or_excluded() -> None:
    codec = Codec(StringTask())
    source, target, copies = codec.encode("xy", "xz")
    assert (source, target) == (["x", "y"], ["x", "z"])
    assert copies == Copies({})


@pytest.mark.parametrize(
    ("pairs", "frequency"),
    [
        ([("ab", "ab")] * 300 + [("ax", "ax"), ("ay", "ay"), ("az", "a")], 3),
        ([("ab", "ab")] * 300 + [("ax", "ax"), ("ay", "a"), ("az", "a")], 0),  # most are not there
        ([("ab", "ab")] * 300 + [("ax", "ax"), ("ay", "a")], 0),  # one of two is not most
        ([("ab", "ab")] * 9000 + [("ax", "ax")] * 49, 50),
        ([("ab", "ab")] * 9000 + [("ax", "ax")] * 50, 0),  # no symbol is rare
        ([("ab", "ab"), ("cd", "cd")], 2),
        ([], 0),
    ],
)
def test_the_frequency_that_suits_the_data(pairs: list[tuple[str, str]], frequency: int) -> None:
    assert useful_frequency(pairs, alike=True) == frequency


@pytest.mark.parametrize(("occurrences", "frequency"), [(19, 0), (20, 21)])
def test_between_units_of_two_kinds_few_rare_symbols_say_nothing(
    occurrences: int, frequency: int
) -> None:
    pairs = [("ab", "ab")] * 2100 + [("ax", "ax")] * occurrences
    assert useful_frequency(pairs, alike=False) == frequency
