"""Words, tags and languages as tokens, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.text.morphology import (
    ask_forward,
    ask_reversed,
    asks_reversed,
    decode_source,
    decode_word,
    encode_source,
    encode_word,
)

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
names = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1)
tags = st.lists(st.text("AV.;+ \u00a0\u2581/", min_size=1), min_size=1)


@given(words)
def test_a_word_comes_back(word):
    tokens = encode_word(word)
    assert len(tokens) == len(word)
    assert not any(token.isspace() for token in tokens)
    assert decode_word(tokens) == word


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


@given(names, words, tags)
def test_a_question_for_a_form_from_right_to_left(language, lemma, tags):
    tokens = encode_source(language, lemma, tags)
    marked = ask_reversed(tokens)
    assert (asks_reversed(tokens), asks_reversed(marked)) == (False, True)
    assert ask_forward(marked) == ask_forward(tokens) == tokens
    assert decode_source(marked) == (language, tuple(tags), lemma)


def test_no_tag_and_no_lemma_is_the_mark():
    assert ask_reversed(["lang=x", "+V", "a"]) == ["lang=x", "order=reversed", "+V", "a"]
    assert not asks_reversed(encode_source("x", "order=reversed", ["order=reversed"]))
    assert ask_forward([]) == []
