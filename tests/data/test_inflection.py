"""Encoding of words, tags and languages as tokens, and decoding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.data.inflection import decode_source, decode_word, encode_source, encode_word

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
names = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1)
tags = st.lists(st.text("AV.;+ \u00a0\u2581/", min_size=1), min_size=1)


@given(words)
def test_a_word_comes_back(word):
    tokens = encode_word(word)
    assert len(tokens) == len(word)
    assert not any(token.isspace() for token in tokens)
    assert decode_word(tokens) == word


def test_only_the_escapes_of_a_word_are_decoded():
    others = ["U+001B", "U+0041", "U+D800", "U+110000", "U+00A"]
    assert decode_word(others) == "".join(others)
    assert decode_word(["U+00A0", "U+2581", "U+000A"]) == "\u00a0▁\n"


@given(names, words, tags)
def test_a_question_comes_back(language, lemma, tags):
    line = " ".join(encode_source(language, lemma, tags))
    assert decode_source(line.split(" ")) == (language, tuple(tags), lemma)


def test_tags_with_a_space():
    tokens = encode_source("latin", "altus", ["ADJ", "ABL", " PL"])
    assert tokens[:4] == ["lang=latin", "+ADJ", "+ABL", "+▁PL"]
    assert decode_source(tokens)[1] == ("ADJ", "ABL", " PL")


@pytest.mark.parametrize("tokens", [["+V", "a"], ["lang="]])
def test_a_language_comes_first(tokens):
    with pytest.raises(ValueError, match="expected a language first"):
        decode_source(tokens)
