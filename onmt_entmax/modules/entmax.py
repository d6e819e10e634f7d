"""Entmax as a module, for a place where a network keeps one, such as PyTorch's `Softmax`."""

from __future__ import annotations

from torch import Tensor, nn

from onmt_entmax.mappings import entmax


class Entmax(nn.Module):
    """`entmax` with its alpha and dimension fixed.

    Args:
        alpha: a number from 1 (softmax) up; 2 is sparsemax.
        dim: the dimension to normalise.
    """

    def __init__(self, alpha: float = 1.5, dim: int = -1) -> None:
        super().__init__()
        self.alpha, self.dim = alpha, dim

    def forward(self, scores: Tensor) -> Tensor:
        """Probabilities of `scores`, any shape."""
        return entmax(scores, self.alpha, self.dim)

    def extra_repr(self) -> str:
        """Its arguments, for printing."""
        return f"alpha={self.alpha:g}, dim={self.dim}"
