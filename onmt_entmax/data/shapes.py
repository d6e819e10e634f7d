"""The sizes of batches: which sentences go together, and padding to few shapes.

Each shape needs a CUDA graph. There, lengths are rounded up, and each shape has a fixed number of
sentences; padding fills the rest. Grouping depends on the examples alone, so seed and position
still determine the stream of batches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from onmt_entmax.data.batch import Batch

Integers = NDArray[np.int64]
Number = TypeVar("Number", int, Integers)


class Shape(NamedTuple):
    """The size of a padded batch."""

    source: int
    """Source positions."""
    target: int
    """Decoder steps: target tokens and end symbol."""
    sentences: int


@dataclass(frozen=True)
class Shapes:
    """Rules for the shapes of batches.

    Attributes:
        batch_size: sentences of a batch for "sents"; for "tokens", tokens on the longer side,
            padding included (OpenNMT-py counts two more per source and one less per target).
        batch_type: "sents" or "tokens".
        steps: source lengths and decoder steps are rounded up to multiples of these; (1, 1) for
            batches that are not padded to a shape.
    """

    batch_size: int
    batch_type: str = "sents"
    steps: tuple[int, int] = (8, 4)

    def of_lengths(self, source: int, target: int) -> Shape:
        """Return the shape for sentences of these source tokens and decoder steps at most."""
        source = _round_up(max(source, 1), self.steps[0])
        target = _round_up(max(target, 1), self.steps[1])
        if self.batch_type == "sents":
            return Shape(source, target, self.batch_size)
        # Target ids are one more than decoder steps.
        fitting = self.batch_size // max(source, target + 1)
        if self.steps != (1, 1):  # matrix products prefer multiples of 8
            fitting = max(fitting // 8 * 8, min(fitting, 8))
        return Shape(source, target, max(fitting, 1))

    def of(self, batch: Batch) -> Shape:
        """Return the shape of a batch; an oversized batch keeps all its sentences."""
        assert batch.target is not None
        shape = self.of_lengths(batch.source.size(0), batch.target.size(0) - 1)
        return shape._replace(sentences=max(shape.sentences, len(batch)))

    def group_lengths(self, source: Integers, target: Integers) -> list[Integers]:
        """Cut pairs into groups that fill a shape, smallest shapes first.

        The rest of a shape joins the next larger one. Target lengths are without start and end
        symbol.

        Returns:
            Positions of the pairs of each group.
        """
        lengths = _round_up(np.maximum(source, 1), self.steps[0])
        widths = _round_up(target + 1, self.steps[1])
        order = np.lexsort((target, source, widths, lengths))
        ends = []
        count = longest = widest = 0
        sorted_sizes = zip(lengths[order].tolist(), widths[order].tolist(), strict=True)
        for place, (length, width) in enumerate(sorted_sizes):
            longest, widest = max(longest, length), max(widest, width)
            if count and count + 1 > self.of_lengths(longest, widest).sentences:
                ends.append(place)
                count, longest, widest = 0, length, width
            count += 1
        return np.split(order, ends) if len(order) else []


def _round_up(length: Number, step: int) -> Number:
    return -(-length // step) * step


@dataclass(frozen=True)
class PaddedBatch:
    """A batch padded to its shape, in one tensor, to copy it to a GPU at once.

    Attributes:
        shape: the size of the padded batch.
        ids: ids and lengths, ``(size(shape),)`` int64; `views` returns its parts.
        batch: the batch before padding.
    """

    shape: Shape
    ids: Tensor
    batch: Batch = field(repr=False)


class Views(NamedTuple):
    """The parts of `PaddedBatch.ids`, all int64."""

    source: Tensor
    """Ids ``(source, sentences)``."""
    target: Tensor
    """Ids ``(target + 1, sentences)`` with start and end symbols."""
    lengths: Tensor
    """Source lengths ``(sentences,)``; 1 for padding sentences."""


def views(ids: Tensor, shape: Shape) -> Views:
    """Return the parts of `PaddedBatch.ids`."""
    sizes = [shape.source * shape.sentences, (shape.target + 1) * shape.sentences, shape.sentences]
    source, target, lengths = ids.split(sizes)
    return Views(source.view(-1, shape.sentences), target.view(-1, shape.sentences), lengths)


def size(shape: Shape) -> int:
    """Return the number of elements of `PaddedBatch.ids`."""
    return (shape.source + shape.target + 2) * shape.sentences


def pad_batch(batch: Batch, shapes: Shapes, source_pad: int, target_pad: int) -> PaddedBatch:
    """Pad a batch to its shape.

    Args:
        batch: a batch on the CPU, with one feature and with targets.
        shapes: rules for its shape.
        source_pad: padding id of the source.
        target_pad: padding id of the target, which the loss ignores.
    """
    assert batch.target is not None
    shape = shapes.of(batch)
    ids = torch.empty(size(shape), dtype=torch.int64)
    source, target, lengths = views(ids, shape)
    for part, given, pad in (
        (source, batch.source, source_pad),
        (target, batch.target, target_pad),
    ):
        part.fill_(pad)
        part[: given.size(0), : given.size(1)] = given[:, :, 0]
    lengths.fill_(1)
    lengths[: len(batch)] = batch.source_lengths
    return PaddedBatch(shape, ids, batch)
