"""Keys and values of sources, which the rows of a step attend to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad


@dataclass(frozen=True)
class SourceMemory:
    """Keys and values of some sentences' sources, one copy for each sentence."""

    keys: Tensor
    """``(sentences, source length, hidden)``"""
    values: Tensor
    """``(sentences, source length, hidden)``"""
    lengths: Tensor
    """``(sentences,)``"""

    def __len__(self) -> int:
        return len(self.lengths)

    def select(self, sentences: Tensor) -> SourceMemory:
        """Return the memory of chosen sentences ``(chosen,)`` int64."""
        sentences = sentences.to(self.lengths.device)
        lengths = self.lengths.index_select(0, sentences)
        longest = int(lengths.max())
        keys = self.keys[:, :longest].index_select(0, sentences)
        values = self.values[:, :longest].index_select(0, sentences)
        return SourceMemory(keys, values, lengths)

    @staticmethod
    def join(parts: Sequence[SourceMemory]) -> SourceMemory:
        """Concatenate the sentences of all parts."""
        longest = max(part.keys.size(1) for part in parts)

        def joined(tensors: list[Tensor]) -> Tensor:
            return torch.cat([pad(each, (0, 0, 0, longest - each.size(1))) for each in tensors])

        return SourceMemory(
            joined([part.keys for part in parts]),
            joined([part.values for part in parts]),
            torch.cat([part.lengths for part in parts]),
        )


@dataclass(frozen=True)
class Sources:
    """What the rows of a step attend to.

    Attributes:
        keys: what queries are compared with, ``(sentences, source, hidden)``, contiguous.
        values: what context vectors are sums of, likewise.
        lengths: real source positions, ``(sentences,)`` int64, at least 1.
        owners: the sentence of each row, ``(rows,)`` int64; None: row i has sentence i.
        alpha: of entmax.
    """

    keys: Tensor
    values: Tensor
    lengths: Tensor
    owners: Tensor | None
    alpha: float

    def of_rows(self, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys, values and lengths of each row."""
        parts = self.keys, self.values, self.lengths
        if self.owners is None:
            return tuple(part[:rows] for part in parts)  # type: ignore[return-value]
        return tuple(part.index_select(0, self.owners) for part in parts)  # type: ignore[return-value]
