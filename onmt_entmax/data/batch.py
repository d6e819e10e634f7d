"""Batches: padded tensors of token ids, in the layout that OpenNMT-py's modules expect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.data.shapes import Shapes
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


def group_by_length(
    examples: Sequence[Example], batch_size: int, batch_type: str
) -> Iterator[list[Example]]:
    """Cut `examples`, in any order, into groups of similar length, short ones first.

    Size and type of the groups are those of `Shapes`; a missing target counts as empty.
    """
    source = np.fromiter((len(e.source) for e in examples), np.int64, len(examples))
    target = np.fromiter((len(e.target or ()) for e in examples), np.int64, len(examples))
    for group in Shapes(batch_size, batch_type, (1, 1)).group_lengths(source, target):
        yield [examples[at] for at in group.tolist()]
