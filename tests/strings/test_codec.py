"""The codec turns the tokens of texts into those of the network, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.strings.codec import Codec, frequent_symbols
from onmt_entmax.strings.copying import Copies
from onmt_entmax.strings.task import Query, StringTask, TaskError
from onmt_entmax.strings.units import Unit

WORDS = st.lists(st.sampled_from("abcdefg"), max_size=6)
FREQUENT = frozenset("abc")
TASK = StringTask(("source", "target", "tags"), copies=True)


def words(*pairs: tuple[str, str]) -> list[tuple[list[str], list[str]]]:
    """Return sources and targets as lists of their characters."""
    return [(list(source), list(target)) for source, target in pairs]


def test_symbols_of_few_sources_are_rare() -> None:
    pairs = words(("ab", "ab"), ("ac", "ac"), ("aa", "aa"))
    assert frequent_symbols(pairs, TASK, least=2) == {"a"}


def test_a_letter_that_enough_endings_have_is_not_copied() -> None:
    """The letter is t: one source has it, and two targets whose sources do not."""
    pairs = words(("tb", "tbt"), ("ab", "abt"), ("ab", "abt"))
    assert frequent_symbols(pairs, TASK, least=2) == {"a", "b", "t"}


def test_a_letter_of_fewer_endings_is_copied() -> None:
    pairs = words(("tb", "tbt"), ("ab", "abt"), ("ab", "ab"))
    assert frequent_symbols(pairs, TASK, least=2) == {"a", "b"}


def test_a_letter_that_targets_repeat_from_their_sources_is_no_letter_of_an_ending() -> None:
    pairs = words(("tab", "tabtt"), ("ab", "ab"))
    assert frequent_symbols(pairs, TASK, least=2) == {"a", "b"}


def test_marks_are_never_copied() -> None:
    source = TASK.encode_source(Query("x", ("RARE",), "german"))
    assert frequent_symbols([(source, ["x"])], TASK, least=2) == {"lang=german", "+RARE"}
    assert Codec(TASK).copies(source).symbols == {"<copy1>": "x"}


def test_a_placeholder_in_the_data_is_refused() -> None:
    task = StringTask(source=Unit.between(" "), copies=True)
    with pytest.raises(TaskError, match="<copy1> is a symbol of the data"):
        frequent_symbols([(["<copy1>"], ["a"])], task, least=2)


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
    source, target, _ = codec.encode("ab", "xyz")
    assert (source, target) == (["a", "b"], ["z", "y", "x"])


def test_a_rare_symbol_of_a_right_to_left_model_has_its_placeholder() -> None:
    codec = Codec(StringTask(right_to_left=True, copies=True), frequent=frozenset("ab"))
    source, target, _ = codec.encode("ax", "xb")
    assert (source, target) == (["a", "<copy1>"], ["b", "<copy1>"])


def test_without_copying_nothing_is_replaced_or_excluded() -> None:
    codec = Codec(StringTask())
    source, target, copies = codec.encode("xy", "xz")
    assert (source, target) == (["x", "y"], ["x", "z"])
    assert copies == Copies({})
