"""Batches: padding, order, grouping, and the few shapes of CUDA graphs."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.data.batch import Example, Shape, Shapes, make_batch
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
    def shapes_of_groups(self, shapes: Shapes, lengths, groups: list[np.ndarray]) -> list[Shape]:
        source, target = lengths
        return [
            # Decoder steps: the end symbol is one more.
            shapes.of_lengths(int(source[group].max()), int(target[group].max()) + 1)
            for group in groups
        ]

    def test_every_sentence_is_in_one_group(self, groups: list[np.ndarray]) -> None:
        assert sorted(np.concatenate(groups).tolist()) == list(range(500))

    def test_groups_fit_their_shapes(self, groups, shapes_of_groups: list[Shape]) -> None:
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
