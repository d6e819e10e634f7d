"""Batches: padded tensors of token ids, in the layout that OpenNMT-py's modules expect.

`Shapes` decides which sentences go together. Each shape needs a CUDA graph. There, lengths are
rounded up, and each shape has a fixed number of sentences; padding fills the rest. Grouping depends
on the examples alone, so seed and position still determine the stream of batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from onmt_entmax.data.vocabulary import Vocabularies


@dataclass(frozen=True, slots=True)  # there may be millions
class Example:
    """One sentence pair as token ids; `target` has no start or end symbol, or is None.

    `index` is the position of the example in the caller's order.
    """

    source: Sequence[int]
    target: Sequence[int] | None
    index: int


@dataclass(frozen=True)
class Batch:
    """Sentences of similar length, longest source first, as packed encoders need them.

    Attributes:
        source: ids, ``(src_len, batch, 1)``, int64, padded.
        source_lengths: ``(batch,)``, int64, never increasing.
        target: ids with start and end symbol, ``(tgt_len, batch, 1)``, padded; None when unknown.
        target_lengths: ``(batch,)``, start and end symbol included; None when unknown.
        indices: `Example.index` of each column.
    """

    source: Tensor
    source_lengths: Tensor
    target: Tensor | None
    target_lengths: Tensor | None
    indices: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.indices)

    def to(self, device: torch.device) -> Batch:
        """Return the batch on `device`."""
        moved: dict[str, Any] = {
            name: part.to(device, non_blocking=True)
            for name, part in vars(self).items()
            if isinstance(part, Tensor)
        }
        return replace(self, **moved)


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
class TokenRows:
    """Token ids of many sentences, one after the other.

    Attributes:
        ids: ids of all tokens.
        starts: index in `ids` of each sentence's first token, ``(sentences + 1,)``; the last is the
            end.
    """

    ids: NDArray[np.int32]
    starts: Integers

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> TokenRows:
        """Return the rows of some sentences."""
        lengths = [0, *map(len, sentences)]
        ids = np.fromiter(chain.from_iterable(sentences), np.int32, sum(lengths))
        return cls(ids, np.cumsum(lengths, dtype=np.int64))

    def lengths(self, rows: Integers) -> Integers:
        """Return the number of tokens of some rows."""
        return self.starts[rows + 1] - self.starts[rows]

    def padded(self, rows: Integers, pad: int) -> tuple[Integers, Integers]:
        """Return the ids of some rows, ``(length, rows)``, and their lengths."""
        lengths = self.lengths(rows)
        position = np.arange(int(lengths.max(initial=0)))[:, None]
        place = np.minimum(self.starts[rows] + position, len(self.ids) - 1)
        return np.where(position < lengths, self.ids[place], pad).astype(np.int64), lengths


def padded_batch(
    source: TokenRows,
    target: TokenRows | None,
    rows: Integers,
    indices: Integers,
    vocabularies: Vocabularies,
) -> Batch:
    """Return some rows of source and target as a batch, longest source first.

    Args:
        source: sources of all rows.
        target: targets, without start and end symbol; None when unknown.
        rows: those of the batch.
        indices: become `Batch.indices`, in the order of `rows`.
        vocabularies: of the ids.
    """
    order = np.argsort(-source.lengths(rows), kind="stable")
    rows, numbers = rows[order], tuple(indices[order].tolist())
    ids, lengths = source.padded(rows, vocabularies.source.pad)
    sources = torch.from_numpy(ids).unsqueeze(-1), torch.from_numpy(lengths)
    if target is None:
        return Batch(*sources, None, None, numbers)
    vocabulary = vocabularies.target
    inner, lengths = target.padded(rows, vocabulary.pad)
    whole = np.full((len(inner) + 2, len(rows)), vocabulary.pad, np.int64)
    whole[0] = vocabulary.bos
    whole[1:-1] = inner
    whole[lengths + 1, np.arange(len(rows))] = vocabulary.eos
    return Batch(
        *sources, torch.from_numpy(whole).unsqueeze(-1), torch.from_numpy(lengths + 2), numbers
    )


def make_batch(examples: Sequence[Example], vocabularies: Vocabularies) -> Batch:
    """Return examples as a batch, longest source first."""
    targets = [example.target for example in examples if example.target is not None]
    return padded_batch(
        TokenRows.of([example.source for example in examples]),
        TokenRows.of(targets) if len(targets) == len(examples) else None,
        np.arange(len(examples)),
        np.array([example.index for example in examples]),
        vocabularies,
    )


def batches_by_length(
    examples: Sequence[Example], batch_size: int, vocabularies: Vocabularies
) -> Iterator[Batch]:
    """Yield batches of at most `batch_size` examples of similar length, short ones first."""
    source = np.fromiter((len(e.source) for e in examples), np.int64, len(examples))
    target = np.fromiter((len(e.target or ()) for e in examples), np.int64, len(examples))
    for group in Shapes(batch_size, steps=(1, 1)).group_lengths(source, target):
        yield make_batch([examples[at] for at in group.tolist()], vocabularies)
