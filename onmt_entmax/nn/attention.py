"""Global attention with alpha-entmax: the layer, and its steps in an input-feeding recurrence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, cat, tanh

from onmt_entmax.nn.lstm_steps import Sources, steps_for
from onmt_entmax.nn.products import Deferred, anchor, linear
from onmt_entmax.opennmt import GlobalAttention, sequence_mask
from onmt_entmax.sparse import entmax


class EntmaxGlobalAttention(GlobalAttention):
    """OpenNMT-py's `GlobalAttention` with alpha-entmax instead of softmax.

    Scores and projections are inherited (Luong et al. 2015: `dot`, `general`; Bahdanau et al. 2015:
    `mlp`). The weights are alpha-entmax of the scores (Peters et al. 2019, Eq. 10): exactly zero at
    irrelevant source positions, and at padding.

    Args:
        dim: size of queries and source vectors.
        attn_type: "dot", "general" or "mlp".
        alpha: 1 is softmax, 2 is sparsemax.
    """

    def __init__(self, dim: int, attn_type: str = "general", alpha: float = 1.5) -> None:
        super().__init__(dim, attn_type=attn_type)
        self.alpha = alpha

    def forward(
        self,
        source: Tensor,
        memory_bank: Tensor,
        memory_lengths: Tensor | None = None,
        coverage: None = None,
    ) -> tuple[Tensor, Tensor]:
        """Attend to the source; argument names and shapes are OpenNMT-py's.

        Args:
            source: queries, ``(batch, dim)`` for one step or ``(batch, tgt_len, dim)``.
            memory_bank: source vectors, ``(batch, src_len, dim)``.
            memory_lengths: ``(batch,)``; positions beyond get weight zero. None: all are real.
            coverage: must be None.

        Returns:
            Attentional vectors and weights: ``(batch, dim)`` and ``(batch, src_len)`` for one
            step, else ``(tgt_len, batch, dim)`` and ``(tgt_len, batch, src_len)``.
        """
        assert coverage is None, "coverage is refused in the configuration"
        queries = source.unsqueeze(1) if source.dim() == 2 else source
        scores = self.score(queries, memory_bank)
        if memory_lengths is not None:
            mask = sequence_mask(memory_lengths, max_len=scores.size(-1)).unsqueeze(1)
            scores = scores.masked_fill(~mask, -float("inf"))
        weights = entmax(scores, self.alpha, dim=-1)
        context = weights @ memory_bank
        output = self.linear_out(cat([context, queries], dim=2))
        if self.attn_type != "mlp":
            output = tanh(output)
        if source.dim() == 2:
            return output.squeeze(1), weights.squeeze(1)
        return output.transpose(0, 1).contiguous(), weights.transpose(0, 1).contiguous()

    def extra_repr(self) -> str:
        """Return type and alpha, for printing."""
        return f"{self.attn_type}, alpha={self.alpha:g}"

    def project(
        self, bank: Tensor, dtype: torch.dtype | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys, values and the queries' weight of `dot` or `general` attention.

        For a context vector ``c = sum_j p_j m_j``, a query q and the attentional vector
        ``tanh(W_c c + W_q q)`` (Luong et al. 2015, Eq. 5), ``W_c c = sum_j p_j (W_c m_j)``: a step
        needs no product with W_c if the values are ``W_c m_j``. Likewise, the scores of `general`
        are ``m_j . W_a q = (W_a^T m_j) . q``.

        Args:
            bank: source vectors ``(batch, src_len, dim)``, contiguous.
            dtype: of the factors of products, see `product`.

        Returns:
            Keys and values like the bank, and W_q ``(dim, dim)``.
        """
        context, query = self.linear_out.weight.split(self.dim, dim=1)
        flat, keys = bank.flatten(0, 1), bank
        if self.attn_type == "general":
            keys = linear(flat, self.linear_in.weight.t(), None, dtype).view_as(bank)
        return keys, linear(flat, context, None, dtype).view_as(bank), query


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
        attention: `mlp` runs as the module does, step by step.
        bank: source vectors ``(batch, source, hidden)``, contiguous.
        lengths: real source positions, ``(batch,)`` int64, at least 1.
        sizes: rows that attend in each step, the first ones of the batch.
        places: positions of these in ``(steps * batch)``, for all steps.
        dtype: of the factors of products, see `product`.

    Returns:
        A function of the number of a step, its queries ``(rows, hidden)`` and dropout factors or
        None. It returns the attentional vectors ``(rows, hidden)`` times the factors.
    """
    if attention.attn_type == "mlp":

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
        self.kind = steps_for(sources.keys[0], sources.alpha)
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
        self.start_backward()
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
