"""A step of global attention for autograd, with the gradients of keys and values deferred."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.recurrence.backends.choice import backend_for
from onmt_entmax.recurrence.deferred import Deferred, anchor
from onmt_entmax.recurrence.source_memory import Sources


def attention_steps(
    attention: EntmaxGlobalAttention,
    bank: Tensor,
    lengths: Tensor,
    sizes: list[int],
    places: Tensor,
    dtype: torch.dtype | None,
) -> Callable[[int, Tensor, Tensor | None], Tensor]:
    """Return attention over the steps of a batch, with the gradients of products over all steps.

    Args:
        attention: runs as the module does, step by step, unless it can project.
        bank: source vectors ``(batch, source, hidden)``, contiguous.
        lengths: real source positions, ``(batch,)`` int64, at least 1.
        sizes: rows that attend in each step, the first ones of the batch.
        places: positions of these in ``(steps * batch)``, for all steps.
        dtype: of the factors of products, see `product`.

    Returns:
        A function of the number of a step, its queries ``(rows, hidden)`` and dropout factors or
        None. It returns the attentional vectors ``(rows, hidden)`` times the factors.
    """
    if not attention.can_project:

        def step(number: int, query: Tensor, factors: Tensor | None) -> Tensor:
            output, _ = attention(query, bank[: sizes[number]], lengths[: sizes[number]])
            return output if factors is None else output * factors

        return step
    keys, values, query = attention.project(bank, dtype)
    sources = Sources(keys.detach(), values.detach(), lengths, None, attention.alpha)
    memory = _Memory(sources, Deferred(query, None, sizes, dtype), sizes, places)
    held = anchor(memory, keys, values, query)
    return lambda number, query, factors: _Attend.apply(memory, held, number, factors, query)


class _Memory:
    """Keys and values of a batch, the queries' weight, and what is kept of the steps."""

    def __init__(
        self, sources: Sources, product: Deferred, sizes: list[int], places: Tensor
    ) -> None:
        self.kind = backend_for(sources.keys[0], sources)
        self.sources, self.product, self._sizes, self._places = sources, product, sizes, places
        self._all_weights = sources.keys.new_zeros(sum(sizes), sources.keys.size(1))
        self.weights = self._all_weights.split(sizes)

    def start_backward(self) -> None:
        """Prepare the backward pass, if this is its first step."""
        if self.product.start_backward():
            self._all_grads = torch.zeros_like(self._all_weights)
            self.grad_scores = self._all_grads.split(self._sizes)

    def finish(self) -> tuple[Tensor, ...]:
        """Return the gradients of keys, values and the queries' weight."""
        total, steps, batch = len(self._places), len(self._sizes), len(self.sources.keys)

        def by_row(packed: Tensor) -> Tensor:
            padded = packed[:total].to(self._all_weights.dtype)
            if total < steps * batch:
                zeros = padded.new_zeros(steps * batch, padded.size(1))
                padded = zeros.index_copy_(0, self._places, padded)
            return padded.view(steps, batch, -1).transpose(0, 1)

        keys = torch.bmm(by_row(self._all_grads).mT, by_row(self.product.all_inputs))
        values = torch.bmm(by_row(self._all_weights).mT, by_row(self.product.all_gradients))
        return keys, values, *self.product.finish()


class _Attend(torch.autograd.Function):
    """A step; what follows in the graph is once differentiable, which need not be checked here."""

    @staticmethod
    def forward(
        ctx: Any,
        memory: _Memory,
        anchor: Tensor,
        number: int,
        factors: Tensor | None,
        query: Tensor,
    ) -> Tensor:
        product, weights = memory.product, memory.weights[number]
        inputs = product.inputs[number]
        from_query = product.multiply(inputs.copy_(query))
        output = memory.kind.attend(memory.sources, query, from_query, factors, weights)
        ctx.memory, ctx.number, ctx.factors = memory, number, factors
        ctx.save_for_backward(query, output)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        memory, number, (query, output) = ctx.memory, ctx.number, ctx.saved_tensors
        memory.start_backward()
        made = memory.kind.attend_backward(
            memory.sources,
            query,
            ctx.factors,
            memory.weights[number],
            output,
            grad,
            memory.product.gradients[number],
            memory.grad_scores[number],
        )
        return None, None, None, None, made.add_(memory.product.go_back(number))
