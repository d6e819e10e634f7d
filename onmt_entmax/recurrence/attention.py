"""A step of global attention for autograd; keys and values get their gradients after all steps.

`attention_steps` chooses between the steps here and the module itself. The order of calls is that
of `deferred`, with a `DeferredAttention` as the owner:

1. `attention_steps` projects the memory bank to keys and values, and calls `after_all_steps`.
2. The forward pass of a step calls `attend`. It keeps the step's queries for the gradients of the
   keys, and the step's attention weights for the gradients of the values.
3. The backward pass of a step, the last step first, calls `attend_backward`. It keeps the gradients
   with respect to the step's context vectors and scores.
4. Autograd calls `finish` after the backward passes of all steps.
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
    """Return the function of attention for the steps of a batch.

    If the attention can project, the gradients of its weights are products over all steps.
    Otherwise the function runs the module itself in each step.

    Args:
        attention: the attention of the decoder.
        bank: source vectors ``(batch, source, hidden)``, contiguous.
        lengths: real source positions, ``(batch,)`` int64, at least 1.
        steps: the rows that attend in each step.
        dtype: type of the factors of products, see `product`.

    Returns:
        A function of the number of a step, its queries ``(rows, hidden)``, and dropout factors
        ``(rows, hidden)`` or None. It returns the attentional vectors ``(rows, hidden)``, times the
        factors.
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
    # The backward pass of this node calls `finish`, for the gradients of keys, values and weight.
    # From there, autograd goes on to the projections that computed keys and values.
    dependency = after_all_steps(deferred, keys, values, query_weight)

    def attend(step: int, query: Tensor, factors: Tensor | None) -> Tensor:
        output: Tensor = AttentionStep.apply(deferred, dependency, step, factors, query)
        return output

    return attend


class DeferredAttention:
    """Keys, values and the queries' weight of a batch, which get their gradients after all steps.

    Two products over all steps give the gradients of a sentence's keys and values:

        gradient of the keys      gradients of the scores ** T  @  queries
        gradient of the values    attention weights ** T        @  gradients of the context vectors

    Queries and gradients of context vectors are stored in the queries' weight, a `DeferredWeight`:
    they are the inputs of its products, and the gradients with respect to these products, since the
    tanh is of the sum of the context vector and the product.

    Args:
        sources: keys, values and alpha. Row i attends to sentence i.
        query_weight: W_q of `EntmaxGlobalAttention.project`.
        steps: the rows of each step.
    """

    def __init__(self, sources: RowSources, query_weight: DeferredWeight, steps: Steps) -> None:
        keys = sources.memory.keys  # (batch, source, hidden)
        # `backend_for` looks at type, device and rank, which these keys share with a step's states.
        self._backend = backend_for(keys[0], sources)
        self._sources, self._query_weight, self._steps = sources, query_weight, steps
        # Attention weights of all steps, (total, source), and their parts, (rows, source) each.
        self._all_weights = keys.new_zeros(sum(steps.sizes), keys.size(1))
        self._weights = self._all_weights.split(steps.sizes)
        # Gradients of scores in the same shapes; there are none outside of a backward pass.
        self._all_grad_scores: Tensor | None = None
        self._grad_scores: Sequence[Tensor] = ()

    def attend(self, step: int, query: Tensor, factors: Tensor | None) -> Tensor:
        """Return the attentional vectors of a step, ``(rows, hidden)``.

        Args:
            step: number of the step.
            query: ``(rows, hidden)``.
            factors: dropout factors, ``(rows, hidden)``, or None.
        """
        inputs = self._query_weight.inputs[step].copy_(query)  # kept, in the type of the factors
        return self._backend.attend(
            self._sources,
            query,
            projected=self._query_weight.multiply(inputs),
            factors=factors,
            weights=self._weights[step],  # receives the attention weights
        )

    def attend_backward(
        self,
        step: int,
        query: Tensor,
        factors: Tensor | None,
        output: Tensor,
        grad_output: Tensor,
    ) -> Tensor:
        """Return the gradient with respect to a step's queries, ``(rows, hidden)``.

        Args:
            step: number of the step.
            query: the queries that :meth:`attend` took, ``(rows, hidden)``.
            factors: the dropout factors that it took, ``(rows, hidden)``, or None.
            output: what it returned, ``(rows, hidden)``.
            grad_output: gradient with respect to that, ``(rows, hidden)``.
        """
        if self._query_weight.start_backward():  # this is the first step of a backward pass
            self._all_grad_scores = torch.zeros_like(self._all_weights)
            self._grad_scores = self._all_grad_scores.split(self._steps.sizes)
        grad_query = self._backend.attend_backward(
            self._sources,
            query,
            factors,
            self._weights[step],
            output,
            grad_output=grad_output,
            # Both receive gradients:
            grad_projected=self._query_weight.gradients[step],
            grad_scores=self._grad_scores[step],
        )
        return grad_query.add_(self._query_weight.input_gradient(step))

    def finish(self) -> tuple[Tensor, ...]:
        """Return the gradients of keys, values and the queries' weight.

        The memory of the steps' gradients is freed.
        """
        queries, grad_contexts = self._query_weight.all_inputs, self._query_weight.all_gradients
        grad_scores = self._all_grad_scores
        assert grad_contexts is not None, "a step has called `attend_backward`"
        assert grad_scores is not None, "a step has called `attend_backward`"
        # Two products of (batch, source, steps) and (batch, steps, hidden).
        grad_keys = torch.bmm(self._by_sentence(grad_scores).mT, self._by_sentence(queries))
        grad_values = torch.bmm(
            self._by_sentence(self._all_weights).mT, self._by_sentence(grad_contexts)
        )
        self._all_grad_scores, self._grad_scores = None, ()
        return grad_keys, grad_values, *self._query_weight.finish()

    def _by_sentence(self, packed: Tensor) -> Tensor:
        """Return packed rows as ``(batch, steps, size)``, with zeros where a sentence has ended.

        Args:
            packed: ``(total or more, size)``. Rows beyond the total, which only round up the number
                of rows for products, are left out.
        """
        positions, steps = self._steps.positions, len(self._steps.sizes)
        total, batch = len(positions), len(self._sources.memory)
        rows = packed[:total].to(self._all_weights.dtype)
        if total < steps * batch:
            zeros = rows.new_zeros(steps * batch, rows.size(1))
            rows = zeros.index_copy_(0, positions, rows)
        return rows.view(steps, batch, -1).transpose(0, 1)


class AttentionStep(torch.autograd.Function):
    """A step of attention: `DeferredAttention.attend`, with its gradient.

    ``apply(attention, dependency, step, factors, query)`` with `DeferredAttention`, the scalar of
    `after_all_steps`, the number of the step, dropout factors ``(rows, hidden)`` or None, and the
    queries ``(rows, hidden)``. Returns the attentional vectors ``(rows, hidden)``. It can be
    differentiated once: the node of `after_all_steps` refuses a second time.
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
        output = attention.attend(step, query, factors)
        ctx.attention, ctx.step, ctx.factors = attention, step, factors
        ctx.save_for_backward(query, output)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, output = ctx.saved_tensors
        grad_query = ctx.attention.attend_backward(
            ctx.step, query, ctx.factors, output, grad_output=grad
        )
        return None, None, None, None, grad_query
