"""The check of a backend's LSTM cells against PyTorch's."""

from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.recurrence.backends.pytorch import PyTorchBackend
from tests.recurrence.backend_checks import HIDDEN, ROWS, Backend, assert_close, dropout_factors


class CellStep(NamedTuple):
    """A step of an LSTM cell; leading dimensions are one of directions, or none.

    Attributes:
        gates: products, ``(*directions, ROWS, 4 * HIDDEN)``.
        summand: added to the gates, in their shape. All rows share its memory, with a stride of 0.
        cell: cell states before the step, ``(*directions, ROWS, HIDDEN)``.
        factors: dropout factors, ``(ROWS, HIDDEN)``; None without dropout.
        grads: upstream gradients for output, hidden state and cell, in the shape of `cell`. They
            are parts of a wider tensor, so that their rows have a stride.
    """

    gates: Tensor
    summand: Tensor
    cell: Tensor
    factors: Tensor | None
    grads: tuple[Tensor, ...]

    def results_of(self, backend: Backend) -> dict[str, Tensor]:
        """Return what a backend computes, forwards and backwards, by name."""
        # Cloned, since a backend may write activations over the gates.
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
            "gradient of gates": grad_gates,
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
        factors=dropout_factors(has_dropout, device),
        grads=torch.randn(*directions, ROWS, 3 * HIDDEN, device=device).split(HIDDEN, -1),
    )
    # Results are of the order of 1, and have about a hundred machine epsilons.
    assert_close(step.results_of(backend), step.results_of(PyTorchBackend), atol=1e-5)
