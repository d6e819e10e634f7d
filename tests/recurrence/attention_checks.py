"""The check of a backend's attention against PyTorch's."""

from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.recurrence.backends.pytorch import PyTorchBackend
from onmt_entmax.recurrence.source_memory import RowSources, SourceMemory
from tests.recurrence.backend_checks import HIDDEN, ROWS, Backend, assert_close, dropout_factors


class AttentionStep(NamedTuple):
    """A step of a decoder's attention, in which rows share sentences.

    Attributes:
        sources: the sources that the rows attend to.
        query: ``(ROWS, HIDDEN)``.
        projected: projected query, ``(ROWS, HIDDEN)``.
        factors: dropout factors, ``(ROWS, HIDDEN)``; None without dropout.
        grad_output: upstream gradient, ``(ROWS, HIDDEN)``: half of a wider tensor, so that its rows
            have a stride.
    """

    sources: RowSources
    query: Tensor
    projected: Tensor
    factors: Tensor | None
    grad_output: Tensor

    def results_of(self, backend: Backend) -> dict[str, Tensor]:
        """Return what a backend computes, forwards and backwards, by name."""
        source_length = self.sources.memory.keys.size(1)
        weights, grad_scores = self.query.new_zeros(2, ROWS, source_length)
        output = backend.attend(self.sources, self.query, self.projected, self.factors, weights)
        grad_projected = torch.zeros_like(self.projected)
        grad_query = backend.attend_backward(
            self.sources,
            self.query,
            self.factors,
            weights,
            output,
            grad_output=self.grad_output,
            grad_projected=grad_projected,
            grad_scores=grad_scores,
        )
        return {
            "weights": weights,
            "output": output,
            "gradient of scores": grad_scores,
            "gradient of queries": grad_query,
            "gradient of projected queries": grad_projected,
        }


def random_sources(source_length: int, alpha: float, device: str) -> RowSources:
    """Return the sources of four sentences, which have five rows: two belong to the first sentence.

    Args:
        source_length: length of the longest source, 5 or more: another one is shorter by 4.
        alpha: alpha of entmax.
        device: device of all tensors.
    """
    # Small vectors: their scores differ by about 0.5, so that supports have several positions.
    keys, values = torch.randn(2, 4, source_length, HIDDEN, device=device) * 0.3
    lengths = torch.tensor([source_length, 3, source_length - 4, 1], device=device)
    owners = torch.tensor([0, 0, 2, 1, 3], device=device)
    return RowSources(SourceMemory(keys, values, lengths), owners, alpha)


def check_attention(
    backend: Backend,
    *,
    alpha: float,
    has_dropout: bool,
    source_length: int,
    device: str,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Compare a random step of attention and its gradients with PyTorch's.

    Args:
        backend: the backend under test.
        alpha: alpha of entmax.
        has_dropout: whether the output has dropout factors.
        source_length: length of the longest source, 5 or more.
        device: device of all tensors.
        dtype: type of the projected queries and their gradient.
    """
    torch.manual_seed(0)
    sources = random_sources(source_length, alpha, device)
    query, projected = torch.randn(2, ROWS, HIDDEN, device=device)
    step = AttentionStep(
        sources,
        query,
        projected.to(dtype),
        factors=dropout_factors(has_dropout, device),
        grad_output=torch.randn(ROWS, 2 * HIDDEN, device=device)[:, HIDDEN:],
    )
    # Results are of the order of 1, and have about two hundred machine epsilons: they are sums over
    # HIDDEN units and over source positions.
    assert_close(step.results_of(backend), step.results_of(PyTorchBackend), atol=2e-5)
