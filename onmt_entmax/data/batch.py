"""Batches: padded tensors of token ids, in the layout that OpenNMT-py's modules expect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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

        def move(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device, non_blocking=True)

        return replace(
            self,
            source=self.source.to(device, non_blocking=True),
            source_lengths=self.source_lengths.to(device, non_blocking=True),
            target=move(self.target),
            target_lengths=move(self.target_lengths),
        )


def _pad(rows: Sequence[Sequence[int]], pad: int) -> Tensor:
    """Return rows of ids as a padded ``(length, rows, 1)`` tensor."""
    longest = max(len(row) for row in rows)
    padded = [[*row, *[pad] * (longest - len(row))] for row in rows]
    return torch.tensor(padded, dtype=torch.int64).t().contiguous().unsqueeze(-1)


def make_batch(examples: Sequence[Example], vocabularies: Vocabularies) -> Batch:
    """Pad `examples` to one batch, longest source first."""
    ordered = sorted(examples, key=lambda example: -len(example.source))
    target = target_lengths = None
    if all(example.target is not None for example in ordered):
        vocabulary = vocabularies.target
        targets = [[vocabulary.bos, *(e.target or ()), vocabulary.eos] for e in ordered]
        target = _pad(targets, vocabulary.pad)
        target_lengths = torch.tensor([len(row) for row in targets])
    return Batch(
        source=_pad([example.source for example in ordered], vocabularies.source.pad),
        source_lengths=torch.tensor([len(example.source) for example in ordered]),
        target=target,
        target_lengths=target_lengths,
        indices=tuple(example.index for example in ordered),
    )


Integers = NDArray[np.int64]


def group_by_length(
    examples: Sequence[Example], batch_size: int, batch_type: str
) -> Iterator[list[Example]]:
    """Cut `examples` into groups of similar length, short ones first.

    Args:
        examples: in any order.
        batch_size: sentences per group for "sents"; tokens on the longer side per group, padding
            included, for "tokens" (OpenNMT-py counts two more per source and one less per target).
        batch_type: "sents" or "tokens".
    """
    for group in group_lengths(*lengths_of(examples), batch_size, batch_type):
        yield [examples[at] for at in group.tolist()]


def lengths_of(examples: Sequence[Example]) -> tuple[Integers, Integers]:
    """Return source and target lengths; a missing target counts as empty."""
    source = np.fromiter((len(e.source) for e in examples), np.int64, len(examples))
    target = np.fromiter((len(e.target or ()) for e in examples), np.int64, len(examples))
    return source, target


def group_lengths(
    source: Integers, target: Integers, batch_size: int, batch_type: str
) -> list[Integers]:
    """Cut pairs of these lengths into groups, as `group_by_length`; return their positions."""
    order = np.lexsort((target, source))
    if batch_type == "sents":
        return cut_every(order, batch_size)
    ends = []
    count = longest = 0
    # The target also has a start and an end symbol.
    for place, length in enumerate(np.maximum(source, target + 2)[order].tolist()):
        longest = max(longest, length)
        if count and (count + 1) * longest > batch_size:
            ends.append(place)
            count, longest = 0, length
        count += 1
    return np.split(order, ends) if len(order) else []


def cut_every(order: Integers, size: int) -> list[Integers]:
    """Cut positions into groups of `size`; the last one may be shorter."""
    return [order[begin : begin + size] for begin in range(0, len(order), size)]
