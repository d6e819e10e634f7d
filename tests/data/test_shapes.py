"""Sentences of similar length are grouped into batches, which may be padded to a few shapes."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.data.shapes import NOT_ROUNDED, Shape, Shapes


class Lengths(NamedTuple):
    """The numbers of tokens of a pair, without special ones."""

    source: int
    target: int


# --- groups of exact lengths ---

PAIRS = st.lists(st.builds(Lengths, st.integers(1, 6), st.integers(0, 5)), min_size=1, max_size=9)
SIZES = st.integers(1, 30)  # of a batch: sentences or tokens
KINDS = st.sampled_from(["sents", "tokens"])


def grouped(pairs: list[Lengths], size: int, kind: str) -> list[list[int]]:
    """Return the numbers of the pairs of each group."""
    source, target = np.array(pairs, dtype=np.int64).T
    groups = Shapes(size, kind, NOT_ROUNDED).group_lengths(source, target)
    return [list(map(int, group)) for group in groups]


def cost(pairs: list[Lengths], kind: str) -> int:
    """Return the size of a batch in sentences, or in tokens of the longer side with padding.

    A target also has a start symbol and an end symbol.
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


# --- shapes of padded batches ---


class Grouping(NamedTuple):
    """Pairs in groups, one for each padded batch.

    Attributes:
        groups: positions of the pairs of each group.
        shapes: the shape of each group's batch.
    """

    groups: list[np.ndarray]
    shapes: list[Shape]


PAIRS_OF_RANDOM_LENGTHS = 500  # enough to fill each of the shapes below several times


def grouping_by(rules: Shapes) -> Grouping:
    """Group pairs of 1 to 30 source tokens and 0 to 20 target tokens, rounded up to shapes."""
    generator = torch.Generator().manual_seed(0)
    source = torch.randint(1, 31, (PAIRS_OF_RANDOM_LENGTHS,), generator=generator).numpy()
    target = torch.randint(0, 21, (PAIRS_OF_RANDOM_LENGTHS,), generator=generator).numpy()
    groups = rules.group_lengths(source, target)
    # A target has one decoder step more than tokens, for the end symbol.
    shapes = [rules.of_lengths(int(source[g].max()), int(target[g].max()) + 1) for g in groups]
    return Grouping(groups, shapes)


SENTENCES, TOKENS = Shapes(32), Shapes(600, "tokens")
each_unit = pytest.mark.parametrize("rules", [SENTENCES, TOKENS], ids=["sents", "tokens"])


@each_unit
def test_every_pair_is_in_one_padded_batch(rules: Shapes) -> None:
    numbers = np.concatenate(grouping_by(rules).groups).tolist()
    assert sorted(numbers) == list(range(PAIRS_OF_RANDOM_LENGTHS))


@each_unit
def test_no_group_has_more_pairs_than_its_shape_holds(rules: Shapes) -> None:
    for group, shape in zip(*grouping_by(rules), strict=True):
        assert len(group) <= shape.sentences


@each_unit
def test_source_lengths_of_shapes_are_multiples_of_eight(rules: Shapes) -> None:
    assert {shape.source % 8 for shape in grouping_by(rules).shapes} == {0}


@each_unit
def test_decoder_steps_of_shapes_are_multiples_of_four(rules: Shapes) -> None:
    assert {shape.target % 4 for shape in grouping_by(rules).shapes} == {0}


@each_unit
def test_there_are_no_more_shapes_than_pairs_of_lengths(rules: Shapes) -> None:
    """Four source lengths, 8 to 32, by six of steps, 4 to 24; the last group may add one."""
    assert len({*grouping_by(rules).shapes}) <= 4 * 6 + 1


def test_all_batches_of_sentences_but_the_last_are_full() -> None:
    *groups, _ = grouping_by(SENTENCES).groups
    assert {len(group) for group in groups} == {32}


def test_few_batches_of_tokens_are_not_full() -> None:
    """A wider shape holds fewer sentences, so pairs that join it may fill it only partly."""
    groups, shapes = grouping_by(TOKENS)
    is_full = [len(group) == shape.sentences for group, shape in zip(groups, shapes, strict=True)]
    assert is_full.count(False) < len(groups) / 4
