"""The pointwise half of an LSTM cell and of its gradient, and the dropout of a recurrence.

The four gates of a cell come out of one product and pass through ONE sigmoid: the candidate's
tanh is ``2 sigmoid(2x) - 1``, so its rows of the weights are doubled beforehand. PyTorch's
vectorised sigmoid is ten times faster than its tanh, and one operator is quicker than four.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class CellTrace(NamedTuple):
    """What the backward pass of one cell step needs; everything is ``(rows, ...)``."""

    gates: Tensor  # sigmoids, (rows, 4 * hidden): input, forget, candidate, output
    candidate: Tensor  # (rows, hidden)
    previous: Tensor  # cell state before the step, (rows, hidden)
    squashed: Tensor  # tanh of the cell state after the step, (rows, hidden)


def double_candidate_(weight: Tensor) -> Tensor:
    """Double the candidate's rows of a weight or bias ``(4 * hidden, ...)``, in place.

    Applied to copies of the weights before the recurrence, and to their gradients after it.
    """
    weight.chunk(4)[2].mul_(2)
    return weight


def tanh(x: Tensor) -> Tensor:
    """Hyperbolic tangent through the sigmoid (module docstring), absolute error about 1e-7."""
    return torch.mul(x, 2).sigmoid_().mul_(2).sub_(1)


def lstm_cell(gates: Tensor, previous: Tensor) -> tuple[Tensor, Tensor, CellTrace]:
    """One step of an LSTM (Hochreiter & Schmidhuber 1997, as `torch.nn.LSTMCell`).

    Args:
        gates: ``(rows, 4 * hidden)`` before the sigmoid, the candidate's part doubled;
            overwritten.
        previous: cell state ``(rows, hidden)``.

    Returns:
        New hidden state, new cell state, and the trace for `lstm_cell_backward`.
    """
    enter, forget, candidate, leave = gates.sigmoid_().chunk(4, dim=1)
    candidate = torch.mul(candidate, 2).sub_(1)
    cell = torch.mul(forget, previous).addcmul_(enter, candidate)
    squashed = tanh(cell)
    return torch.mul(leave, squashed), cell, CellTrace(gates, candidate, previous, squashed)


def lstm_cell_backward(
    grad_hidden: Tensor, grad_cell: Tensor, trace: CellTrace, grad_gates: Tensor
) -> None:
    """Gradient of `lstm_cell`.

    Args:
        grad_hidden: of the new hidden state, ``(rows, hidden)``.
        grad_cell: of the new cell state; becomes the gradient of the previous one.
        trace: from the forward pass.
        grad_gates: receives the gradient before the sigmoid, ``(rows, 4 * hidden)``.
    """
    enter, forget, _, leave = trace.gates.chunk(4, dim=1)
    d_enter, d_forget, d_candidate, d_leave = grad_gates.chunk(4, dim=1)
    grad_cell.add_(torch.ops.aten.tanh_backward(grad_hidden * leave, trace.squashed))
    torch.mul(grad_cell, trace.candidate, out=d_enter)
    torch.mul(grad_cell, trace.previous, out=d_forget)
    torch.mul(grad_cell, enter, out=d_candidate).mul_(2)
    torch.mul(grad_hidden, trace.squashed, out=d_leave)
    torch.ops.aten.sigmoid_backward.grad_input(grad_gates, trace.gates, grad_input=grad_gates)
    grad_cell.mul_(forget)


def dropout_mask(shape: tuple[int, ...], probability: float, like: Tensor) -> Tensor | None:
    """Random factors of dropout: zero with `probability`, else one over the rest.

    Drawn from torch's generator of the device, 16 bits for each factor (so the probability is
    rounded to a multiple of 2^-16, and the factor with it): four from one 64-bit draw, eleven
    times faster than `bernoulli_`.

    Args:
        shape: of the mask.
        probability: in [0, 1]; 0 gives None, 1 drops everything.
        like: gives type and device.
    """
    if probability == 0:
        return None
    levels = round(probability * 2**16)
    if levels >= 2**16:
        return like.new_zeros(shape)
    count = torch.Size(shape).numel()
    draws = torch.empty((count + 3) // 4, dtype=torch.int64, device=like.device)
    draws.random_(-(2**63), None)
    kept = draws.view(torch.int16)[:count] >= levels - 2**15
    return kept.to(like.dtype).mul_(2**16 / (2**16 - levels)).view(shape)
