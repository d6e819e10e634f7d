"""Vocabularies: the ids of tokens, sizes, and lists of tokens that are refused."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.data.vocabulary import (
    SOURCE_SPECIALS,
    TARGET_SPECIALS,
    Vocabulary,
    VocabularyError,
)

TOKENS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=4)


@given(st.dictionaries(TOKENS, st.integers(1, 9)))
def test_decoding_undoes_encoding(counts: dict[str, int]) -> None:
    vocabulary = Vocabulary.from_counts(Counter(counts), TARGET_SPECIALS, 50)
    tokens = [token for token in counts if token in vocabulary]
    assert vocabulary.decode(vocabulary.encode(tokens)) == tokens


SIZED = st.tuples(st.dictionaries(TOKENS, st.integers(1, 9)), st.integers(1, 5))
"""Counts of tokens, and the size of a vocabulary."""
MIN_FREQUENCY = 3


@given(SIZED)
def test_a_vocabulary_has_the_most_frequent_tokens(sized: tuple[dict[str, int], int]) -> None:
    """It has as many as its size allows, of the tokens that are frequent enough."""
    counts, size = sized
    vocabulary = Vocabulary.from_counts(Counter(counts), SOURCE_SPECIALS, size, MIN_FREQUENCY)
    frequent = [token for token, number in counts.items() if number >= MIN_FREQUENCY]
    contained = [token for token in counts if token in vocabulary]
    assert {*contained} <= {*frequent}
    assert len(contained) == min(size, len(frequent))
    left_out = [counts[token] for token in frequent if token not in contained]
    assert not left_out or max(left_out) <= min(counts[token] for token in contained)


@given(SIZED, st.integers(1, 8))
def test_the_length_of_a_vocabulary_is_a_multiple(
    sized: tuple[dict[str, int], int], multiple: int
) -> None:
    """The length counts special tokens, and tokens that nothing has fill it up."""
    counts, size = sized
    without = Vocabulary.from_counts(Counter(counts), SOURCE_SPECIALS, size, MIN_FREQUENCY)
    vocabulary = Vocabulary.from_counts(
        Counter(counts), SOURCE_SPECIALS, size, MIN_FREQUENCY, multiple
    )
    assert len(vocabulary) % multiple == 0
    assert vocabulary.tokens[: len(without)] == without.tokens
    assert len(vocabulary) - len(without) < multiple


def test_special_tokens_have_the_ids_of_opennmt() -> None:
    target = Vocabulary.from_counts(Counter("aab"), TARGET_SPECIALS, 10)
    assert (target.unk, target.pad, target.bos, target.eos) == (0, 1, 2, 3)
    assert target.tokens[4:] == ("a", "b")
    assert target.encode(["b", "never seen"]) == [5, 0]


@pytest.mark.parametrize("order", ["dcba", "bdac", "abcd"])
def test_tokens_of_equal_counts_are_in_alphabetical_order(order: str) -> None:
    """Whatever the order of the data, so that all processes and repeated runs agree on the ids."""
    vocabulary = Vocabulary.from_counts(Counter(order + "zz"), SOURCE_SPECIALS, 4)
    assert vocabulary.tokens[2:] == ("z", "a", "b", "c")


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        pytest.param(
            ("<unk>", "<blank>", "a", "a"), "'a' is in the vocabulary twice", id="a token twice"
        ),
        pytest.param(("a",), "<unk>", id="no special tokens"),
        pytest.param(
            ("<unk>", "<blank>", ""), "token 2 is '', but a token is not empty", id="an empty token"
        ),
        pytest.param(
            ("<unk>", "<blank>", "a b"),
            "token 2 is 'a b', but a token .* has no white space",
            id="a space",
        ),
        pytest.param(
            ("<unk>", "<blank>", "a\u2028"),
            "but a token is not empty and has no white space",
            id="a line separator",
        ),
    ],
)
def test_broken_lists_are_refused(tokens: tuple[str, ...], message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        Vocabulary(tokens)
