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
from onmt_entmax.modules.recurrence.cell import double_candidate_
from onmt_entmax.modules.recurrence.cells import Above, Cells
from onmt_entmax.modules.recurrence.native import make_cells, make_readout
from onmt_entmax.modules.recurrence.products import PreparedWeight, product, weight_gradient
from onmt_entmax.modules.recurrence.readout import Readout
from onmt_entmax.modules.recurrence.steps import Steps
from onmt_entmax.modules.recurrence.tokens import Repeats


@dataclass(frozen=True)
class Plan:
    """What the recurrence is told besides tensors with gradients.

    Attributes:
        steps: active rows of each step.
        repeats: which of the embeddings each packed row takes.
        alpha: of the attention.
        padding: see `RecurrentAttention`, padded positions after the others.
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
    """The stacked LSTM of a recurrence.

    A layer multiplies its input and its previous state side by side, ``[x, h]``, by
    ``[W_ih, W_hh]``; in the lowest x is the fed attentional vector, and the embeddings' share of
    the gates is there already.

    Args:
        plan: see `Plan`.
        embedded: embeddings ``(rows, embedding)``.
        weights: `weight_ih, weight_hh, bias_ih, bias_hh` of each layer.
        last: receive the last hidden and cell states, ``(layers, batch, hidden)`` each.

    Attributes:
        fed: where what is fed has to be, ``(rows, hidden)`` packed.
        queries: hidden states of the top layer, ``(total, hidden)``.
        asked: the same in the type of the products.
    """

    def __init__(
        self,
        plan: Plan,
        embedded: Tensor,
        weights: tuple[Tensor, ...],
        last: tuple[Tensor, Tensor],
    ) -> None:
        self._plan, self._embedded = plan, embedded
        self.count, hidden, size = len(weights) // 4, weights[1].size(1), embedded.size(1)
        order = range(len(plan.steps.sizes))
        self._recurrent: list[Tensor] = []
        self._cells: list[Cells] = []
        self.queries = self.asked = embedded.new_empty(plan.steps.total, hidden)
        above: Above | None = None
        dtype = plan.dtype or embedded.dtype
        if dtype != embedded.dtype:
            self.asked = torch.empty_like(self.queries, dtype=dtype)
            above = Above(self.asked, None)
        # From the top, since a layer writes what the one above it multiplies.
        for layer in reversed(range(self.count)):
            weight, recurrent, *biases = weights[4 * layer : 4 * layer + 4]
            bias = double_candidate_(biases[0] + biases[1])
            entering: Tensor | None = None
            if layer == 0:
                self._lowest = double_candidate_(weight[:, :size].to(dtype, copy=True))
                gates = product(embedded, self._lowest, bias, plan.dtype)
                entering = plan.repeats.spread(gates)
                weight = weight[:, size:]
            both = weight.new_empty(weight.size(0), 2 * hidden, dtype=dtype)
            for half, part in zip(both.chunk(2, dim=1), (weight, recurrent), strict=True):
                half.copy_(part)
            double_candidate_(both)
            multiply = PreparedWeight(both, bias if layer else None, result=bias.dtype)
            outputs = self.queries if layer == self.count - 1 else torch.empty_like(self.queries)
            ends = last[0][layer], last[1][layer]
            cells = make_cells(plan.steps, order, multiply, entering, outputs, ends, above)
            factors = None if plan.between is None or layer == 0 else plan.between[layer - 1]
            self.fed = cells.inputs[:, :hidden]
            above = Above(self.fed, factors)
            self._cells.insert(0, cells)
            self._recurrent.insert(0, both)

    def begin(self, hidden: Tensor, cell: Tensor, feed: Tensor) -> None:
        """Set what is there before the first step.

        Args:
            hidden: states, ``(layers, batch, hidden)``.
            cell: likewise.
            feed: ``(batch, hidden)``.
        """
        for cells, *states in zip(self._cells, hidden, cell, strict=True):
            cells.begin(*states)
        if self._plan.steps.sizes:
            rows = self._plan.steps.rows(0)
            self.fed[rows] = feed[: rows.stop]

    def forward(self, step: int) -> None:
        """Run a step; what it is fed is in `fed`."""
        for cells in self._cells:
            cells.forward(step)

    def end(self) -> None:
        """Let go of the results."""
        for cells in self._cells:
            cells.end()

    def start_backward(self, hidden: Tensor, cell: Tensor) -> None:
        """Prepare the way back, as `Cells`, for all layers: ``(layers, batch, hidden)`` each."""
        for cells, both, *states in zip(self._cells, self._recurrent, hidden, cell, strict=True):
            cells.start_backward(PreparedWeight(both.t(), result=hidden.dtype), *states)

    def backward(self, step: int, grad: Tensor, more: Tensor | None) -> Tensor:
        """Gradient of what a step was fed, ``(rows, hidden)``.

        Args:
            step: steps come in reverse order.
            grad: of the queries, ``(rows, hidden)``.
            more: to be added to it, or None.
        """
        arriving: Tensor | None = grad
        for cells in reversed(self._cells):
            entered = cells.backward(step, arriving, more)
            arriving, more = None, entered[:, : grad.size(1)]
        assert more is not None
        return more

    def finish_backward(self) -> tuple[Tensor, list[Tensor]]:
        """Gradient of the embeddings, and of the weights in the order they came."""
        dtype, repeats = self._plan.dtype, self._plan.repeats
        grads: list[Tensor] = []
        for layer, cells in enumerate(self._cells):
            both, bias = cells.finish_backward()
            below, recurrent = both.chunk(2, dim=1)
            if layer == 0:
                grad = repeats.collect(cells.gates_gradient(repeats.places is not None))
                given = below.dtype
                grad_embedded = product(grad, self._lowest.t(), None, dtype, given)
                lowest = weight_gradient(grad, self._embedded, dtype, given)
                below = torch.cat([double_candidate_(lowest), below], dim=1)
            grads += [below, recurrent, bias, bias]
        return grad_embedded, grads


def _readout(plan: Plan, bank: Tensor, weights: dict[str, Tensor], layers: _Layers) -> Readout:
    padding = plan.padding
    more = plan.alpha, weights, plan.dtype, layers.queries, layers.asked
    attention = RecurrentAttention(plan.steps, bank, padding, *more)
    lengths = None if padding is None else (padding == 0).sum(dim=1)
    return make_readout(plan.steps, attention, plan.alpha, plan.above, layers.fed, lengths)


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
        split = len(weights) - len(plan.attention_names)
        names = dict(zip(plan.attention_names, weights[split:], strict=True))
        last = hidden.clone(), cell.clone()
        layers = _Layers(plan, embedded, weights[:split], last)
        readout = _readout(plan, bank, names, layers)
        layers.begin(hidden, cell, feed)
        for step in range(len(plan.steps.sizes)):
            layers.forward(step)
            readout.forward(step)
        layers.end()
        outputs, plain, attended = readout.end()
        ctx.plan, ctx.readout, ctx.layers = plan, readout, layers
        ctx.save_for_backward(plain, attended)
        ctx.set_materialize_grads(False)
        return outputs, attended, *last

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
        readout: Readout = ctx.readout
        layers: _Layers = ctx.layers
        plain, attended = ctx.saved_tensors
        steps = plan.steps
        states = (layers.count, steps.batch, plain.size(1))
        grad = torch.zeros_like(plain) if grad_outputs is None else _copy(grad_outputs)
        hidden = plain.new_zeros(states) if grad_hidden is None else _copy(grad_hidden)
        cell = plain.new_zeros(states) if grad_cell is None else _copy(grad_cell)
        if grad_attended is not None:
            grad_attended = grad_attended.contiguous()
        fed: Tensor | None = None
        with torch.autocast(plain.device.type, enabled=False):  # as the way forth, see decoder.py
            readout.start_backward(plain, attended, grad, grad_attended)
            layers.start_backward(hidden, cell)
            for step in reversed(range(len(steps.sizes))):
                fed = layers.backward(step, *readout.backward(step, fed))
            grad_bank, by_name = readout.finish_backward()
            grad_embedded, grads = layers.finish_backward()
        grads += [by_name[name] for name in plan.attention_names]
        grad_feed = plain.new_zeros(steps.batch, plain.size(1))
        if fed is not None:
            grad_feed[: fed.size(0)] = fed
        return None, grad_embedded, grad_bank, hidden, cell, grad_feed, *grads


def _copy(gradient: Tensor) -> Tensor:
    """A gradient to be written to."""
    return gradient.clone(memory_format=torch.contiguous_format)
