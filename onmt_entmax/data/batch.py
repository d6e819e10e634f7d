"""Batches: padded tensors of token ids, in the layout that OpenNMT-py's modules expect.

Batches are made

- of a list of `Example`, in searches and validations: `make_batch`, `batches_by_length`;
- of rows of `TokenRows`, in trainings, whose millions of pairs would take more memory as lists:
  `batch_of_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.data.shapes import NOT_ROUNDED, Shapes
from onmt_entmax.data.token_rows import Integers, TokenRows
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary


@dataclass(frozen=True, slots=True)
class Example:
    """One sentence pair as token ids.

    Attributes:
        source: ids of the source.
        target: ids of the target, without start and end symbol; None when unknown.
        index: position of the example in the caller's order.
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


def make_batch(examples: Sequence[Example], vocabularies: Vocabularies) -> Batch:
    """Return examples as a batch, longest source first; without targets unless all have one."""
    targets = [example.target for example in examples if example.target is not None]
    return batch_of_rows(
        source=TokenRows.of([example.source for example in examples]),
        target=TokenRows.of(targets) if len(targets) == len(examples) else None,
        rows=np.arange(len(examples)),
        indices=np.array([example.index for example in examples]),
        vocabularies=vocabularies,
    )


def batches_by_length(
    examples: Sequence[Example], batch_size: int, vocabularies: Vocabularies
) -> Iterator[Batch]:
    """Yield batches of examples of similar length, short ones first.

    Args:
        examples: in any order.
        batch_size: the most sentences of a batch.
        vocabularies: the vocabularies that the ids belong to.
    """
    count = len(examples)
    sources = np.fromiter((len(example.source) for example in examples), np.int64, count)
    targets = np.fromiter((len(example.target or ()) for example in examples), np.int64, count)
    for group in Shapes(batch_size, multiples=NOT_ROUNDED).group_lengths(sources, targets):
        yield make_batch([examples[index] for index in group.tolist()], vocabularies)


def batch_of_rows(
    *,
    source: TokenRows,
    target: TokenRows | None,
    rows: Integers,
    indices: Integers,
    vocabularies: Vocabularies,
) -> Batch:
    """Return some rows of source and target as a batch, longest source first.

    Args:
        source: sources of all rows.
        target: targets of all rows, without start and end symbol; None when unknown.
        rows: which rows the batch has.
        indices: become `Batch.indices`, in the order of `rows`.
        vocabularies: the vocabularies that the ids belong to.
    """
    order = np.argsort(-source.lengths(rows), kind="stable")
    rows = rows[order]
    source_ids, source_lengths = source.padded(rows, vocabularies.source.pad)
    batch = Batch(
        source=torch.from_numpy(source_ids).unsqueeze(-1),
        source_lengths=torch.from_numpy(source_lengths),
        target=None,
        target_lengths=None,
        indices=tuple(indices[order].tolist()),
    )
    if target is None:
        return batch
    target_ids, target_lengths = _with_symbols(target, rows, vocabularies.target)
    return replace(
        batch,
        target=torch.from_numpy(target_ids).unsqueeze(-1),
        target_lengths=torch.from_numpy(target_lengths),
    )


def _with_symbols(
    target: TokenRows, rows: Integers, vocabulary: Vocabulary
) -> tuple[Integers, Integers]:
    """Return the padded ids of targets with start and end symbol, and their lengths.

    Args:
        target: targets of all rows, without these symbols.
        rows: the rows of the batch, in the order of its columns.
        vocabulary: has the symbols.

    Returns:
        Ids ``(longest + 2, rows)``, and lengths ``(rows,)`` with both symbols.
    """
    tokens, lengths = target.padded(rows, vocabulary.pad)
    ids = np.full((len(tokens) + 2, len(rows)), vocabulary.pad, np.int64)
    ids[0] = vocabulary.bos
    ids[1:-1] = tokens
    ids[lengths + 1, np.arange(len(rows))] = vocabulary.eos
    return ids, lengths + 2
