"""The training loss: a linear layer, entmax and its Fenchel-Young loss as one autograd node.

Scores exist for one chunk of rows at a time. They become probabilities and then their gradient, in
place. On a GPU no shape depends on a value, so CUDA graphs can record the loss. On a CPU, chunks
whose supports are small take sparse products.
"""

from __future__ import annotations

from typing import Any

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
    """Return the sum of the losses, and int64 counts ``(3,)``: rows, correct rows, support.

    ``apply(hidden, weight, bias, target, counted, alpha, smoothing, spread)`` of hidden ``(rows,
    hidden)``, weight ``(vocab, hidden)``, bias ``(vocab,)``, target ``(rows,)`` int64. ``counted``
    ``(rows,)`` int64 is 1, or 0 for ignored rows, whose states must be 0. ``spread`` ``(vocab,)``
    is what smoothing adds to the target probabilities, or None.
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
        loss, counts = hidden.new_zeros(()), counted.new_zeros(3)
        d_hidden, d_bias = torch.empty_like(hidden), torch.zeros_like(bias)
        d_weight: Tensor | None = None  # of chunks with dense products
        entries = [(target[:0], target[:0], hidden[:0, 0])]  # row, column, value of other chunks
        for begin in range(0, len(hidden), size):
            rows = slice(begin, begin + size)
            h, y = hidden[rows], target[rows].unsqueeze(1)
            scores = product(h, weight, bias)
            own = scores.gather(1, y).squeeze(1)
            conjugate, maxima = solve_(scores, alpha)
            margins = maxima - own  # small differences first: they keep their digits
            losses = conjugate + (1 - smoothing) * margins + smoothing * maxima
            loss += losses @ factor[rows]
            probability = scores.gather(1, y)
            gradient = scores.scatter_add_(1, y, scores.new_full(y.shape, smoothing - 1))
            places = nonzero(gradient, _SPARSE) if on_cpu else None
            if places is None:
                support = gradient.count_nonzero(1)
            else:
                row = places // vocab
                column, value = places - row * vocab, gradient.view(-1).index_select(0, places)
                support = row.bincount(minlength=len(h))
            # The target's gradient is not its probability.
            support += ((probability != 0).long() - (gradient.gather(1, y) != 0).long()).squeeze(1)
            if alpha == 1:
                support.fill_(vocab)  # probabilities that are rounded to 0 count
            measured = torch.stack([torch.ones_like(support), margins == 0, support])
            counts += (measured * counted[rows]).sum(1)
            if not any(ctx.needs_input_grad[:3]):
                continue
            if places is None:
                d_hidden[rows] = product(gradient, weight.t())
                part = weight_gradient(gradient, h)
                d_weight = part if d_weight is None else d_weight.add_(part)
                d_bias += factor[rows] @ gradient
            else:
                d_hidden[rows] = _sparse_product(row, column, value, weight, len(h))
                entries.append((row + begin, column, value))
        row, column, value = map(torch.cat, zip(*entries, strict=True))
        d_bias.index_add_(0, column, value)
        d_hidden *= factor.unsqueeze(1)
        states = None
        if spread is not None:
            # What smoothing adds is linear in the scores, which need not exist for it.
            states, pull, kept = factor @ hidden, spread @ weight, factor.sum()
            loss -= states @ pull + kept * (spread @ bias)
            d_hidden.addr_(factor, pull, alpha=-1)
            d_bias -= kept * spread
        ctx.save_for_backward(
            d_hidden, d_weight, d_bias, hidden, row, column, value, states, spread
        )
        ctx.mark_non_differentiable(counts)
        return loss, counts

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "OutputLayer.loss has no gradients of gradients (create_graph=True): "
                "use entmax_loss(layer.scores(hidden), target) instead"
            )
        d_hidden, dense, d_bias, hidden, row, column, value, states, spread = ctx.saved_tensors
        if dense is not None and not len(row):
            d_weight = dense * gradient
        else:
            order = column.argsort()
            row, column, value = (part.index_select(0, order) for part in (row, column, value))
            d_weight = _sparse_product(column, row, value * gradient, hidden, len(d_bias))
            if dense is not None:
                d_weight.addcmul_(dense, gradient)
        if spread is not None:
            d_weight.addr_(spread, states * gradient, alpha=-1)
        return d_hidden * gradient, d_weight, d_bias * gradient, *[None] * 5


def _sparse_product(
    row: Tensor, column: Tensor, value: Tensor, matrix: Tensor, rows: int
) -> Tensor:
    """Return the product of a sparse matrix of ``rows`` rows, its entries ordered by row."""
    counts = row.bincount(minlength=rows)
    begins = counts.cumsum(0) - counts
    return functional.embedding_bag(column, matrix, begins, mode="sum", per_sample_weights=value)
