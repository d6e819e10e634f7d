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
COUNTS = st.dictionaries(TOKENS, st.integers(1, 9))


@given(COUNTS)
def test_decoding_undoes_encoding(counts: dict[str, int]) -> None:
    vocabulary = Vocabulary.from_counts(Counter(counts), TARGET_SPECIALS, 50)
    tokens = [token for token in counts if token in vocabulary]
    assert vocabulary.decode(vocabulary.encode(tokens)) == tokens


SIZES = st.integers(1, 5)  # of a vocabulary, without special tokens
MIN_FREQUENCY = 3


def contained(counts: dict[str, int], size: int) -> list[str]:
    """Return the tokens that a vocabulary of this size has, besides the special ones."""
    vocabulary = Vocabulary.from_counts(Counter(counts), SOURCE_SPECIALS, size, MIN_FREQUENCY)
    return [token for token in counts if token in vocabulary]


@given(COUNTS, SIZES)
def test_a_vocabulary_has_only_tokens_that_are_frequent_enough(
    counts: dict[str, int], size: int
) -> None:
    assert all(counts[token] >= MIN_FREQUENCY for token in contained(counts, size))


@given(COUNTS, SIZES)
def test_a_vocabulary_has_as_many_frequent_tokens_as_its_size_allows(
    counts: dict[str, int], size: int
) -> None:
    frequent = sum(count >= MIN_FREQUENCY for count in counts.values())
    assert len(contained(counts, size)) == min(size, frequent)


@given(COUNTS, SIZES)
def test_a_vocabulary_leaves_out_no_token_more_frequent_than_one_that_it_has(
    counts: dict[str, int], size: int
) -> None:
    has = contained(counts, size)
    left_out = [count for token, count in counts.items() if token not in has]
    assert max(left_out, default=0) <= min((counts[token] for token in has), default=MIN_FREQUENCY)


@given(COUNTS, SIZES, st.integers(1, 8))
def test_dummy_tokens_fill_a_vocabulary_up_to_a_multiple(
    counts: dict[str, int], size: int, multiple: int
) -> None:
    """The length counts special tokens, too."""
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


def test_other_tokens_follow_the_special_ones_by_frequency() -> None:
    target = Vocabulary.from_counts(Counter("abb"), TARGET_SPECIALS, 10)
    assert target.tokens == (*TARGET_SPECIALS, "b", "a")


def test_a_token_that_was_never_seen_has_the_id_of_the_unknown_one() -> None:
    target = Vocabulary.from_counts(Counter("abb"), TARGET_SPECIALS, 10)
    assert target.encode(["a", "never seen"]) == [target.tokens.index("a"), target.unk]


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
