"""Batches: padding, order, grouping."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.data.batch import Example, Shapes, make_batch
from onmt_entmax.data.vocabulary import SOURCE_SPECIALS, TARGET_SPECIALS, Vocabularies, Vocabulary

VOCABULARIES = Vocabularies(
    Vocabulary.from_counts(Counter("abc"), SOURCE_SPECIALS, 9),
    Vocabulary.from_counts(Counter("xyz"), TARGET_SPECIALS, 9),
)
rows = st.lists(
    st.tuples(
        st.lists(st.integers(2, 4), min_size=1, max_size=6), st.lists(st.integers(4, 6), max_size=5)
    ),
    min_size=1,
    max_size=9,
)


@given(rows)
def test_a_batch_holds_its_examples(pairs: list[tuple[list[int], list[int]]]) -> None:
    examples = [Example(source, target, i) for i, (source, target) in enumerate(pairs)]
    batch = make_batch(examples, VOCABULARIES)
    assert sorted(batch.indices) == list(range(len(pairs)))
    lengths = batch.source_lengths.tolist()
    assert lengths == sorted(lengths, reverse=True)
    vocabulary = VOCABULARIES.target
    for column, index in enumerate(batch.indices):
        source, target = pairs[index]
        assert batch.source[: lengths[column], column, 0].tolist() == source
        assert (batch.source[lengths[column] :, column, 0] == VOCABULARIES.source.pad).all()
        length = int(batch.target_lengths[column])
        expected = [vocabulary.bos, *target, vocabulary.eos]
        assert batch.target[:length, column, 0].tolist() == expected
        assert (batch.target[length:, column, 0] == vocabulary.pad).all()


def grouped(examples: list[Example], size: int, kind: str) -> list[list[Example]]:
    sides = [e.source for e in examples], [e.target or () for e in examples]
    lengths = (np.array([*map(len, side)], dtype=np.int64) for side in sides)
    return [[examples[i] for i in g] for g in Shapes(size, kind, (1, 1)).group_lengths(*lengths)]


@given(rows, st.integers(1, 30), st.sampled_from(["sents", "tokens"]))
def test_groups_keep_every_example_once(
    pairs: list[tuple[list[int], list[int]]], size: int, kind: str
) -> None:
    examples = [Example(source, target, i) for i, (source, target) in enumerate(pairs)]
    groups = grouped(examples, size, kind)
    assert sorted(e.index for group in groups for e in group) == list(range(len(pairs)))
    lengths = [len(e.source) for group in groups for e in group]
    assert lengths == sorted(lengths)


@pytest.mark.parametrize(("kind", "limit"), [("sents", 3), ("tokens", 24)])
def test_groups_stay_within_the_batch_size(kind: str, limit: int) -> None:
    examples = [Example([2] * (1 + i % 7), [4] * (i % 5), i) for i in range(40)]
    for group in grouped(examples, limit, kind):
        padded = max(max(len(e.source), len(e.target or ()) + 2) for e in group)
        assert len(group) * (1 if kind == "sents" else padded) <= limit


@given(rows, st.integers(1, 30), st.sampled_from(["sents", "tokens"]))
def test_groups_are_as_large_as_they_may_be(
    pairs: list[tuple[list[int], list[int]]], limit: int, kind: str
) -> None:
    examples = [Example(source, target, i) for i, (source, target) in enumerate(pairs)]
    groups = grouped(examples, limit, kind)
    for group, following in pairwise(groups):
        more = [*group, following[0]]
        padded = max(max(len(e.source), len(e.target or ()) + 2) for e in more)
        assert len(more) * (1 if kind == "sents" else padded) > limit


def test_a_batch_without_all_targets_has_none() -> None:
    batch = make_batch([Example([2], [4], 0), Example([3, 2], None, 1)], VOCABULARIES)
    assert batch.target is None
    assert batch.target_lengths is None
    assert batch.indices == (1, 0)
