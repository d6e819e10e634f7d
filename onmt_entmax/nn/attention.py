"""Global attention with alpha-entmax, and what a step of an LSTM with it computes.

`EntmaxGlobalAttention` is the layer, which `attention_steps` runs in a recurrence. `PlainSteps` has
a step of attention and of the cell; `NativeSteps` (C++, `csrc/lstm.cpp`) and `TritonSteps`
(`lstm_triton.py`) equal it to rounding.
"""

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, cat, tanh

from onmt_entmax.nn.products import Deferred, anchor, linear
from onmt_entmax.opennmt import GlobalAttention, sequence_mask
from onmt_entmax.sparse import entmax
from onmt_entmax.sparse.backends.cpu import load


class EntmaxGlobalAttention(GlobalAttention):
    """OpenNMT-py's `GlobalAttention` with alpha-entmax instead of softmax.

    Scores and projections are inherited (Luong et al. 2015: `dot`, `general`; Bahdanau et al. 2015:
    `mlp`). The weights are alpha-entmax of the scores (Peters et al. 2019, Eq. 10): exactly zero at
    irrelevant source positions, and at padding. A subclass may have its own ``score``.

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

    @property
    def can_project(self) -> bool:
        """Whether :meth:`project` has the same scores: those of OpenNMT-py's `dot` and `general`.

        Every other type, and every subclass with its own scores or output, runs as the module does.
        """
        methods = (self.score, GlobalAttention.score), (self.forward, EntmaxGlobalAttention.forward)
        inherited = all(getattr(own, "__func__", None) is base for own, base in methods)
        return inherited and self.attn_type in ("dot", "general")

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

        Raises:
            ValueError: if the scores are not products of keys and queries, see `can_project`.
        """
        if not self.can_project:
            raise ValueError(f"scores of {type(self).__name__} ({self.attn_type}) are no products")
        context, query = self.linear_out.weight.split(self.dim, dim=1)
        flat, keys = bank.flatten(0, 1), bank
        if self.attn_type == "general":
            keys = linear(flat, self.linear_in.weight.t(), None, dtype).view_as(bank)
        return keys, linear(flat, context, None, dtype).view_as(bank), query


@dataclass(frozen=True)
class Sources:
    """What the rows of a step attend to.

    Attributes:
        keys: what queries are compared with, ``(sentences, source, hidden)``, contiguous.
        values: what context vectors are sums of, likewise.
        lengths: real source positions, ``(sentences,)`` int64, at least 1.
        owners: the sentence of each row, ``(rows,)`` int64; None: row i has sentence i.
        alpha: of entmax.
    """

    keys: Tensor
    values: Tensor
    lengths: Tensor
    owners: Tensor | None
    alpha: float

    def of_rows(self, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys, values and lengths of each row."""
        parts = self.keys, self.values, self.lengths
        if self.owners is None:
            return tuple(part[:rows] for part in parts)  # type: ignore[return-value]
        return tuple(part.index_select(0, self.owners) for part in parts)  # type: ignore[return-value]


class PlainSteps:
    """The steps as PyTorch operations, for any device and type."""

    @staticmethod
    def cell_forward(
        gates: Tensor, summand: Tensor, cell: Tensor, factors: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Take an LSTM step (Hochreiter & Schmidhuber 1997, as `torch.nn.LSTMCell`).

        Args:
            gates: products ``(..., rows, 4 * hidden)``, in bfloat16 or the type of the states;
                their memory may be taken for the activations.
            summand: added to the products.
            cell: cell states ``(..., rows, hidden)``.
            factors: dropout of the output, ``(rows, hidden)``, or None.

        Returns:
            Activations of the gates, output, which is the hidden state times the factors, hidden
            state, and cell state.
        """
        activations = gates.to(cell.dtype).add_(summand)
        enter, forget, candidate, leave = activations.chunk(4, -1)
        enter, forget, candidate = enter.sigmoid_(), forget.sigmoid_(), candidate.tanh_()
        cell = torch.addcmul(enter * candidate, forget, cell)
        hidden = leave.sigmoid_() * cell.tanh()
        output = hidden.clone() if factors is None else hidden * factors
        return activations, output, hidden, cell

    @staticmethod
    def cell_backward(
        activations: Tensor,
        cell: Tensor,
        cell_after: Tensor,
        factors: Tensor | None,
        grads: tuple[Tensor, Tensor, Tensor],
        grad_gates: Tensor,
    ) -> Tensor:
        """Return the gradient of `cell`.

        Args:
            activations: what `cell_forward` returned.
            cell: before the step.
            cell_after: after it.
            factors: as in `cell_forward`.
            grads: of output, hidden state and cell state.
            grad_gates: receives the gradient of the gates, in bfloat16 or the type of the states.
        """
        enter, forget, candidate, leave = activations.chunk(4, -1)
        output, hidden, inside = grads
        grad = hidden + (output if factors is None else output * factors)
        squashed = cell_after.tanh()
        inside = inside + grad * leave * (1 - squashed * squashed)
        parts = [
            inside * candidate * enter * (1 - enter),
            inside * cell * forget * (1 - forget),
            inside * enter * (1 - candidate * candidate),
            grad * squashed * leave * (1 - leave),
        ]
        grad_gates.copy_(torch.cat(parts, -1))
        return inside * forget

    @staticmethod
    def attend(
        sources: Sources, query: Tensor, product: Tensor, factors: Tensor | None, weights: Tensor
    ) -> Tensor:
        """Return attentional vectors ``tanh(sum_j p_j values_j + product) * factors``.

        p is entmax of the scores ``keys @ query``; see `EntmaxGlobalAttention.project`.

        Args:
            sources: keys and values.
            query: ``(rows, hidden)``.
            product: the query times its weight, ``(rows, hidden)``, in bfloat16 or the type of the
                states.
            factors: dropout, ``(rows, hidden)``, or None.
            weights: receives p, ``(rows, source)``; zeros before.
        """
        keys, values, lengths = sources.of_rows(len(query))
        weights.copy_(entmax(_scores(query, keys, lengths), sources.alpha))
        start = product.to(values.dtype).unsqueeze(1)
        output = torch.baddbmm(start, weights.unsqueeze(1), values).squeeze(1).tanh()
        return output if factors is None else output * factors

    @staticmethod
    def attend_backward(
        sources: Sources,
        query: Tensor,
        factors: Tensor | None,
        weights: Tensor,
        output: Tensor,
        grad_output: Tensor,
        grad: Tensor,
        grad_scores: Tensor,
    ) -> Tensor:
        """Return the gradient of the query through the scores, ``(rows, hidden)``.

        Args:
            sources: as in `attend`.
            query: likewise.
            factors: likewise.
            weights: what `attend` wrote.
            output: what it returned.
            grad_output: gradient of that.
            grad: receives the gradient before the tanh, ``(rows, hidden)``, in bfloat16 or the
                type of the states.
            grad_scores: receives that of the scores, ``(rows, source)``; zeros before.
        """
        keys, values, lengths = sources.of_rows(len(query))
        if factors is not None:  # what is dropped has no gradient, so its output does not matter
            output = output / torch.where(factors == 0, 1.0, factors)
            grad_output = grad_output * factors
        before = grad_output * (1 - output * output)
        grad.copy_(before)
        grad_weights = torch.bmm(before.unsqueeze(1), values.mT).squeeze(1)
        with torch.enable_grad():
            scores = _scores(query, keys, lengths).requires_grad_()
            again = entmax(scores, sources.alpha)
        grad_scores.copy_(torch.autograd.grad(again, scores, grad_weights)[0])
        return torch.bmm(grad_scores.unsqueeze(1), keys).squeeze(1)


def _scores(query: Tensor, keys: Tensor, lengths: Tensor) -> Tensor:
    # The other order, matrix times vector, is eleven times slower in MKL.
    scores = torch.bmm(query.unsqueeze(1), keys.mT).squeeze(1)
    padding = torch.arange(keys.size(1), device=keys.device) >= lengths.unsqueeze(1)
    return scores.masked_fill(padding, -torch.inf).detach()


native: Any = load("onmt_entmax.nn._lstm")


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _with_columns(grad: Tensor) -> Tensor:
    """Return a gradient whose rows are contiguous, which an expanded one's are not."""
    return grad if grad.stride(1) == 1 else grad.contiguous()


def _numbers(sources: Sources) -> tuple[int, ...]:
    """Return the numbers of the C++ struct `Sources`."""
    tensors = sources.keys, sources.values, sources.lengths, sources.owners
    (bits,) = struct.unpack("q", struct.pack("d", sources.alpha))
    return sources.keys.size(1), *map(_address, tensors), bits


class NativeSteps(PlainSteps):
    """The steps in C++, one call each, for float32 states on a CPU.

    Matrices are contiguous, but for summands and gradients, whose strides are given.
    """

    @staticmethod
    def cell_forward(
        gates: Tensor, summand: Tensor, cell: Tensor, factors: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        output, hidden, after = (torch.empty_like(cell) for _ in range(3))
        half = gates.dtype == torch.bfloat16
        activations = cell.new_empty(gates.shape) if half else gates
        native.cell_forward(
            torch.get_num_threads(),
            *cell.shape,
            half,
            *map(_address, (gates, summand)),
            summand.stride(0),
            *map(_address, (cell, factors, activations, output, hidden, after)),
        )
        return activations, output, hidden, after

    @staticmethod
    def cell_backward(
        activations: Tensor,
        cell: Tensor,
        cell_after: Tensor,
        factors: Tensor | None,
        grads: tuple[Tensor, Tensor, Tensor],
        grad_gates: Tensor,
    ) -> Tensor:
        before = torch.empty_like(cell)
        arriving = [*map(_with_columns, grads)]  # held until C++ has read them
        native.cell_backward(
            torch.get_num_threads(),
            *cell.shape,
            grad_gates.dtype == torch.bfloat16,
            *map(_address, (activations, cell, cell_after, factors)),
            *(number for each in arriving for number in (each.data_ptr(), each.stride(0))),
            *map(_address, (grad_gates, before)),
        )
        return before

    @staticmethod
    def attend(
        sources: Sources, query: Tensor, product: Tensor, factors: Tensor | None, weights: Tensor
    ) -> Tensor:
        output = torch.empty_like(query)
        tensors = query, product, factors, weights, output
        numbers = product.dtype == torch.bfloat16, *_numbers(sources)
        native.attend(torch.get_num_threads(), *query.shape, *numbers, *map(_address, tensors))
        return output

    @staticmethod
    def attend_backward(
        sources: Sources,
        query: Tensor,
        factors: Tensor | None,
        weights: Tensor,
        output: Tensor,
        grad_output: Tensor,
        grad: Tensor,
        grad_scores: Tensor,
    ) -> Tensor:
        made, grad_output = torch.empty_like(query), _with_columns(grad_output)
        tensors = factors, weights, output, grad, grad_scores, made, grad_output
        numbers = *_numbers(sources), *map(_address, tensors), grad_output.stride(0)
        half = grad.dtype == torch.bfloat16
        native.attend_backward(torch.get_num_threads(), *query.shape, half, *numbers)
        return made


def steps_for(like: Tensor, sources: Sources | None = None) -> type[PlainSteps]:
    """Return the steps for cell states like these, or for attention to sources.

    In C++ for float32 on a CPU, as Triton kernels on a GPU, in PyTorch for everything else.
    """
    alpha, length = (1.0, 0) if sources is None else (sources.alpha, sources.keys.size(1))
    if like.is_cuda or os.environ.get("TRITON_INTERPRET") == "1":
        try:
            from onmt_entmax.nn import lstm_triton
        except ImportError:
            return PlainSteps
        small = alpha <= 2 and length <= lstm_triton.LONGEST
        small &= like.dtype in (torch.float32, torch.float64)
        return lstm_triton.TritonSteps if small and lstm_triton.start(like.device) else PlainSteps
    # Below 1.1, powers of 1 / (alpha - 1) leave float32's range.
    exact = alpha == 1 or 1.1 <= alpha <= 2
    in_memory = like.device.type == "cpu" and type(like) is Tensor
    is_matrix = like.dim() == 2 and like.dtype == torch.float32
    return NativeSteps if native and exact and in_memory and is_matrix else PlainSteps


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
        self.kind = steps_for(sources.keys[0], sources)
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
