"""Checks of a backend's steps, cells and attention, against PyTorch's."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.recurrence.backends.contract import StepBackend
from onmt_entmax.recurrence.backends.pytorch import PyTorchBackend
from onmt_entmax.recurrence.source_memory import RowSources, SourceMemory

ROWS, HIDDEN = 5, 37  # no multiples of the width of vectors
Backend = type[StepBackend]

dropout = pytest.mark.parametrize("has_dropout", [False, True], ids=["plain", "dropout"])


def assert_close(
    results: dict[str, Tensor],
    expected: dict[str, Tensor],
    *,
    rounded: str,
    dtype: torch.dtype,
    atol: float,
) -> None:
    """Compare the results of a step by their names.

    Args:
        results: results of the backend under test.
        expected: results of PyTorch.
        rounded: name of the only result that is computed in `dtype`; the others are in float32.
        dtype: type of that result, which may be bfloat16.
        atol: absolute tolerance.
    """
    for name, result in expected.items():
        is_rounded = name == rounded and dtype == torch.bfloat16
        # A rounding to bfloat16 may go to the neighbour. Sums of float32 differ by their order.
        tolerance = 2**-8 if is_rounded else 1e-4
        torch.testing.assert_close(
            results[name],
            result,
            rtol=tolerance,
            atol=atol,
            msg=lambda message, name=name: f"{name}: {message}",
        )


# --- cells -----------------------------------------------------------------------------------


class CellStep(NamedTuple):
    """A step of an LSTM cell; leading dimensions are one of directions, or none.

    Attributes:
        gates: ``(*directions, ROWS, 4 * HIDDEN)``.
        summand: added to the gates; all rows share its memory, so it has strides.
        cell: before the step, ``(*directions, ROWS, HIDDEN)``.
        factors: of dropout, ``(ROWS, HIDDEN)``; None without dropout.
        grads: gradients of output, hidden state and cell, each as `cell`, in one wider tensor.
    """

    gates: Tensor
    summand: Tensor
    cell: Tensor
    factors: Tensor | None
    grads: tuple[Tensor, ...]

    def results_of(self, backend: Backend) -> dict[str, Tensor]:
        """Return what a backend computes, forwards and backwards."""
        # Gates may be overwritten.
        activations, output, hidden, cell_after = backend.cell_forward(
            self.gates.clone(), self.summand, self.cell, self.factors
        )
        grad_gates = torch.zeros_like(self.gates)
        grad_cell = backend.cell_backward(
            activations, self.cell, cell_after, self.factors, self.grads, grad_gates
        )
        return {
            "activations": activations,
            "output": output,
            "hidden": hidden,
            "cell": cell_after,
            "gradient of gates": grad_gates.float(),
            "gradient of the cell": grad_cell,
        }


def check_cells(
    backend: Backend,
    *,
    has_dropout: bool,
    device: str,
    directions: tuple[int, ...] = (),
    dtype: torch.dtype = torch.float32,
) -> None:
    """Compare a random step of a cell and its gradient with PyTorch's.

    Args:
        backend: the backend under test.
        has_dropout: whether the output has dropout factors.
        device: device of all tensors.
        directions: leading shape of the states: ``(2,)`` for both directions, or ``()``.
        dtype: type of gates and their gradient.
    """
    torch.manual_seed(0)
    gates = torch.randn(*directions, ROWS, 4 * HIDDEN, device=device).to(dtype)
    step = CellStep(
        gates,
        summand=torch.randn(*directions, 1, 4 * HIDDEN, device=device).expand_as(gates),
        cell=torch.randn(*directions, ROWS, HIDDEN, device=device),
        factors=torch.rand(ROWS, HIDDEN, device=device) if has_dropout else None,
        grads=torch.randn(*directions, ROWS, 3 * HIDDEN, device=device).split(HIDDEN, -1),
    )
    assert_close(
        step.results_of(backend),
        step.results_of(PyTorchBackend),
        rounded="gradient of gates",
        dtype=dtype,
        atol=1e-5,
    )


# --- attention -------------------------------------------------------------------------------


class AttentionStep(NamedTuple):
    """A step of attention of a decoder, in which rows share sentences.

    Attributes:
        sources: what the rows attend to.
        query: ``(ROWS, HIDDEN)``.
        projected: projected query, ``(ROWS, HIDDEN)``.
        factors: of dropout, ``(ROWS, HIDDEN)``; None without dropout.
        grad_output: ``(ROWS, HIDDEN)``, half of a wider tensor, so that its rows have a stride.
    """

    sources: RowSources
    query: Tensor
    projected: Tensor
    factors: Tensor | None
    grad_output: Tensor

    def results_of(self, backend: Backend, source: int) -> dict[str, Tensor]:
        """Return what a backend computes, forwards and backwards.

        Args:
            backend: the backend.
            source: length of the longest source.
        """
        weights, grad_scores = self.query.new_zeros(2, ROWS, source)
        output = backend.attend(self.sources, self.query, self.projected, self.factors, weights)
        grad_projected = torch.zeros_like(self.projected)
        grad_query = backend.attend_backward(
            self.sources, self.query, self.factors, weights, output, self.grad_output,
            grad_projected, grad_scores,
        )  # fmt: skip
        return {
            "weights": weights,
            "output": output,
            "gradient of scores": grad_scores,
            "gradient of queries": grad_query,
            "gradient of projected queries": grad_projected.float(),
        }


def random_sources(source: int, alpha: float, device: str) -> RowSources:
    """Return what `ROWS` rows of four sentences attend to; two rows are of the first sentence.

    Args:
        source: length of the longest source.
        alpha: alpha of entmax.
        device: device of all tensors.
    """
    keys, values = torch.randn(2, 4, source, HIDDEN, device=device) * 0.3
    lengths = torch.tensor([source, 3, source - 4, 1], device=device)
    owners = torch.tensor([0, 0, 2, 1, 3], device=device)
    return RowSources(SourceMemory(keys, values, lengths), owners, alpha)


def check_attention(
    backend: Backend,
    *,
    alpha: float,
    has_dropout: bool,
    source: int,
    device: str,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Compare a random step of attention and its gradients with PyTorch's.

    Args:
        backend: the backend under test.
        alpha: alpha of entmax.
        has_dropout: whether the output has dropout factors.
        source: length of the longest source, at least 5: another one is shorter by 4.
        device: device of all tensors.
        dtype: type of the projected queries and their gradient.
    """
    torch.manual_seed(0)
    sources = random_sources(source, alpha, device)
    query, projected = torch.randn(2, ROWS, HIDDEN, device=device)
    factors = None
    if has_dropout:
        factors = (torch.rand(ROWS, HIDDEN, device=device) < 0.7).float() / 0.7
    grad_output = torch.randn(ROWS, 2 * HIDDEN, device=device)[:, HIDDEN:]
    step = AttentionStep(sources, query, projected.to(dtype), factors, grad_output)
    assert_close(
        step.results_of(backend, source),
        step.results_of(PyTorchBackend, source),
        rounded="gradient of projected queries",
        dtype=dtype,
        atol=2e-5,
    )
