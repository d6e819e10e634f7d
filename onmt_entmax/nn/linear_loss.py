"""The loss of a linear layer onto the vocabulary, with the scores of one chunk of rows at a time.

In a chunk, scores become probabilities and then their gradient, in place: the backward pass needs
no scores. On a GPU no shape depends on a value, so CUDA graphs can record the loss. On a CPU,
chunks whose supports are small take sparse products.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from onmt_entmax.nn.products import nonzero, product, weight_gradient
from onmt_entmax.sparse.backends import solve

# Scores in a chunk: on a CPU they fit a cache, on a GPU 512 MB. Each chunk reads all weights, so it
# has at least so many rows.
_CPU_SCORES, _GPU_SCORES = 1 << 21, 1 << 27
_LEAST_ROWS = 256
# Share of nonzero gradients in a chunk up to which sparse products are faster. Here they take 0.52
# of the time of dense products for 776 tokens and 300 states, and 0.74 for 18,000 and 500; at
# 1 / 8, 0.87 and 1.44 (float32, one thread, AVX-512).
_SPARSE = 1 / 16


class LinearLoss(Function):
    r"""Return the sum of the losses, and int64 counts ``(3,)``: rows, correct rows, support.

    ``apply(hidden, weight, bias, target, counted, alpha, smoothing, spread)`` of hidden ``(rows,
    hidden)``, weight ``(vocab, hidden)``, bias ``(vocab,)``, target ``(rows,)`` int64. ``counted``
    ``(rows,)`` is false for ignored rows, whose states must be constant zeros: the gradient there
    means nothing. ``spread`` ``(vocab,)`` is what smoothing adds to the target probabilities, or
    None.

    With probabilities p and Fenchel-Young loss :math:`\Omega^*(z) - y^\top z` (Blondel et al.
    2020), the gradient in the scores z is p - y. Forward computes it, since it needs the memory of
    the scores; backward multiplies it by the incoming gradient, a number.
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
        loss, counts = hidden.new_zeros(()), target.new_zeros(3)
        gradients = _Gradients(hidden, weight, bias, counted)
        for rows in _chunks(hidden, weight):
            real = counted[rows]
            scores = product(hidden[rows], weight, bias)  # (chunk, vocab)
            chunk = _solve(scores, target[rows].unsqueeze(1), alpha, smoothing)
            loss += chunk.losses.masked_fill_(~real, 0).sum()
            counts += (chunk.counts * real).sum(1)
            if any(ctx.needs_input_grad[:3]):
                gradients.add(rows, chunk)
        entries = gradients.finish()
        states: Tensor | None = None
        if spread is not None:
            states, part = gradients.smooth(spread)
            loss -= part
        ctx.save_for_backward(
            gradients.hidden, gradients.weight, gradients.bias, hidden, states, spread, *entries
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
        d_hidden, dense, d_bias, hidden, states, spread, *parts = ctx.saved_tensors
        entries = _Sparse(*parts)
        if dense is not None and not len(entries.row):
            d_weight = dense * gradient
        else:
            transposed = entries.transposed()  # (vocab, rows)
            scaled = transposed._replace(value=transposed.value * gradient)
            d_weight = scaled.times(hidden, len(d_bias))
            if dense is not None:
                d_weight.addcmul_(dense, gradient)
        if spread is not None:
            d_weight.addr_(spread, states * gradient, alpha=-1)
        return d_hidden * gradient, d_weight, d_bias * gradient, *[None] * 5


def _chunks(hidden: Tensor, weight: Tensor) -> Iterator[slice]:
    """Yield the rows of each chunk."""
    scores = _CPU_SCORES if hidden.device.type == "cpu" else _GPU_SCORES
    size = max(scores // len(weight), _LEAST_ROWS)
    for begin in range(0, len(hidden), size):
        yield slice(begin, begin + size)


class _Chunk(NamedTuple):
    """The losses of a chunk of rows, and their gradient."""

    losses: Tensor
    """``(rows,)``, without the part of the smoothing's spread."""
    counts: Tensor
    """``(3, rows)`` int64: 1, whether the target has the largest score, size of the support."""
    gradient: Tensor
    """p - y without the spread, ``(rows, vocab)``."""
    entries: _Sparse | None
    """Its nonzero entries if they are few; None for dense products."""


def _solve(scores: Tensor, target: Tensor, alpha: float, smoothing: float) -> _Chunk:
    """Return the losses of a chunk; its gradient takes the memory of the scores.

    Args:
        scores: ``(rows, vocab)``.
        target: ``(rows, 1)`` int64.
        alpha: of entmax.
        smoothing: what the target gives to the spread.
    """
    target_scores = scores.gather(1, target).squeeze(1)
    conjugate, maxima = solve(scores, alpha, scores)
    probabilities = scores  # from here on
    margins = maxima - target_scores  # small differences first: they keep their digits
    losses = conjugate + (1 - smoothing) * margins + smoothing * maxima
    of_target = probabilities.gather(1, target)
    gradient = probabilities.scatter_add_(
        1, target, probabilities.new_full(target.shape, smoothing - 1)
    )
    entries = _Sparse.of(gradient) if gradient.device.type == "cpu" else None
    support = gradient.count_nonzero(1) if entries is None else entries.counts(len(gradient))
    # The gradient differs from the probabilities at the target alone.
    changed = (of_target != 0).long() - (gradient.gather(1, target) != 0).long()
    support += changed.squeeze(1)
    if alpha == 1:
        support.fill_(gradient.size(1))  # probabilities that are rounded to 0 count
    counts = torch.stack([torch.ones_like(support), margins == 0, support])
    return _Chunk(losses, counts, gradient, entries)


class _Gradients:
    """The gradients of `LinearLoss`, summed over chunks.

    Attributes:
        hidden: ``(rows, hidden)``.
        weight: of the chunks with dense products, ``(vocab, hidden)``; None if there is none.
        bias: ``(vocab,)``.
    """

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor, counted: Tensor) -> None:
        self.hidden, self.bias = torch.empty_like(hidden), torch.zeros_like(bias)
        self.weight: Tensor | None = None
        self._inputs = hidden, weight, bias
        self._factor = counted.to(hidden.dtype)
        # Of the chunks with sparse products, entries of the gradient in the scores.
        none = hidden.new_zeros(0, dtype=torch.int64)
        self._entries = [_Sparse(none, none, hidden.new_zeros(0))]

    def add(self, rows: slice, chunk: _Chunk) -> None:
        """Add the gradients of a chunk; with entries, those of weight and bias come later."""
        hidden, weight, _ = self._inputs
        if chunk.entries is None:
            self.hidden[rows] = product(chunk.gradient, weight.t())
            part = weight_gradient(chunk.gradient, hidden[rows])
            self.weight = part if self.weight is None else self.weight.add_(part)
            self.bias += self._factor[rows] @ chunk.gradient
        else:
            self.hidden[rows] = chunk.entries.times(weight, len(chunk.gradient))
            self._entries.append(chunk.entries._replace(row=chunk.entries.row + rows.start))

    def finish(self) -> _Sparse:
        """Complete the gradient of the bias; return the entries of all chunks.

        The gradient of the weight needs the incoming gradient and these entries, in `backward`.
        """
        entries = _Sparse(*map(torch.cat, zip(*self._entries, strict=True)))
        self.bias.index_add_(0, entries.column, entries.value)
        return entries

    def smooth(self, spread: Tensor) -> tuple[Tensor, Tensor]:
        """Subtract the spread's part, which is linear in the scores: they need not exist for it.

        Returns:
            The sum of the states ``(hidden,)``, and the part of the loss.
        """
        hidden, weight, bias = self._inputs
        states, pull, kept = self._factor @ hidden, spread @ weight, self._factor.sum()
        self.hidden -= pull
        self.bias -= kept * spread
        return states, states @ pull + kept * (spread @ bias)


class _Sparse(NamedTuple):
    """Entries ``(k,)`` of a sparse matrix, ordered by row; row and column are int64."""

    row: Tensor
    column: Tensor
    value: Tensor

    @classmethod
    def of(cls, matrix: Tensor) -> _Sparse | None:
        """Return the entries of a matrix if they are few."""
        positions = nonzero(matrix, _SPARSE)
        if positions is None:
            return None
        row = positions // matrix.shape[1]
        column = positions - row * matrix.shape[1]
        return cls(row, column, matrix.view(-1).index_select(0, positions))

    def transposed(self) -> _Sparse:
        """Return the entries of the transposed matrix."""
        order = self.column.argsort()
        row, column, value = (part.index_select(0, order) for part in self)
        return _Sparse(column, row, value)

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
