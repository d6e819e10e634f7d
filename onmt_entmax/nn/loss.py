"""The training loss: a linear layer, entmax and its Fenchel-Young loss as one autograd node.

Scores exist for one chunk of rows at a time. They become probabilities and then their gradient, in
place. On a GPU no shape depends on a value, so CUDA graphs can record the loss. On a CPU, chunks
whose supports are small take sparse products.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from onmt_entmax.nn.products import product, weight_gradient
from onmt_entmax.nn.support import nonzero
from onmt_entmax.sparse.backends import solve_

# Scores in a chunk: on a CPU they fit a cache, on a GPU 512 MB. Each chunk reads all weights, so it
# has at least so many rows.
_CPU_SCORES, _GPU_SCORES = 1 << 21, 1 << 27
_LEAST_ROWS = 256
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
            conjugate, maxima = solve_(scores, alpha)
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
