"""Choose the shapes of padded batches, and the sentences that fill one together.

Each shape of a batch needs a CUDA graph of its own. So that there are few, lengths are rounded up,
and each shape has a fixed number of sentences; padding fills the rest. On a CPU nothing is rounded:
then shapes only group sentences of similar length. Grouping depends on the lengths alone, so seed
and position still determine the stream of batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from onmt_entmax.data.token_rows import Integers

# Matrix products are fastest with multiples of this number of rows.
_ROWS_OF_PRODUCTS = 8
Number = TypeVar("Number", int, Integers)


class Shape(NamedTuple):
    """The size of a padded batch.

    Attributes:
        source: source positions.
        target: decoder steps: target tokens and end symbol.
        sentences: how many, padding included.
    """

    source: int
    target: int
    sentences: int


@dataclass(frozen=True)
class Shapes:
    """Rules for the shapes of batches.

    Attributes:
        batch_size: sentences of a batch for "sents"; for "tokens", tokens on the longer side,
            padding included (OpenNMT-py counts two more per source and one less per target).
        batch_type: "sents" or "tokens".
        steps: source lengths are rounded up to multiples of the first, decoder steps of the second;
            (1, 1) for batches that are not padded to a shape.
    """

    batch_size: int
    batch_type: str = "sents"
    steps: tuple[int, int] = (8, 4)

    def of_lengths(self, source: int, target: int) -> Shape:
        """Return the shape of a batch of sentences.

        Args:
            source: source tokens of the longest sentence.
            target: decoder steps of the longest sentence.
        """
        source = _round_up(max(source, 1), self.steps[0])
        target = _round_up(max(target, 1), self.steps[1])
        if self.batch_type == "sents":
            return Shape(source, target, self.batch_size)
        # A target has one id more than decoder steps: the start symbol.
        fitting = self.batch_size // max(source, target + 1)
        if self.steps != (1, 1) and fitting > _ROWS_OF_PRODUCTS:
            fitting = fitting // _ROWS_OF_PRODUCTS * _ROWS_OF_PRODUCTS
        return Shape(source, target, max(fitting, 1))

    def group_lengths(self, source: Integers, target: Integers) -> list[Integers]:
        """Cut pairs into groups that fill a shape, smallest shapes first.

        The rest of a shape joins the next larger one.

        Args:
            source: source length of each pair.
            target: target length of each pair, without start and end symbol.

        Returns:
            Positions of the pairs of each group.
        """
        lengths = _round_up(np.maximum(source, 1), self.steps[0])
        widths = _round_up(target + 1, self.steps[1])  # decoder steps
        order = np.lexsort((target, source, widths, lengths))  # the last key comes first
        starts = []  # places in `order` of all groups but the first
        count = longest = widest = 0  # pairs, source length and steps of the group so far
        rounded = zip(lengths[order].tolist(), widths[order].tolist(), strict=True)
        for place, (length, width) in enumerate(rounded):
            longest = max(longest, length)
            widest = max(widest, width)
            if count > 0 and count >= self.of_lengths(longest, widest).sentences:
                starts.append(place)
                count, longest, widest = 0, length, width
            count += 1
        return np.split(order, starts) if len(order) else []


def _round_up(length: Number, step: int) -> Number:
    """Return the next multiple of `step`."""
    return -(-length // step) * step
