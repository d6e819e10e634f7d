"""The embeddings that enter a recurrence, each distinct token of a batch once.

What a token adds to the gates of the lowest layer depends on nothing else, and a batch has the same
tokens many times (64 sentences of the pilot: a thousand positions, a hundred characters). So it
is computed once for each, and in the way back the gradients of a token's positions are summed
before they are multiplied.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag


@dataclass(frozen=True)
class Repeats:
    """Which row each packed position takes.

    Attributes:
        rows: how many there are.
        places: row of each position, ``(total,)`` int64; None where every position has its own.
    """

    rows: int
    places: Tensor | None = None

    def spread(self, values: Tensor) -> Tensor:
        """``(rows, size)`` to ``(total, size)``."""
        return values if self.places is None else values.index_select(0, self.places)

    def collect(self, gradient: Tensor) -> Tensor:
        """``(total, size)`` to its sums ``(rows, size)``; rows after the total do not count."""
        if self.places is None:
            return gradient[: self.rows]
        counts = torch.bincount(self.places, minlength=self.rows)
        starts = counts.cumsum(0) - counts
        return embedding_bag(self.places.argsort(stable=True), gradient, starts, mode="sum")


def embed(embeddings: nn.Module, tokens: Tensor) -> tuple[Tensor, Repeats]:
    """Embeddings of packed tokens.

    Args:
        embeddings: OpenNMT-py's `Embeddings`.
        tokens: ids ``(total, features)``.

    Returns:
        Embeddings ``(rows, embedding)``, and which of them each position takes.
    """
    # A GPU would have to be waited for, to learn how many there are.
    if tokens.size(1) > 1 or tokens.device.type != "cpu" or embeddings.position_encoding:
        return embeddings(tokens.unsqueeze(0))[0], Repeats(len(tokens))
    distinct, places = tokens[:, 0].unique(return_inverse=True)
    return embeddings(distinct.view(1, -1, 1))[0], Repeats(len(distinct), places)
