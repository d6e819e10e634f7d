"""Words, characters and symbols become tokens and are decoded again; texts that are refused."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onmt_entmax.opennmt import DefaultTokens
from onmt_entmax.strings.marks import is_language, is_tag
from onmt_entmax.strings.units import (
    CHARACTERS,
    STRUCTURAL,
    TEXT,
    Unit,
    decode_symbol,
    decode_word,
    encode_symbol,
    encode_word,
)

# Letters of markers and escapes, and white space, so that they meet.
TRICKY = st.text(alphabet="ab+U▁ \u00a0\u2028l=ang0258B1", min_size=1, max_size=12)
PHONES = Unit.between(" ")


# --- words ---


@pytest.mark.parametrize(
    ("word", "tokens"),
    [
        pytest.param("give up", "g i v e ▁ u p", id="a space"),
        pytest.param("▁", "U+2581", id="the character that stands for a space"),
        pytest.param("af\u00a0te", "a f U+00A0 t e", id="other white space"),
        pytest.param("u\u0302", "u \u0302", id="a combining mark is a token of its own"),
        pytest.param("U+00A0", "U + 0 0 A 0", id="letters of an escape"),
        pytest.param("  x ", "▁ ▁ x ▁", id="spaces at begin and end"),
        pytest.param("𐌰", "𐌰", id="a character beyond the basic plane"),
    ],
)
def test_each_character_of_a_word_is_a_token(word: str, tokens: str) -> None:
    assert " ".join(encode_word(word)) == tokens


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
@example("\u2028\x1c\x85 ▁\t\r\n")
def test_a_word_comes_back_through_a_line_of_text(word: str) -> None:
    line = " ".join(encode_word(word))
    assert len(line.splitlines()) == 1
    assert len(line.split()) == len(word)
    assert decode_word(line.split()) == word


def test_an_unknown_token_is_decoded_as_the_replacement_character() -> None:
    assert decode_word(["a", "<unk>", "b"]) == "a\ufffdb"


def test_a_token_of_several_characters_is_decoded_as_it_is() -> None:
    """A model of a vocabulary that was made elsewhere may write one."""
    assert decode_word(["a", "bc"]) == "abc"


def test_the_escapes_of_a_word_are_decoded() -> None:
    assert decode_word(["U+00A0", "U+2581", "U+000A"]) == "\u00a0▁\n"


@pytest.mark.parametrize("token", ["U+001B", "U+0041", "U+D800", "U+110000", "U+FFFFFF", "U+00A"])
def test_what_looks_like_an_escape_of_another_character_stays(token: str) -> None:
    assert decode_word([token]) == token


# --- characters and symbols ---


@given(st.text(min_size=1) | TRICKY)
def test_characters_decode_to_the_text(text: str) -> None:
    assert CHARACTERS.decode(CHARACTERS.encode(text)) == text


@given(st.text(min_size=1) | TRICKY)
def test_symbols_decode_to_the_symbol(text: str) -> None:
    assert decode_symbol(encode_symbol(text)) == text


@given(st.text(min_size=1) | TRICKY)
def test_a_symbol_is_one_token_and_no_mark(text: str) -> None:
    token = encode_symbol(text)
    assert token.split() == [token]
    assert not is_tag(token)
    assert not is_language(token)


@given(st.lists(TRICKY.filter(lambda text: "," not in text), min_size=1))
def test_texts_with_a_separator_decode_to_the_text(symbols: list[str]) -> None:
    unit = Unit.between(",")
    text = ",".join(symbols)
    assert unit.decode(unit.encode(text)) == text


def test_phones_are_tokens_as_they_are() -> None:
    assert PHONES.encode("p lʷ a j e") == ["p", "lʷ", "a", "j", "e"]


def test_words_are_tokens_as_they_are() -> None:
    assert TEXT.encode("▁the +5 lang=x") == ["▁the", "+5", "lang=x"]


def test_an_unknown_symbol_is_shown_as_the_replacement_character() -> None:
    assert PHONES.decode(["p", "<unk>"]) == "p \ufffd"


# --- texts that are refused ---


@pytest.mark.parametrize("text", ["a  b", " a", "a "])
def test_an_empty_symbol_is_a_problem(text: str) -> None:
    assert "empty symbol" in str(PHONES.problem(text))


@pytest.mark.parametrize("unit", [CHARACTERS, PHONES, TEXT], ids=str)
def test_an_empty_text_is_a_problem(unit: Unit) -> None:
    assert unit.problem(" ") == "is empty"


def test_a_symbol_of_the_model_is_a_problem() -> None:
    assert PHONES.problem("a <s> b") == "has '<s>', a symbol of the model's own"


def test_characters_that_spell_a_symbol_of_the_model_are_no_problem() -> None:
    assert CHARACTERS.problem("a<s>b") is None


# --- names for OpenNMT-py and for people ---


def test_structural_symbols_are_those_of_opennmt() -> None:
    assert {DefaultTokens.PAD, DefaultTokens.BOS, DefaultTokens.EOS} == STRUCTURAL


@pytest.mark.parametrize(
    ("unit", "name"), [(CHARACTERS, "characters"), (PHONES, "symbols between ' '")]
)
def test_a_unit_is_named_for_people(unit: Unit, name: str) -> None:
    assert str(unit) == name
