"""Batches: padding, order, grouping, and the few shapes of CUDA graphs."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.data.shapes import Shape, Shapes
from onmt_entmax.data.vocabulary import SOURCE_SPECIALS, TARGET_SPECIALS, Vocabularies, Vocabulary

VOCABULARIES = Vocabularies(
    Vocabulary.from_counts(Counter("abc"), SOURCE_SPECIALS, 9),
    Vocabulary.from_counts(Counter("xyz"), TARGET_SPECIALS, 9),
)
SOURCES = st.lists(st.integers(2, 4), min_size=1, max_size=6)
TARGETS = st.lists(st.integers(4, 6), max_size=5)
EXAMPLES = st.lists(st.tuples(SOURCES, TARGETS), min_size=1, max_size=9).map(
    lambda pairs: [Example(source, target, i) for i, (source, target) in enumerate(pairs)]
)


@given(EXAMPLES)
def test_a_batch_has_each_example_once_from_the_longest_source_on(examples: list[Example]) -> None:
    batch = make_batch(examples, VOCABULARIES)
    assert sorted(batch.indices) == list(range(len(examples)))
    lengths = batch.source_lengths.tolist()
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


def grouped(examples: list[Example], size: int, kind: str) -> list[list[Example]]:
    """Return the examples of each group that `Shapes` makes, without rounding lengths up."""
    source = np.array([len(example.source) for example in examples], dtype=np.int64)
    target = np.array([len(example.target or ()) for example in examples], dtype=np.int64)
    groups = Shapes(size, kind, (1, 1)).group_lengths(source, target)
    return [[examples[index] for index in group] for group in groups]


def cost(group: list[Example], kind: str) -> int:
    """Return the size of a batch: sentences, or tokens of the longer side with padding."""
    if kind == "sents":
        return len(group)
    longest = max(max(len(pair.source), len(pair.target or ()) + 2) for pair in group)
    return len(group) * longest


KINDS = st.sampled_from(["sents", "tokens"])


@given(EXAMPLES, st.integers(1, 30), KINDS)
def test_groups_keep_every_example_once(examples: list[Example], size: int, kind: str) -> None:
    groups = grouped(examples, size, kind)
    indices = [example.index for group in groups for example in group]
    assert sorted(indices) == list(range(len(examples)))


@given(EXAMPLES, st.integers(1, 30), KINDS)
def test_groups_are_in_the_order_of_source_lengths(
    examples: list[Example], size: int, kind: str
) -> None:
    lengths = [len(example.source) for group in grouped(examples, size, kind) for example in group]
    assert lengths == sorted(lengths)


@pytest.mark.parametrize(("kind", "limit"), [("sents", 3), ("tokens", 24)])
def test_groups_stay_within_the_batch_size(kind: str, limit: int) -> None:
    examples = [Example([2] * (1 + i % 7), [4] * (i % 5), i) for i in range(40)]
    for group in grouped(examples, limit, kind):
        assert cost(group, kind) <= limit


@given(EXAMPLES, st.integers(1, 30), KINDS)
def test_groups_are_as_large_as_they_may_be(examples: list[Example], limit: int, kind: str) -> None:
    for group, following in pairwise(grouped(examples, limit, kind)):
        assert cost([*group, following[0]], kind) > limit


class TestShapes:
    """Groups of sentences with 1 to 30 source and 0 to 20 target tokens, rounded up to shapes."""

    # A wider shape holds fewer sentences of as many tokens: a group that is carried over to the
    # next width may stay short.
    @pytest.fixture(params=[Shapes(32), Shapes(600, "tokens")], ids=["sents", "tokens"])
    def shapes(self, request: pytest.FixtureRequest) -> Shapes:
        return request.param

    @pytest.fixture
    def lengths(self) -> tuple[np.ndarray, np.ndarray]:
        generator = torch.Generator().manual_seed(0)
        source = torch.randint(1, 31, (500,), generator=generator).numpy()
        return source, torch.randint(0, 21, (500,), generator=generator).numpy()

    @pytest.fixture
    def groups(self, shapes: Shapes, lengths: tuple[np.ndarray, np.ndarray]) -> list[np.ndarray]:
        return [np.asarray(group) for group in shapes.group_lengths(*lengths)]

    @pytest.fixture
    def shapes_of_groups(
        self, shapes: Shapes, lengths: tuple[np.ndarray, np.ndarray], groups: list[np.ndarray]
    ) -> list[Shape]:
        source, target = lengths
        return [
            # Decoder steps: the end symbol is one more.
            shapes.of_lengths(int(source[group].max()), int(target[group].max()) + 1)
            for group in groups
        ]

    def test_every_sentence_is_in_one_group(self, groups: list[np.ndarray]) -> None:
        assert sorted(np.concatenate(groups).tolist()) == list(range(500))

    def test_groups_fit_their_shapes(
        self, groups: list[np.ndarray], shapes_of_groups: list[Shape]
    ) -> None:
        for group, shape in zip(groups, shapes_of_groups, strict=True):
            assert len(group) <= shape.sentences

    def test_lengths_are_rounded_up(self, shapes_of_groups: list[Shape]) -> None:
        for shape in shapes_of_groups:
            assert shape.source % 8 == shape.target % 4 == 0

    def test_few_groups_are_not_full(
        self, shapes: Shapes, groups: list[np.ndarray], shapes_of_groups: list[Shape]
    ) -> None:
        short = [
            group
            for group, shape in zip(groups, shapes_of_groups, strict=True)
            if len(group) < shape.sentences
        ]
        assert len(short) <= {"sents": 1, "tokens": 5}[shapes.batch_type]

    def test_shapes_are_few(self, shapes_of_groups: list[Shape]) -> None:
        """Four lengths of sources, 8 to 32, six of targets, 4 to 24, and the last group's."""
        assert len({*shapes_of_groups}) <= 4 * 6 + 1
