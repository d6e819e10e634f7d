"""A step of global attention for autograd, with the gradients of keys and values deferred.

`attention_steps` chooses between the steps here and the module itself. The order of calls is that
of `deferred`, with a `DeferredAttention` as the owner:

1. `attention_steps` projects the memory bank to keys and values, and calls `after_all_steps`.
2. `AttentionStep.forward` writes the step's query, which the gradients of keys need, and attention
   weights, which those of values need.
3. `AttentionStep.backward` calls `start_backward`, and writes the gradients of the step's context
   vectors and scores.
4. Autograd calls `finish`, once all steps are through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.recurrence.backends.choice import backend_for
from onmt_entmax.recurrence.deferred import DeferredWeight, after_all_steps
from onmt_entmax.recurrence.source_memory import RowSources, SourceMemory
from onmt_entmax.recurrence.steps import Steps


def attention_steps(
    attention: EntmaxGlobalAttention,
    bank: Tensor,
    lengths: Tensor,
    steps: Steps,
    dtype: torch.dtype | None,
) -> Callable[[int, Tensor, Tensor | None], Tensor]:
    """Return attention over the steps of a batch, with the gradients of products over all steps.

    Args:
        attention: runs as the module does, step by step, unless it can project.
        bank: source vectors ``(batch, source, hidden)``, contiguous.
        lengths: real source positions, ``(batch,)`` int64, at least 1.
        steps: the rows that attend in each step.
        dtype: of the factors of products, see `product`.

    Returns:
        A function of the number of a step, its queries ``(rows, hidden)`` and dropout factors or
        None. It returns the attentional vectors ``(rows, hidden)`` times the factors.
    """
    if not attention.can_project:

        def attend_as_module(step: int, query: Tensor, factors: Tensor | None) -> Tensor:
            rows = steps.sizes[step]
            output, _ = attention(query, bank[:rows], lengths[:rows])
            return output if factors is None else output * factors

        return attend_as_module
    keys, values, query_weight = attention.project(bank, dtype)
    memory = SourceMemory(keys.detach(), values.detach(), lengths)
    sources = RowSources(memory, owners=None, alpha=attention.alpha)
    weight = DeferredWeight(query_weight, None, steps.sizes, dtype)
    deferred = DeferredAttention(sources, weight, steps)
    # After it, autograd hands the gradients of `finish` to the projections.
    dependency = after_all_steps(deferred, keys, values, query_weight)

    def attend(step: int, query: Tensor, factors: Tensor | None) -> Tensor:
        output: Tensor = AttentionStep.apply(deferred, dependency, step, factors, query)
        return output

    return attend


class DeferredAttention:
    """Keys, values and the queries' weight of a batch, whose gradients follow after all steps.

    For each sentence, the gradient of its keys is one product of the gradients of the scores of all
    steps with all queries, that of its values one of all attention weights with the gradients of
    all context vectors. The queries' weight defers by itself; `query_weight` also holds the queries
    and the gradients of the context vectors, which are those of its products.

    Args:
        sources: row i attends to sentence i.
        query_weight: W_q of `EntmaxGlobalAttention.project`, with the inputs and gradients of its
            products in all steps.
        steps: the rows of each step.

    Attributes:
        backend: which computes the steps.
        sources: row i attends to sentence i.
        query_weight: W_q, with the inputs and gradients of its products in all steps.
            `AttentionStep.forward` writes the inputs of its step, `AttentionStep.backward` the
            gradients; `finish` reads both.
        weights: the attention weights of each step, ``(rows, source)``. `AttentionStep.forward`
            writes those of its step; its backward and `finish` read them.
        grad_scores: the gradients of each step's scores, ``(rows, source)``.
            `AttentionStep.backward` writes those of its step, and `finish` reads them. Empty
            outside of a backward pass.
    """

    def __init__(self, sources: RowSources, query_weight: DeferredWeight, steps: Steps) -> None:
        keys = sources.memory.keys  # (batch, source, hidden)
        # The keys of a sentence have the type, device and rank of the states of a step.
        self.backend = backend_for(keys[0], sources)
        self.sources, self.query_weight, self._steps = sources, query_weight, steps
        self._all_weights = keys.new_zeros(sum(steps.sizes), keys.size(1))
        self.weights = self._all_weights.split(steps.sizes)
        self._all_grad_scores: Tensor | None = None
        self.grad_scores: Sequence[Tensor] = ()

    def start_backward(self) -> None:
        """Prepare a backward pass, if this is its first step."""
        if self.query_weight.start_backward():
            self._all_grad_scores = torch.zeros_like(self._all_weights)
            self.grad_scores = self._all_grad_scores.split(self._steps.sizes)

    def finish(self) -> tuple[Tensor, ...]:
        """Return the gradients of keys, values and the queries' weight; free those of the steps."""
        queries, grad_contexts = self.query_weight.all_inputs, self.query_weight.all_gradients
        grad_scores = self._all_grad_scores
        assert grad_contexts is not None, "a step has called `start_backward`"
        assert grad_scores is not None, "a step has called `start_backward`"
        # (batch, source, steps) times (batch, steps, hidden), each
        keys = torch.bmm(self._by_sentence(grad_scores).mT, self._by_sentence(queries))
        values = torch.bmm(
            self._by_sentence(self._all_weights).mT, self._by_sentence(grad_contexts)
        )
        self._all_grad_scores, self.grad_scores = None, ()
        return keys, values, *self.query_weight.finish()

    def _by_sentence(self, packed: Tensor) -> Tensor:
        """Return packed rows ``(total or more, size)`` as ``(batch, steps, size)``.

        Padding is zeros. There may be rows beyond the total, which only round their number up for
        products; they are left out.
        """
        positions, steps = self._steps.positions, len(self._steps.sizes)
        total, batch = len(positions), len(self.sources.memory)
        rows = packed[:total].to(self._all_weights.dtype)
        if total < steps * batch:
            zeros = rows.new_zeros(steps * batch, rows.size(1))
            rows = zeros.index_copy_(0, positions, rows)
        return rows.view(steps, batch, -1).transpose(0, 1)


class AttentionStep(torch.autograd.Function):
    """A step of attention.

    ``apply(attention, dependency, step, factors, query)`` with `DeferredAttention`, the scalar of
    `after_all_steps`, the number of the step, dropout factors ``(rows, hidden)`` or None, and the
    query ``(rows, hidden)``. Returns the attentional vectors ``(rows, hidden)``.

    Forward writes `weights`, backward `grad_scores` of the attention; both write their part of its
    `query_weight`. That is once differentiable, which the node of `after_all_steps` checks.
    """

    @staticmethod
    def forward(
        ctx: Any,
        attention: DeferredAttention,
        dependency: Tensor,
        step: int,
        factors: Tensor | None,
        query: Tensor,
    ) -> Tensor:
        query_weight = attention.query_weight
        inputs = query_weight.inputs[step].copy_(query)  # kept for the gradient of the weight
        projected = query_weight.multiply(inputs)
        output = attention.backend.attend(
            attention.sources,
            query,
            projected,
            factors,
            weights=attention.weights[step],  # which this writes
        )
        ctx.attention, ctx.step, ctx.factors = attention, step, factors
        ctx.save_for_backward(query, output)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        attention, step, (query, output) = ctx.attention, ctx.step, ctx.saved_tensors
        attention.start_backward()
        grad_query = attention.backend.attend_backward(
            attention.sources,
            query,
            ctx.factors,
            attention.weights[step],
            output,
            grad_output=grad,
            # This writes both:
            grad_projected=attention.query_weight.gradients[step],
            grad_scores=attention.grad_scores[step],
        )
        grad_query.add_(attention.query_weight.input_gradient(step))
        return None, None, None, None, grad_query
