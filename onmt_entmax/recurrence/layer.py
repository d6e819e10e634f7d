"""A step of an LSTM layer for autograd, whose weight gets its gradient after all steps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from onmt_entmax.recurrence.backends.choice import backend_for
from onmt_entmax.recurrence.deferred import DeferredWeight


class LayerWeight(DeferredWeight):
    """The weight ``(..., 4 * hidden, in)`` of a layer, which `LayerStep` multiplies.

    The inputs of a step are the lower layer's output and the hidden state, side by side; or the
    hidden state alone, if the summand contains the product with the lower layer's output.

    Args:
        weight: weights for input and hidden state, side by side, or for the hidden state alone.
        summand: ``(..., total, 4 * hidden)``, see `DeferredWeight`.
        sizes: number of rows of each step.
        dtype: see `DeferredWeight`.

    Attributes:
        backend: computes the steps.
    """

    def __init__(
        self, weight: Tensor, summand: Tensor, sizes: list[int], dtype: torch.dtype | None
    ) -> None:
        super().__init__(weight, summand, sizes, dtype)
        self.backend = backend_for(self.summands[0] if sizes else weight.detach())


class LayerStep(torch.autograd.Function):
    """One step of a layer; it can be differentiated once.

    ``apply(layer, dependency, step, factors, x, hidden, cell)`` with

    - ``layer``: the layer's weight,
    - ``dependency``: the scalar of `after_all_steps`,
    - ``step``: the number of the step,
    - ``factors``: dropout factors of the output, ``(rows, hidden)``, or None,
    - ``x``: the lower layer's output, ``(rows or more, in)``, or None if the summand contains its
      product,
    - ``hidden`` and ``cell``: states ``(..., batch, hidden)``, whose first rows take the step.

    Returns the output ``(..., rows, hidden)``, and both states ``(..., batch, hidden)``. Rows of
    sentences that have ended keep their states.

    Each step writes its own part of the layer's `inputs` and `gradients`, and shares nothing else;
    see `deferred` for the order of calls.
    """

    @staticmethod
    def forward(
        ctx: Any,
        layer: LayerWeight,
        dependency: Tensor,
        step: int,
        factors: Tensor | None,
        x: Tensor | None,
        hidden: Tensor,
        cell: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        inputs = layer.inputs[step]  # (..., rows, in), to write
        rows = inputs.size(-2)
        cell_before = _first_rows(cell, rows)
        width_below = 0
        if x is not None:
            width_below = x.size(-1)
            inputs[..., :width_below].copy_(_first_rows(x, rows))
        inputs[..., width_below:].copy_(_first_rows(hidden, rows))
        activations, output, hidden_after, cell_after = layer.backend.cell_forward(
            layer.multiply(inputs), layer.summands[step], cell_before, factors
        )
        ctx.layer, ctx.step, ctx.factors, ctx.activations = layer, step, factors, activations
        ctx.rows_below = 0 if x is None else len(x)
        ctx.save_for_backward(cell_before, cell_after)
        return output, _with_ended(hidden_after, hidden), _with_ended(cell_after, cell)

    @staticmethod
    def backward(
        ctx: Any, grad_output: Tensor, grad_hidden: Tensor, grad_cell: Tensor
    ) -> tuple[Tensor | None, ...]:
        layer, step, (cell_before, cell_after) = ctx.layer, ctx.step, ctx.saved_tensors
        rows, width = cell_before.shape[-2:]
        layer.start_backward()
        arriving = grad_output, _first_rows(grad_hidden, rows), _first_rows(grad_cell, rows)
        grad_cell_before = layer.backend.cell_backward(
            ctx.activations,
            cell_before,
            cell_after,
            ctx.factors,
            grads=arriving,
            grad_gates=layer.gradients[step],  # receives the gradient
        )
        grad_inputs = layer.input_gradient(step)  # (..., rows, in)
        grad_x, grad_hidden_before = None, grad_inputs
        if ctx.rows_below:
            grad_x, grad_hidden_before = grad_inputs.split([grad_inputs.size(1) - width, width], 1)
            if ctx.rows_below > rows:  # the step did not read rows of sentences that have ended
                grad_x = pad(grad_x, (0, 0, 0, ctx.rows_below - rows))
        grad_hidden_before = _with_ended(grad_hidden_before, grad_hidden)
        grad_cell_before = _with_ended(grad_cell_before, grad_cell)
        return None, None, None, None, grad_x, grad_hidden_before, grad_cell_before


def _first_rows(batch: Tensor, rows: int) -> Tensor:
    """Return the first rows of a batch ``(..., batch, hidden)``."""
    return batch if batch.size(-2) == rows else batch[..., :rows, :]


def _with_ended(states: Tensor, batch: Tensor) -> Tensor:
    """Return the new states of a batch, ``(..., batch, hidden)``.

    Args:
        states: new states of the first rows, ``(..., rows, hidden)``.
        batch: states before the step, ``(..., batch, hidden)``; the other rows keep these.
    """
    rows = states.size(-2)
    return states if rows == batch.size(-2) else torch.cat([states, batch[..., rows:, :]], -2)
