"""The output layer: from decoder states to scores, log-probabilities, the support, or the loss.

`OutputLayer` is the module; `PreparedOutput` computes the same in a search. Of a sparse output, the
scores of one group of rows at a time are in memory. In `LinearLoss` they become probabilities and
then their gradient, in place. On a GPU no shape depends on a value, so CUDA graphs can record the
loss. On a CPU, chunks whose supports are small take sparse products.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional

from onmt_entmax import errors
from onmt_entmax.nn.bf16_filter import find_by_bfloat16
from onmt_entmax.nn.products import PreparedWeight, nonzero, product, weight_gradient
from onmt_entmax.nn.support import Distribution, Support, join_supports, short_form
from onmt_entmax.sparse import log_entmax
from onmt_entmax.sparse.arguments import valid_alpha
from onmt_entmax.sparse.backends import solve

# Scores in a chunk: on a CPU they fit a cache, on a GPU 512 MB. Each chunk reads all weights, so it
# has at least so many rows.
_CPU_SCORES, _GPU_SCORES = 1 << 21, 1 << 27
_LEAST_ROWS = 256
# Scores in a chunk of a search's rows: below 32 MB, the allocator reuses the memory.
_SEARCH_SCORES = 1 << 22
# Of so many rows of a search, the first are never filtered: if their supports are few tokens on
# average, the next group is. So the rows alone decide what is filtered, not earlier steps.
_MANY, _FIRST, _FEW = 128, 32, 6
# Share of nonzero gradients in a chunk up to which sparse products are faster.
_SPARSE = 1 / 16


class LinearLoss(Function):
    r"""Return the sum of the losses, and int64 counts ``(3,)``: rows, correct rows, support.

    ``apply(hidden, weight, bias, target, counted, alpha, smoothing, spread)`` of hidden ``(rows,
    hidden)``, weight ``(vocab, hidden)``, bias ``(vocab,)``, target ``(rows,)`` int64. ``counted``
    ``(rows,)`` is false for ignored rows, whose states must be constant zeros: the gradient there
    means nothing. ``spread`` ``(vocab,)`` is what smoothing adds to the target probabilities, or
    None.

    With probabilities p and Fenchel-Young loss :math:`\Omega^*(z) - y^\top z` (Blondel et al.
    2020), the gradient in the scores z is p - y.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        target: Tensor,
        counted: Tensor,
        alpha: float,
        smoothing: float,
        spread: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        vocab, on_cpu = len(weight), hidden.device.type == "cpu"
        size = max((_CPU_SCORES if on_cpu else _GPU_SCORES) // vocab, _LEAST_ROWS)
        factor = counted.to(hidden.dtype)
        loss, counts = hidden.new_zeros(()), target.new_zeros(3)
        d_hidden, d_bias = torch.empty_like(hidden), torch.zeros_like(bias)
        d_weight: Tensor | None = None  # of chunks with dense products
        sparse = [_Sparse(target[:0], target[:0], hidden[:0, 0])]  # gradients of other chunks
        for begin in range(0, len(hidden), size):
            rows = slice(begin, begin + size)
            h, y, real = hidden[rows], target[rows].unsqueeze(1), counted[rows]
            scores = product(h, weight, bias)
            own = scores.gather(1, y).squeeze(1)
            conjugate, maxima = solve(scores, alpha, scores)
            margins = maxima - own  # small differences first: they keep their digits
            losses = conjugate + (1 - smoothing) * margins + smoothing * maxima
            loss += losses.masked_fill_(~real, 0).sum()
            probability = scores.gather(1, y)
            gradient = scores.scatter_add_(1, y, scores.new_full(y.shape, smoothing - 1))
            few = _Sparse.of(gradient) if on_cpu else None
            support = gradient.count_nonzero(1) if few is None else few.counts(len(h))
            support += ((probability != 0).long() - (gradient.gather(1, y) != 0).long()).squeeze(1)
            if alpha == 1:
                support.fill_(vocab)  # probabilities that are rounded to 0 count
            counts += (torch.stack([torch.ones_like(support), margins == 0, support]) * real).sum(1)
            if not any(ctx.needs_input_grad[:3]):
                continue
            if few is None:
                d_hidden[rows] = product(gradient, weight.t())
                part = weight_gradient(gradient, h)
                d_weight = part if d_weight is None else d_weight.add_(part)
                d_bias += factor[rows] @ gradient
            else:
                d_hidden[rows] = few.times(weight, len(h))
                sparse.append(few._replace(row=few.row + begin))
        entries = _Sparse(*map(torch.cat, zip(*sparse, strict=True)))
        d_bias.index_add_(0, entries.column, entries.value)
        states: Tensor | None = None
        if spread is not None:  # its part is linear in the scores, which need not exist for it
            states, pull, kept = factor @ hidden, spread @ weight, factor.sum()
            loss -= states @ pull + kept * (spread @ bias)
            d_hidden -= pull
            d_bias -= kept * spread
        ctx.save_for_backward(d_hidden, d_weight, d_bias, hidden, states, spread, *entries)
        ctx.mark_non_differentiable(counts)
        return loss, counts

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "OutputLayer.loss has no gradients of gradients (create_graph=True): "
                "use entmax_loss(layer.scores(hidden), target) instead"
            )
        d_hidden, dense, d_bias, hidden, states, spread, row, column, value = ctx.saved_tensors
        if dense is not None and not len(row):
            d_weight = dense * gradient
        else:
            order = column.argsort()
            transposed = _Sparse(*(part.index_select(0, order) for part in (column, row, value)))
            d_weight = transposed._replace(value=transposed.value * gradient).times(
                hidden, len(d_bias)
            )
            if dense is not None:
                d_weight.addcmul_(dense, gradient)
        if spread is not None:
            d_weight.addr_(spread, states * gradient, alpha=-1)
        return d_hidden * gradient, d_weight, d_bias * gradient, *[None] * 5


class _Sparse(NamedTuple):
    """Entries ``(k,)`` of a sparse matrix, ordered by row; row and column are int64."""

    row: Tensor
    column: Tensor
    value: Tensor

    @classmethod
    def of(cls, matrix: Tensor) -> _Sparse | None:
        """Return the entries of a matrix if they are few."""
        places = nonzero(matrix, _SPARSE)
        if places is None:
            return None
        row = places // matrix.shape[1]
        column = places - row * matrix.shape[1]
        return cls(row, column, matrix.view(-1).index_select(0, places))

    def counts(self, rows: int) -> Tensor:
        """Return the number of entries of each row."""
        return self.row.bincount(minlength=rows)

    def times(self, matrix: Tensor, rows: int) -> Tensor:
        """Return the product ``(rows, size)`` with a matrix ``(columns, size)``."""
        counts = self.counts(rows)
        begins = counts.cumsum(0) - counts
        return functional.embedding_bag(
            self.column, matrix, begins, mode="sum", per_sample_weights=self.value
        )


class OutputLoss(NamedTuple):
    """Loss and counts of a batch: 0-dim tensors, of which only ``loss`` has a graph.

    Attributes:
        loss: sum over the targets that are not ignored, in nats.
        tokens: number of targets that are not ignored.
        correct: how many of them have the largest score.
        support: number of nonzero probabilities, summed over their rows.
    """

    loss: Tensor
    tokens: Tensor
    correct: Tensor
    support: Tensor


class OutputLayer(nn.Module):
    """A linear layer onto the vocabulary, followed by entmax or its loss.

    To tie the weights: ``output.weight = embedding.weight``.

    Args:
        hidden_size: of the decoder's states.
        vocab_size: number of tokens.
        alpha: a number >= 1; 1 is softmax.

    Attributes:
        prior: ``(vocab,)`` distribution that label smoothing mixes in; None is uniform.
    """

    prior: Tensor | None

    def __init__(self, hidden_size: int, vocab_size: int, alpha: float = 1.5) -> None:
        super().__init__()
        self.alpha = float(valid_alpha(alpha))
        self.weight = nn.Parameter(torch.empty(vocab_size, hidden_size))
        self.bias = nn.Parameter(torch.empty(vocab_size))
        self.register_buffer("prior", None, persistent=False)
        # As `torch.nn.Linear` does.
        bound = 1 / math.sqrt(max(hidden_size, 1))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def scores(self, hidden: Tensor) -> Tensor:
        """Return scores ``(..., vocab)``, in the weights' type, of hidden ``(..., hidden)``."""
        with torch.autocast(hidden.device.type, enabled=False):
            return functional.linear(hidden.to(self.weight.dtype), self.weight, self.bias)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Return log-probabilities ``(..., vocab)``, -inf outside the support."""
        return log_entmax(self.scores(hidden), self.alpha)

    @torch._disable_dynamo
    def loss(
        self, hidden: Tensor, target: Tensor, ignore_index: int, label_smoothing: float = 0.0
    ) -> OutputLoss:
        """Return the summed loss of ``target`` ``(N,)`` int64 given ``hidden`` ``(N, hidden)``.

        Equals ``entmax_loss`` of :meth:`scores` with reduction "sum", but never holds the scores of
        all rows, and has no gradients of gradients (RuntimeError). `torch.compile` leaves it out of
        its graphs (and refuses it with ``fullgraph=True``); CUDA graphs can record it.

        Raises:
            ValueError: if the shapes do not fit, label_smoothing is not in [0, 1], the weights have
                16 bits, or, on a CPU only, a target is not in the vocabulary or a row of scores is
                -inf everywhere. A GPU checks no values, to avoid a synchronisation.
        """
        vocab, on_cpu = len(self.weight), hidden.device.type == "cpu"
        if self.weight.dtype not in (torch.float32, torch.float64):
            raise ValueError(
                f"the loss needs weights of 32 or 64 bits, not {self.weight.dtype}: keep the layer "
                f"in float32 (autocast may do the rest)"
            )
        if not 0.0 <= label_smoothing <= 1.0:
            raise ValueError(f"label_smoothing must be between 0 and 1, got {label_smoothing}")
        if hidden.dim() != 2 or target.shape != hidden.shape[:1]:
            raise ValueError(
                f"expected hidden (N, hidden) and target (N,), got {tuple(hidden.shape)} and "
                f"{tuple(target.shape)}"
            )
        counted = target != ignore_index
        if on_cpu:
            kept = counted.nonzero().squeeze(1)
            if len(kept) < len(target):
                hidden, target, counted = hidden[kept], target[kept], counted[kept]
            if len(target) and not 0 <= int(target.min()) <= int(target.max()) < vocab:
                raise ValueError(
                    f"a target is not in the vocabulary of {errors.counted(vocab, 'token')}: "
                    f"smallest {int(target.min())}, largest {int(target.max())}"
                )
        else:
            hidden = hidden.masked_fill(~counted.unsqueeze(1), 0)
            target = target.masked_fill(~counted, 0)
        spread = None
        if label_smoothing:
            even = self.weight.new_full((vocab,), 1 / vocab)
            spread = label_smoothing * (even if self.prior is None else self.prior)
        with torch.autocast(hidden.device.type, enabled=False):
            loss, counts = LinearLoss.apply(
                hidden.to(self.weight.dtype),
                self.weight,
                self.bias,
                target,
                counted,
                self.alpha,
                float(label_smoothing),
                spread,
            )
        return OutputLoss(loss, *counts.unbind())

    def extra_repr(self) -> str:
        """Return sizes and alpha, for printing."""
        vocab_size, hidden_size = self.weight.shape
        return f"hidden_size={hidden_size}, vocab_size={vocab_size}, alpha={self.alpha}"


class PreparedOutput:
    """An output layer prepared for the steps of a search; later changes of the weights are ignored.

    Args:
        weight: ``(vocabulary, hidden)``.
        bias: ``(vocabulary,)``.
        alpha: a number >= 1.
    """

    @torch.inference_mode()
    def __init__(self, weight: Tensor, bias: Tensor, alpha: float) -> None:
        self._rows, self._alpha = max(_SEARCH_SCORES // max(len(weight), 1), 1), alpha
        self._scores = PreparedWeight(weight, bias)
        self._find = find_by_bfloat16(weight, bias, alpha)

    @torch.inference_mode()
    def __call__(self, hidden: Tensor) -> Distribution:
        """Return log-probabilities of the next token given hidden ``(rows, hidden)``.

        The result is a `Support` if alpha is above 1 and the supports are small, else a tensor.
        """
        groups, few = list(hidden.split(self._rows)), False
        if self._find is not None and len(hidden) >= _MANY:
            groups = [hidden[:_FIRST], *hidden[_FIRST:].split(self._rows)]
        parts: list[Distribution] = []
        for rows in groups:
            part: Distribution | None = self._find(rows) if self._find and few else None
            if part is None:
                log_probs = log_entmax(self._scores(rows), self._alpha)
                part = short_form(log_probs) if self._alpha > 1 else log_probs
            few = isinstance(part, Support) and len(part.row) <= _FEW * part.rows
            parts.append(part)
        supports = [part for part in parts if isinstance(part, Support)]
        if len(supports) == len(parts):
            return join_supports(supports)
        return torch.cat([part.dense() if isinstance(part, Support) else part for part in parts])
