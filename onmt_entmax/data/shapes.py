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


NOT_ROUNDED = (1, 1)
"""`Shapes.multiples` of batches that are not padded to a shape"""


@dataclass(frozen=True)
class Shapes:
    """Rules for the shapes of batches.

    Attributes:
        batch_size: sentences of a batch for "sents"; for "tokens", tokens on the longer side,
            padding included (OpenNMT-py counts two more per source and one less per target).
        batch_type: "sents" or "tokens".
        multiples: source lengths are rounded up to multiples of the first number, decoder steps to
            multiples of the second.
    """

    batch_size: int
    batch_type: str = "sents"
    multiples: tuple[int, int] = (8, 4)

    def of_lengths(self, source: int, target: int) -> Shape:
        """Return the shape of a batch of sentences.

        Args:
            source: source tokens of the longest sentence.
            target: decoder steps of the longest sentence.
        """
        source = _round_up(max(source, 1), self.multiples[0])
        target = _round_up(max(target, 1), self.multiples[1])
        if self.batch_type == "sents":
            return Shape(source, target, self.batch_size)
        # A target has one id more than decoder steps: the start symbol.
        fitting = self.batch_size // max(source, target + 1)
        if self.multiples != NOT_ROUNDED and fitting > _ROWS_OF_PRODUCTS:
            fitting = fitting // _ROWS_OF_PRODUCTS * _ROWS_OF_PRODUCTS
        return Shape(source, target, max(fitting, 1))

    def group_lengths(self, source: Integers, target: Integers) -> list[Integers]:
        """Cut pairs into groups that fill a shape, smallest shapes first.

        If too few pairs are left to fill a shape, they join those of the next larger shape.

        Args:
            source: source length of each pair.
            target: target length of each pair, without start and end symbol.

        Returns:
            Positions of the pairs of each group.
        """
        source_lengths = _round_up(np.maximum(source, 1), self.multiples[0])
        decoder_steps = _round_up(target + 1, self.multiples[1])
        order = np.lexsort((target, source, decoder_steps, source_lengths))  # by the last key first
        starts = []  # places in `order` of all groups but the first
        # Of the group so far: pairs, rounded source length and decoder steps.
        count = longest = most_steps = 0
        rounded = zip(source_lengths[order].tolist(), decoder_steps[order].tolist(), strict=True)
        for place, (length, steps) in enumerate(rounded):
            longest = max(longest, length)
            most_steps = max(most_steps, steps)
            if count >= self.of_lengths(longest, most_steps).sentences:
                starts.append(place)
                count, longest, most_steps = 0, length, steps
            count += 1
        return np.split(order, starts) if len(order) else []


def _round_up(length: Number, divisor: int) -> Number:
    """Return the smallest multiple of `divisor` that is not below `length`."""
    return -(-length // divisor) * divisor
