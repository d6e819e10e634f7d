"""The sources that OpenNMT-py's decoders read, stored once per sentence instead of once per row.

A row of the decoder's batch is a prefix of an output. All prefixes of a sentence read its source,
so a `SourceBatch` has one column per sentence, and the `owner` of a row is its sentence's column.
Here sentence 0 has two prefixes, sentence 2 has one, and sentence 1 is done:

    row     owner       source that a step reads
    0       column 0    of sentence 0
    1       column 0    of sentence 0
    2       column 2    of sentence 2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn.functional import pad


@dataclass(frozen=True)
class SourceBatch:
    """What a decoder reads of some sources, one column for each."""

    memory_bank: Tensor
    """`(source length, columns, hidden)`"""
    lengths: Tensor
    """`(columns,)`"""
    src: Tensor | None = None
    """`(source length, columns, 1)` ids, which only a Transformer reads"""
    cache: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    """For each layer of a Transformer, the keys and values that its first step computes of the
    sources, `(columns, heads, source length, size)`; empty before that step"""

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.lengths)

    @property
    def is_for_transformer(self) -> bool:
        """Whether a Transformer reads these sources, not a recurrent decoder."""
        return self.src is not None

    def select(self, columns: Tensor) -> SourceBatch:
        """Return a batch of some of the columns, in any order and as often as they are named.

        Args:
            columns: `(new columns,)` int64, on the CPU.
        """
        if torch.equal(columns, torch.arange(len(self))):
            return self
        index = columns.to(self.lengths.device)

        def pick(tensor: Tensor, dim: int) -> Tensor:
            if len(self) > 1:
                return tensor.index_select(dim, index)
            # All new columns are the only one: views of it, without a copy.
            return tensor.expand([len(columns) if d == dim else -1 for d in range(tensor.dim())])

        return SourceBatch(
            memory_bank=pick(self.memory_bank, 1),
            lengths=pick(self.lengths, 0),
            src=None if self.src is None else pick(self.src, 1),
            cache={
                layer: {name: pick(tensor, 0) for name, tensor in tensors.items()}
                for layer, tensors in self.cache.items()
            },
        )


@dataclass(frozen=True)
class SharedSources:
    """The sources of a decoder's rows; states whose rows have the same owners share one object."""

    stored: SourceBatch
    """One column per sentence."""
    owner: Tensor
    """`(rows,)` int64 column in `stored` of each row's sentence, on the CPU"""

    @cached_property
    def per_row(self) -> SourceBatch:
        """The same sources, one column per row, as a step reads them.

        They are copied when the first step asks for them.
        """
        return self.stored.select(self.owner)

    def compact(self) -> SharedSources:
        """Return the same without the sources of sentences that no row belongs to."""
        used, owner = torch.unique(self.owner, return_inverse=True)
        if len(used) == len(self.stored):
            return self
        return SharedSources(self.stored.select(used), owner)

    def select(self, rows: Tensor) -> SharedSources:
        """Return the sources of some rows.

        Args:
            rows: `(new rows,)` int64, on the CPU.
        """
        owner = self.owner[rows]
        if torch.equal(owner, self.owner):
            return self
        if self.stored.is_for_transformer and not self.stored.cache:
            # The first step of a Transformer fills the cache, one row per column: give each row a
            # column of its own.
            return SharedSources(self.stored.select(owner), torch.arange(len(owner)))
        selected = SharedSources(self.stored, owner)
        # A copy without the unused sources pays once half of the sentences are done.
        return selected.compact() if 2 * len(torch.unique(owner)) <= len(self.stored) else selected

    @staticmethod
    def join(parts: Sequence[SharedSources]) -> SharedSources:
        """Return the sources of the rows of several recurrent states, without unused sources."""
        compact = [part.compact() for part in parts]
        banks = [part.stored.memory_bank for part in compact]
        longest = max(len(bank) for bank in banks)
        stored = SourceBatch(
            # Padding goes to the end of the first dimension, the positions of the source.
            torch.cat([pad(bank, (0, 0, 0, 0, 0, longest - len(bank))) for bank in banks], 1),
            torch.cat([part.stored.lengths for part in compact]),
        )
        *starts, _ = accumulate((len(part.stored) for part in compact), initial=0)
        owners = [part.owner + start for part, start in zip(compact, starts, strict=True)]
        return SharedSources(stored, torch.cat(owners))
