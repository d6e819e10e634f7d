"""Batches: each example once, the longest source first, with padding behind its tokens."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.data.vocabulary import SOURCE_SPECIALS, TARGET_SPECIALS, Vocabularies, Vocabulary

VOCABULARIES = Vocabularies(
    Vocabulary.from_counts(Counter("abc"), SOURCE_SPECIALS, 9),
    Vocabulary.from_counts(Counter("xyz"), TARGET_SPECIALS, 9),
)
# Ids of the three tokens of each side, which follow those of its special tokens.
SOURCES = st.lists(st.integers(2, 4), min_size=1, max_size=6)
TARGETS = st.lists(st.integers(4, 6), max_size=5)
EXAMPLES = st.lists(st.tuples(SOURCES, TARGETS), min_size=1, max_size=9).map(
    lambda pairs: [Example(source, target, i) for i, (source, target) in enumerate(pairs)]
)


@given(EXAMPLES)
def test_a_batch_has_each_example_once(examples: list[Example]) -> None:
    assert sorted(make_batch(examples, VOCABULARIES).indices) == list(range(len(examples)))


@given(EXAMPLES)
def test_the_longest_sources_of_a_batch_come_first(examples: list[Example]) -> None:
    lengths = make_batch(examples, VOCABULARIES).source_lengths.tolist()
    assert lengths == sorted(lengths, reverse=True)


@given(EXAMPLES)
def test_a_batch_has_sources_and_then_padding(examples: list[Example]) -> None:
    batch, pad = make_batch(examples, VOCABULARIES), VOCABULARIES.source.pad
    for column, index in enumerate(batch.indices):
        length = int(batch.source_lengths[column])
        assert batch.source[:length, column, 0].tolist() == examples[index].source
        assert (batch.source[length:, column, 0] == pad).all()


@given(EXAMPLES)
def test_a_batch_has_targets_between_start_and_end_and_then_padding(
    examples: list[Example],
) -> None:
    batch, vocabulary = make_batch(examples, VOCABULARIES), VOCABULARIES.target
    for column, index in enumerate(batch.indices):
        length = int(batch.target_lengths[column])
        expected = [vocabulary.bos, *examples[index].target, vocabulary.eos]
        assert batch.target[:length, column, 0].tolist() == expected
        assert (batch.target[length:, column, 0] == vocabulary.pad).all()


def test_a_batch_without_all_targets_has_none() -> None:
    batch = make_batch([Example([2], [4], 0), Example([3, 2], None, 1)], VOCABULARIES)
    assert batch.target is None
    assert batch.target_lengths is None
    assert batch.indices == (1, 0)
