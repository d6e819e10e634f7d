"""Checks of a backend's steps, cells and attention, against PyTorch's."""

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
    """Compare by name what a step gives.

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


def check_cells(
    backend: Backend,
    *,
    has_dropout: bool,
    device: str,
    directions: tuple[int, ...] = (),
    dtype: torch.dtype = torch.float32,
) -> None:
    """Compare a cell and its gradient; summands and gradients have strides.

    Args:
        backend: the backend under test.
        has_dropout: whether the output has dropout factors.
        device: device of all tensors.
        directions: leading shape of the states: ``(2,)`` for both directions, or ``()``.
        dtype: type of gates and their gradient.
    """
    torch.manual_seed(0)
    gates = torch.randn(*directions, ROWS, 4 * HIDDEN, device=device).to(dtype)
    summand = torch.randn(*directions, 1, 4 * HIDDEN, device=device).expand_as(gates)
    cell = torch.randn(*directions, ROWS, HIDDEN, device=device)
    factors = torch.rand(ROWS, HIDDEN, device=device) if has_dropout else None
    # Gradients of output, hidden state and cell, each (*directions, ROWS, HIDDEN).
    side_by_side = torch.randn(*directions, ROWS, 3 * HIDDEN, device=device)
    grads = side_by_side.split(HIDDEN, -1)

    def results_of(tested: Backend) -> dict[str, Tensor]:
        # Gates may be overwritten.
        activations, output, hidden, cell_after = tested.cell_forward(
            gates.clone(), summand, cell, factors
        )
        grad_gates = torch.zeros_like(gates)
        grad_cell = tested.cell_backward(activations, cell, cell_after, factors, grads, grad_gates)
        return {
            "activations": activations,
            "output": output,
            "hidden": hidden,
            "cell": cell_after,
            "gradient of gates": grad_gates.float(),
            "gradient of the cell": grad_cell,
        }

    assert_close(
        results_of(backend),
        results_of(PyTorchBackend),
        rounded="gradient of gates",
        dtype=dtype,
        atol=1e-5,
    )


def check_attention(
    backend: Backend,
    *,
    alpha: float,
    has_dropout: bool,
    source: int,
    device: str,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Compare a step of attention and its gradients, with rows that share sentences.

    Args:
        backend: the backend under test.
        alpha: alpha of entmax.
        has_dropout: whether the output has dropout factors.
        source: length of the longest source, at least 5: another one is shorter by 4.
        device: device of all tensors.
        dtype: type of the projected queries and their gradient.
    """
    torch.manual_seed(0)
    keys, values = torch.randn(2, 4, source, HIDDEN, device=device) * 0.3  # of four sentences
    lengths = torch.tensor([source, 3, source - 4, 1], device=device)
    owners = torch.tensor([0, 0, 2, 1, 3], device=device)
    sources = RowSources(SourceMemory(keys, values, lengths), owners, alpha)
    query, projected = torch.randn(2, ROWS, HIDDEN, device=device)
    projected = projected.to(dtype)
    factors = None
    if has_dropout:
        factors = (torch.rand(ROWS, HIDDEN, device=device) < 0.7).float() / 0.7
    # The second half of a wider tensor, so that its rows have a stride.
    grad_output = torch.randn(ROWS, 2 * HIDDEN, device=device)[:, HIDDEN:]

    def results_of(tested: Backend) -> dict[str, Tensor]:
        weights, grad_scores = torch.zeros(2, ROWS, source, device=device)
        output = tested.attend(sources, query, projected, factors, weights)
        grad_projected = torch.zeros_like(projected)
        grad_query = tested.attend_backward(
            sources, query, factors, weights, output, grad_output, grad_projected, grad_scores
        )
        return {
            "weights": weights,
            "output": output,
            "gradient of scores": grad_scores,
            "gradient of queries": grad_query,
            "gradient of projected queries": grad_projected.float(),
        }

    assert_close(
        results_of(backend),
        results_of(PyTorchBackend),
        rounded="gradient of projected queries",
        dtype=dtype,
        atol=2e-5,
    )
