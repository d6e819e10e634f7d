"""What OpenNMT-py's decoders read of the sources, stored once per sentence instead of per row.

A row is a prefix of an output; those of one sentence read the same source:

    source          owner of each row       `of_rows`: what a step reads
    sentence 0      row 0: 0                source of sentence 0
    sentence 1      row 1: 0                source of sentence 0
    sentence 2      row 2: 2                source of sentence 2
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class DecoderSource:
    """What a decoder reads of the source of some sentences."""

    memory_bank: Tensor
    """`(source length, sentences, hidden)`"""
    lengths: Tensor
    """`(sentences,)`"""
    src: Tensor | None = None
    """`(source length, sentences, 1)` ids, for a Transformer"""
    cache: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    """Keys and values of a Transformer's layers, `(sentences, heads, source length, size)`; empty
    until the first step has computed them, see `OpenNMTDecoding`"""

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def is_of_transformer(self) -> bool:
        """Whether a Transformer reads it, and not a recurrent decoder."""
        return self.src is not None

    def rows(self, owner: Tensor) -> DecoderSource:
        """Return the source of each row, or of chosen sentences.

        Args:
            owner: `(rows,)` sentence of each row, on the CPU.
        """
        if torch.equal(owner, torch.arange(len(self))):
            return self
        index = owner.to(self.lengths.device)

        def pick(tensor: Tensor, dim: int) -> Tensor:
            if len(self) > 1:
                return tensor.index_select(dim, index)
            # All rows are of the one sentence: views of it, without a copy.
            return tensor.expand([len(owner) if d == dim else -1 for d in range(tensor.dim())])

        return DecoderSource(
            memory_bank=pick(self.memory_bank, 1),
            lengths=pick(self.lengths, 0),
            src=None if self.src is None else pick(self.src, 1),
            cache={
                layer: {name: pick(tensor, 0) for name, tensor in tensors.items()}
                for layer, tensors in self.cache.items()
            },
        )


@dataclass(frozen=True)
class DecoderSources:
    """The sources of some rows; states whose rows have the same sources share one object."""

    source: DecoderSource
    owner: Tensor
    """`(rows,)` position in `source` of each row's sentence, on the CPU"""

    @cached_property
    def of_rows(self) -> DecoderSource:
        """The source of each row, copied when the first step needs it."""
        return self.source.rows(self.owner)

    def compact(self) -> DecoderSources:
        """Return the same without the sources of sentences that no row belongs to."""
        used, owner = torch.unique(self.owner, return_inverse=True)
        if len(used) == len(self.source):
            return self
        return DecoderSources(self.source.rows(used), owner)

    def select(self, rows: Tensor) -> DecoderSources:
        """Return the sources of `rows` `(new rows,)` int64."""
        owner = self.owner[rows]
        if torch.equal(owner, self.owner):
            return self
        if self.source.is_of_transformer and not self.source.cache:
            # A Transformer's first step needs one row for each sentence: it fills the cache.
            return DecoderSources(self.source.rows(owner), torch.arange(len(owner)))
        selected = DecoderSources(self.source, owner)
        # Copying the sources that are left pays once half of the sentences have gone.
        return selected.compact() if 2 * len(torch.unique(owner)) <= len(self.source) else selected
