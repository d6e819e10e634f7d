"""A step of an LSTM layer for autograd, with the gradient of its weight deferred."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from onmt_entmax.recurrence.backends.choice import backend_for
from onmt_entmax.recurrence.deferred import Deferred


class _Layer(Deferred):
    """The weight ``(..., 4 * hidden, in)`` of a layer, which `_Step` multiplies."""

    def __init__(
        self, weight: Tensor, summand: Tensor, sizes: list[int], dtype: torch.dtype | None
    ) -> None:
        super().__init__(weight, summand, sizes, dtype)
        self.kind = backend_for(self.summands[0] if sizes else weight.detach())


class _Step(torch.autograd.Function):
    """One step of a layer; what follows in the graph is once differentiable.

    ``apply(layer, anchor, number, factors, x, hidden, cell)`` with the number of the step, dropout
    factors of the output or None, the input ``(rows or more, in)`` or None, and the states
    ``(..., batch, hidden)``, of which the first rows take the step. Returns the output
    ``(..., rows, hidden)``, and the states ``(..., batch, hidden)``.
    """

    @staticmethod
    def forward(
        ctx: Any,
        layer: _Layer,
        anchor: Tensor,
        number: int,
        factors: Tensor | None,
        x: Tensor | None,
        hidden: Tensor,
        cell: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        inputs = layer.inputs[number]
        size = inputs.size(-2)
        before = _first(cell, size)
        below = 0 if x is None else x.size(-1)
        if x is not None:
            inputs[..., :below].copy_(_first(x, size))
        inputs[..., below:].copy_(_first(hidden, size))
        activations, output, *made = layer.kind.cell_forward(
            layer.multiply(inputs), layer.summands[number], before, factors
        )
        ctx.layer, ctx.number, ctx.factors, ctx.activations = layer, number, factors, activations
        ctx.entered = 0 if x is None else len(x)
        ctx.save_for_backward(before, made[1])
        return output, _with_ended(made[0], hidden), _with_ended(made[1], cell)

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor, grad_hidden: Tensor, grad_cell: Tensor
    ) -> tuple[Tensor | None, ...]:
        layer, number, (before, after) = ctx.layer, ctx.number, ctx.saved_tensors
        size, width = before.shape[-2:]
        layer.start_backward()
        grads = grad, _first(grad_hidden, size), _first(grad_cell, size)
        cell = layer.kind.cell_backward(
            ctx.activations, before, after, ctx.factors, grads, layer.gradients[number]
        )
        inputs = layer.go_back(number)
        if not ctx.entered:
            hidden, x = inputs, None
        else:
            x, hidden = inputs.split([inputs.size(1) - width, width], 1)
            if ctx.entered > size:
                x = pad(x, (0, 0, 0, ctx.entered - size))
        hidden, cell = _with_ended(hidden, grad_hidden), _with_ended(cell, grad_cell)
        return None, None, None, None, x, hidden, cell


def _first(batch: Tensor, size: int) -> Tensor:
    """Return the first rows of a batch ``(..., rows, hidden)``."""
    return batch if batch.size(-2) == size else batch[..., :size, :]


def _with_ended(states: Tensor, batch: Tensor) -> Tensor:
    """Return new states of the first rows, and the batch's of those that have ended."""
    size = states.size(-2)
    return states if size == batch.size(-2) else torch.cat([states, batch[..., size:, :]], -2)
