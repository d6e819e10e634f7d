"""Groups of sentences for batches: by their lengths, and in the few shapes of CUDA graphs."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.data.shapes import Shape, Shapes


class Lengths(NamedTuple):
    """The numbers of tokens of a pair, without special ones."""

    source: int
    target: int


# --- groups, without rounding lengths up ---

PAIRS = st.lists(st.builds(Lengths, st.integers(1, 6), st.integers(0, 5)), min_size=1, max_size=9)
SIZES = st.integers(1, 30)  # of a batch: sentences or tokens
KINDS = st.sampled_from(["sents", "tokens"])


def grouped(pairs: list[Lengths], size: int, kind: str) -> list[list[int]]:
    """Return the numbers of the pairs of each group."""
    source, target = np.array(pairs, dtype=np.int64).T
    groups = Shapes(size, kind, (1, 1)).group_lengths(source, target)
    return [list(map(int, group)) for group in groups]


def cost(pairs: list[Lengths], kind: str) -> int:
    """Return the size of a batch: sentences, or tokens of the longer side with padding.

    A target has a start symbol and an end symbol besides.
    """
    if kind == "sents":
        return len(pairs)
    return len(pairs) * max(max(pair.source, pair.target + 2) for pair in pairs)


@given(PAIRS, SIZES, KINDS)
def test_groups_have_every_pair_once(pairs: list[Lengths], size: int, kind: str) -> None:
    numbers = [number for group in grouped(pairs, size, kind) for number in group]
    assert sorted(numbers) == list(range(len(pairs)))


@given(PAIRS, SIZES, KINDS)
def test_groups_are_in_the_order_of_source_lengths(
    pairs: list[Lengths], size: int, kind: str
) -> None:
    lengths = [pairs[number].source for group in grouped(pairs, size, kind) for number in group]
    assert lengths == sorted(lengths)


@pytest.mark.parametrize(("kind", "size"), [("sents", 3), ("tokens", 24)])
def test_groups_stay_within_the_batch_size(kind: str, size: int) -> None:
    pairs = [Lengths(1 + number % 7, number % 5) for number in range(40)]
    for group in grouped(pairs, size, kind):
        assert cost([pairs[number] for number in group], kind) <= size


@given(PAIRS, SIZES, KINDS)
def test_groups_are_as_large_as_they_may_be(pairs: list[Lengths], size: int, kind: str) -> None:
    """With the first pair of the next one, a group would be too large."""
    for group, following in pairwise(grouped(pairs, size, kind)):
        assert cost([pairs[number] for number in [*group, following[0]]], kind) > size


# --- shapes ---


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
