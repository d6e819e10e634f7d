"""Teacher-forced training of OpenNMT-py's input-feeding decoder as one autograd function.

OpenNMT-py steps through the target in Python with autograd recording some thirty small operators
a step. Here the whole recurrence is one node with a derived backward pass: embeddings enter by
one product, a step computes only what depends on the step before and only for sentences that are
not over, and each weight's gradient is one product over all steps (Appleyard et al. 2016 do so
for LSTMs without attention).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from onmt_entmax.modules.recurrence.attention import RecurrentAttention
from onmt_entmax.modules.recurrence.cell import (
    CellTrace,
    double_candidate_,
    lstm_cell,
    lstm_cell_backward,
)
from onmt_entmax.modules.recurrence.products import PreparedWeight, product, weight_gradient
from onmt_entmax.modules.recurrence.steps import Steps
from onmt_entmax.modules.recurrence.tokens import Repeats
from onmt_entmax.modules.recurrence.two_heads import RecurrentTwoHeads


@dataclass(frozen=True)
class Plan:
    """What the recurrence is told besides tensors with gradients.

    Attributes:
        steps: active rows of each step.
        repeats: which of the embeddings each packed row takes.
        alpha: of the attention.
        padding: see `RecurrentAttention`, and with three dimensions `RecurrentTwoHeads`.
        between: dropout factors between layers, ``(layers - 1, total, hidden)``, or None.
        above: dropout factors of the attentional vectors, ``(total, hidden)``, or None.
        attention_names: names of the attention's weights, which follow the LSTM's.
        dtype: type of the products, see `PreparedWeight`.
    """

    steps: Steps
    repeats: Repeats
    alpha: float
    padding: Tensor | None
    between: Tensor | None
    above: Tensor | None
    attention_names: tuple[str, ...]
    dtype: torch.dtype | None


class _Layers:
    """The stacked LSTM of a recurrence: weights, inputs and traces of all steps.

    A layer multiplies its input and its previous state side by side, ``[x, h]``, by
    ``[W_ih, W_hh]``; in the lowest x is the fed attentional vector, and the embeddings' share of
    the gates is there already.

    Args:
        plan: see `Plan`.
        embedded: embeddings ``(rows, embedding)``.
        weights: `weight_ih, weight_hh, bias_ih, bias_hh` of each layer.
    """

    def __init__(self, plan: Plan, embedded: Tensor, weights: tuple[Tensor, ...]) -> None:
        self._plan, self._embedded = plan, embedded
        self.count = len(weights) // 4
        hidden = weights[1].size(1)
        size = embedded.size(1)
        self._recurrent, self._products = [], []
        for layer in range(self.count):
            weight, recurrent, *biases = weights[4 * layer : 4 * layer + 4]
            bias = double_candidate_(biases[0] + biases[1])
            if layer == 0:
                self._lowest = double_candidate_(weight[:, :size].clone())
                gates = product(embedded, self._lowest, bias, plan.dtype)
                self._embedded_gates = plan.repeats.spread(gates)
                weight = weight[:, size:]
            both = double_candidate_(torch.cat([weight, recurrent], dim=1))
            self._recurrent.append(both)
            self._products.append(PreparedWeight(both, bias if layer > 0 else None, plan.dtype))
        total = plan.steps.total
        self._inputs = [embedded.new_empty(total, 2 * hidden) for _ in range(self.count)]
        self._traces: list[list[CellTrace]] = []

    def step(
        self, step: int, feed: Tensor, hidden: list[Tensor], cell: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """New hidden and cell states of every layer, ``(rows, hidden)`` each."""
        rows = self._plan.steps.rows(step)
        size = rows.stop - rows.start
        below, mask = feed, None
        hidden_now, cell_now, traces = [], [], []
        for layer, multiply in enumerate(self._products):
            inputs = self._inputs[layer][rows]
            first, second = inputs.chunk(2, dim=1)
            if mask is None:
                first.copy_(below[:size])
            else:
                torch.mul(below, mask[layer - 1, rows], out=first)
            second.copy_(hidden[layer][:size])
            gates = multiply(inputs, self._embedded_gates[rows] if layer == 0 else None)
            below, state, trace = lstm_cell(gates, cell[layer][:size])
            mask = self._plan.between
            hidden_now.append(below)
            cell_now.append(state)
            traces.append(trace)
        self._traces.append(traces)
        return hidden_now, cell_now

    def start_backward(self) -> None:
        """Prepare what the steps back share."""
        dtype = self._plan.dtype
        self._back = [PreparedWeight(both.t(), None, dtype) for both in self._recurrent]
        self._grad_gates = [
            inputs.new_empty(inputs.size(0), 2 * inputs.size(1)) for inputs in self._inputs
        ]

    def step_backward(self, step: int, grad_hidden: Tensor, grad_cell: Tensor) -> Tensor:
        """Gradient of the fed vectors ``(rows, hidden)``.

        Args:
            step: steps come in reverse order.
            grad_hidden: of the states after the step, ``(layers, batch, hidden)``; becomes the
                gradient of the states before it.
            grad_cell: likewise.
        """
        rows = self._plan.steps.rows(step)
        size = rows.stop - rows.start
        below = grad_hidden
        for layer in range(self.count - 1, -1, -1):
            grad_gates = self._grad_gates[layer][rows]
            state = grad_hidden[layer, :size]
            lstm_cell_backward(
                state, grad_cell[layer, :size], self._traces[step][layer], grad_gates
            )
            below, before = self._back[layer](grad_gates).chunk(2, dim=1)
            state.copy_(before)
            if layer > 0:
                if self._plan.between is None:
                    grad_hidden[layer - 1, :size] += below
                else:
                    grad_hidden[layer - 1, :size].addcmul_(
                        below, self._plan.between[layer - 1, rows]
                    )
        return below

    def finish_backward(self) -> tuple[Tensor, list[Tensor]]:
        """Gradient of the embeddings, and of the weights in the order they came."""
        dtype = self._plan.dtype
        grads: list[Tensor] = []
        for layer, (inputs, grad) in enumerate(zip(self._inputs, self._grad_gates, strict=True)):
            both = double_candidate_(weight_gradient(grad, inputs, dtype))
            below, recurrent = both.chunk(2, dim=1)
            bias = double_candidate_(grad.sum(dim=0))
            if layer == 0:
                grad = self._plan.repeats.collect(grad)
                grad_embedded = product(grad, self._lowest.t(), None, dtype)
                lowest = double_candidate_(weight_gradient(grad, self._embedded, dtype))
                below = torch.cat([lowest, below], dim=1)
            grads += [below, recurrent, bias, bias]
        return grad_embedded, grads


def _attention(
    plan: Plan, bank: Tensor, weights: dict[str, Tensor]
) -> RecurrentAttention | RecurrentTwoHeads:
    if plan.padding is not None and plan.padding.dim() == 3:
        return RecurrentTwoHeads(plan.steps, bank, plan.padding, plan.alpha, weights, plan.dtype)
    return RecurrentAttention(plan.steps, bank, plan.padding, plan.alpha, weights, plan.dtype)


class InputFeedRecurrence(torch.autograd.Function):
    """The recurrence over all target steps (Luong et al. 2015, section 3.3).

    Inputs are a `Plan`, embeddings ``(rows, embedding)``, the source vectors
    ``(batch, src_len, hidden)``, first hidden and cell states ``(layers, batch, hidden)``, the
    first fed vectors ``(batch, hidden)``, then the weights of the LSTM and of the attention.
    Results are the packed outputs ``(total, hidden)``, the attention
    ``(steps, batch, src_len)``, and the last hidden and cell states.
    """

    @staticmethod
    def forward(
        ctx: Any,
        plan: Plan,
        embedded: Tensor,
        bank: Tensor,
        hidden: Tensor,
        cell: Tensor,
        feed: Tensor,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        steps, split = plan.steps, len(weights) - len(plan.attention_names)
        names = dict(zip(plan.attention_names, weights[split:], strict=True))
        attention = _attention(plan, bank, names)
        layers = _Layers(plan, embedded, weights[:split])
        plain = embedded.new_empty(steps.total, bank.size(2))
        outputs = plain if plan.above is None else torch.empty_like(plain)
        last_hidden, last_cell = hidden.clone(), cell.clone()
        hiddens, cells = list(hidden), list(cell)
        for step, size in enumerate(steps.sizes):
            rows = steps.rows(step)
            hiddens, cells = layers.step(step, feed, hiddens, cells)
            plain[rows] = attention.step(step, hiddens[-1])
            if plan.above is not None:
                torch.mul(plain[rows], plan.above[rows], out=outputs[rows])
            feed = outputs[rows]
            going_on = steps.sizes[step + 1] if step + 1 < len(steps.sizes) else 0
            if going_on < size:
                for layer in range(layers.count):
                    last_hidden[layer, going_on:size] = hiddens[layer][going_on:]
                    last_cell[layer, going_on:size] = cells[layer][going_on:]
        ctx.plan, ctx.attention, ctx.layers = plan, attention, layers
        # Results must not hang on ctx, which they hold: that circle would never be freed.
        ctx.save_for_backward(plain, attention.weights)
        attended, attention.weights = attention.weights, bank
        ctx.set_materialize_grads(False)
        return outputs, attended, last_hidden, last_cell

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,
        grad_outputs: Tensor | None,
        grad_attended: Tensor | None,
        grad_hidden: Tensor | None,
        grad_cell: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        plan: Plan = ctx.plan
        attention: RecurrentAttention | RecurrentTwoHeads = ctx.attention
        layers: _Layers = ctx.layers
        plain, attended = ctx.saved_tensors
        steps = plan.steps
        states = (layers.count, steps.batch, plain.size(1))
        grad = torch.zeros_like(plain) if grad_outputs is None else grad_outputs.clone()
        hidden = plain.new_zeros(states) if grad_hidden is None else grad_hidden.clone()
        cell = plain.new_zeros(states) if grad_cell is None else grad_cell.clone()
        factors = plan.above
        if not attention.additive:
            ones = torch.ones_like(plain) if factors is None else factors
            factors = torch.ops.aten.tanh_backward(ones, plain)
        attention.start_backward(attended)
        layers.start_backward()
        fed = plain[:0]
        for step in range(len(steps.sizes) - 1, -1, -1):
            grad_step = grad[steps.rows(step)]
            grad_step[: fed.size(0)] += fed
            if factors is not None:
                grad_step *= factors[steps.rows(step)]
            top = hidden[-1, : grad_step.size(0)]
            top += attention.step_backward(step, grad_step, grad_attended)
            fed = layers.step_backward(step, hidden, cell)
        attention.weights = attended
        grad_bank, by_name = attention.finish_backward(grad)
        grad_embedded, grads = layers.finish_backward()
        grads += [by_name[name] for name in plan.attention_names]
        grad_feed = torch.cat([fed, fed.new_zeros(steps.batch - fed.size(0), fed.size(1))])
        return None, grad_embedded, grad_bank, hidden, cell, grad_feed, *grads
