"""Keys and values of sources, and which source each row of a step attends to."""

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
    """``(sentences, source length, hidden)``, contiguous. Scores are products with them."""
    values: Tensor
    """``(sentences, source length, hidden)``, contiguous. Context vectors are sums of them."""
    lengths: Tensor
    """Real source positions, ``(sentences,)`` int64, at least 1."""

    def __len__(self) -> int:
        return len(self.lengths)

    def select(self, sentences: Tensor) -> SourceMemory:
        """Return the memory of some sentences, ``(chosen,)`` int64, cut to the longest source."""
        sentences = sentences.to(self.lengths.device)
        lengths = self.lengths.index_select(0, sentences)
        longest = int(lengths.max())
        keys = self.keys[:, :longest].index_select(0, sentences)
        values = self.values[:, :longest].index_select(0, sentences)
        return SourceMemory(keys, values, lengths)

    @staticmethod
    def join(parts: Sequence[SourceMemory]) -> SourceMemory:
        """Return the memory of all parts' sentences, one part after the other."""
        longest = max(part.keys.size(1) for part in parts)

        def joined(tensors: list[Tensor]) -> Tensor:
            return torch.cat(
                [pad(tensor, (0, 0, 0, longest - tensor.size(1))) for tensor in tensors]
            )

        return SourceMemory(
            joined([part.keys for part in parts]),
            joined([part.values for part in parts]),
            torch.cat([part.lengths for part in parts]),
        )


@dataclass(frozen=True)
class RowSources:
    """The sources that the rows of a step attend to, and the alpha with which they do."""

    memory: SourceMemory
    """The sources of the rows' sentences."""
    owners: Tensor | None
    """The sentence of each row, ``(rows,)`` int64; None: row i belongs to sentence i."""
    alpha: float
    """Alpha of the attention's entmax."""

    def by_row(self, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys and values ``(rows, source length, hidden)`` and lengths of each row.

        Args:
            rows: number of rows. Without owners, they belong to the first sentences; the later
                sentences have ended.
        """
        memory = self.memory
        if self.owners is None:
            return memory.keys[:rows], memory.values[:rows], memory.lengths[:rows]
        return (
            memory.keys.index_select(0, self.owners),
            memory.values.index_select(0, self.owners),
            memory.lengths.index_select(0, self.owners),
        )
