"""An encoder that tells the decoder which source tokens are of a kind, such as tags.

Only the encoder sees ids. What it knows of them goes into one more component of the source
vectors, 1 for marked tokens and 0 for others, so that whatever happens to these vectors on their
way to the attention (a search selects, repeats and joins them) happens to the marks.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, cat

from onmt_entmax.modules.recurrence.encoder import FastRNNEncoder


class MarkingRNNEncoder(FastRNNEncoder):
    """A recurrent encoder that marks some tokens in the last component of the source vectors."""

    marks: Tensor

    def set_marks(self, marks: Tensor) -> None:
        """Say which tokens are marked: (vocabulary,) bool."""
        # Not a weight: it follows from the vocabulary and the configuration.
        self.register_buffer("marks", marks.to(torch.float32), persistent=False)

    def forward(self, src: Tensor, lengths: Tensor | None = None) -> tuple[Any, Tensor, Any]:
        """As `FastRNNEncoder`; the memory bank is ``(src_len, batch, hidden + 1)``."""
        final, bank, lengths = super().forward(src, lengths)
        marks = self.marks[src[:, :, 0].t()].to(bank.dtype)
        # Sentences lie together in memory, as attention reads them.
        marked = cat([bank.transpose(0, 1), marks.unsqueeze(2)], dim=2)
        return final, marked.transpose(0, 1), lengths

    def prepared(self, vocabulary_size: int) -> None:
        """There is no quicker form for a search."""
