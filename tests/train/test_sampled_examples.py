"""Samples of the development set, of which validations measure the loss or decode the sources."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.data.batch import Example
from onmt_entmax.train.sampled_examples import sample_examples


def examples_of(first_tokens: list[int]) -> list[Example]:
    """Return an example for each of these first tokens of a source, which have a second token."""
    return [Example([first, 9], [n], n) for n, first in enumerate(first_tokens)]


FIRST_TOKENS = st.lists(st.integers(0, 5), max_size=60)
SIZES = st.integers(0, 70)


@given(FIRST_TOKENS, SIZES, st.booleans())
def test_a_sample_has_its_size(first_tokens: list[int], size: int, evenly: bool) -> None:
    """Its examples are different; size 0 is all."""
    sample = sample_examples(examples_of(first_tokens), size, evenly)
    assert len(sample) == (min(size, len(first_tokens)) if size else len(first_tokens))
    assert len({example.index for example in sample}) == len(sample)


@given(FIRST_TOKENS, SIZES, st.booleans())
def test_a_sample_is_the_same_again(first_tokens: list[int], size: int, evenly: bool) -> None:
    examples = examples_of(first_tokens)
    assert sample_examples(examples, size, evenly) == sample_examples(examples, size, evenly)


@given(FIRST_TOKENS, SIZES.filter(bool))
def test_an_even_sample_takes_turns_over_first_tokens(first_tokens: list[int], size: int) -> None:
    """A token has at most one example fewer than any other, unless all its examples are in it."""
    sample = sample_examples(examples_of(first_tokens), size, evenly=True)
    sampled = Counter(example.source[0] for example in sample)
    for first, count in Counter(first_tokens).items():
        assert sampled[first] == count or sampled[first] >= max(sampled.values()) - 1
