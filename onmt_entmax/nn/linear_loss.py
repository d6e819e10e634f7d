r"""The loss of a linear layer onto the vocabulary, with the scores of one chunk of rows at a time.

For states :math:`h_r`, scores :math:`z_r = W h_r + b`, and :math:`c_r`, 1 in rows that count and
else 0, the loss is :math:`\sum_r c_r (\Omega^*(z_r) - y_r^\top z_r)` (Blondel et al. 2020). The
target :math:`y_r = (1 - \epsilon) e_{t_r} + q` is a class and, with smoothing, the spread q, which
sums to :math:`\epsilon`. The gradient in the scores is :math:`p_r - y_r`. With its part without the
spread, :math:`G_r = p_r - (1 - \epsilon) e_{t_r}`, and states that are 0 in rows that do not count,
the gradients are

.. math::
    G W - c \, (W^\top q)^\top & \quad\text{in the states,} \\
    G^\top H - q \, (\textstyle\sum_r h_r)^\top & \quad\text{in the weight,} \\
    G^\top c - q \textstyle\sum_r c_r & \quad\text{in the bias.}

=========================  ========================  ==========================================
term                       of a dense chunk          of a chunk with few nonzero entries of G
=========================  ========================  ==========================================
:math:`G W`                `_Gradients.add`          `_Gradients.add`, a sparse product
:math:`G^\top c`           `_Gradients.add`          `_Gradients.finish`
:math:`G^\top H`           `_Gradients.add`          `LinearLoss.backward`, of all chunks
of q, in states and bias   `_Gradients.smooth`       `_Gradients.smooth`
of q, in the weight        `LinearLoss.backward`     `LinearLoss.backward`
=========================  ========================  ==========================================

In a chunk, scores become probabilities and then G, in place: the backward pass needs no scores. On
a GPU no shape depends on a value, so CUDA graphs can record the loss, and all chunks are dense.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from onmt_entmax.nn.products import product, weight_gradient
from onmt_entmax.nn.sparse_entries import SparseEntries
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

    Forward computes the gradients, since they need the memory of the scores; backward multiplies
    them by the incoming gradient, a number, and adds the terms that the module leaves to it.
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
            is_counted = counted[rows]
            scores = product(hidden[rows], weight, bias)  # (chunk, vocab)
            chunk = _solve(scores, target[rows].unsqueeze(1), alpha, smoothing)
            loss += chunk.losses.masked_fill_(~is_counted, 0).sum()
            counts += (chunk.counts * is_counted).sum(1)
            if any(ctx.needs_input_grad[:3]):
                gradients.add(rows, chunk)
        entries = gradients.finish()
        state_sum: Tensor | None = None
        if spread is not None:
            state_sum, loss_of_spread = gradients.smooth(spread)
            loss -= loss_of_spread
        # `backward` unpacks these in the same order.
        ctx.save_for_backward(
            gradients.hidden, gradients.weight, gradients.bias, hidden, state_sum, spread, *entries
        )
        ctx.mark_non_differentiable(counts)
        return loss, counts

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _counts: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "OutputLayer.loss has no gradients of gradients (create_graph=True): "
                "use entmax_loss(layer.scores(hidden), target) instead"
            )
        d_hidden, dense_weight, d_bias, hidden, state_sum, spread, *saved = ctx.saved_tensors
        entries = SparseEntries(*saved)
        if dense_weight is not None and not len(entries.row):
            d_weight = dense_weight * gradient
        else:
            transposed = entries.transposed()  # (vocab, rows)
            scaled = transposed._replace(value=transposed.value * gradient)
            d_weight = scaled.times(hidden, len(d_bias))
            if dense_weight is not None:
                d_weight.addcmul_(dense_weight, gradient)
        if spread is not None:
            d_weight.addr_(spread, state_sum * gradient, alpha=-1)
        no_gradients = [None] * 5  # of target, counted, alpha, smoothing and spread
        return d_hidden * gradient, d_weight, d_bias * gradient, *no_gradients


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
    """G, ``(rows, vocab)``."""
    entries: SparseEntries | None
    """Its nonzero entries if they are few; None for dense products."""


def _solve(scores: Tensor, target: Tensor, alpha: float, smoothing: float) -> _Chunk:
    """Return the losses of a chunk; G takes the memory of the scores.

    Args:
        scores: ``(rows, vocab)``.
        target: ``(rows, 1)`` int64.
        alpha: of entmax.
        smoothing: what the target gives to the spread.
    """
    target_scores = scores.gather(1, target).squeeze(1)
    # In place, since the scores of a chunk are the largest memory here: up to 512 MB on a GPU.
    conjugate, maxima = solve(scores, alpha, scores)
    probabilities = scores
    margins = maxima - target_scores  # small differences first: they keep their digits
    losses = conjugate + (1 - smoothing) * margins + smoothing * maxima
    of_target = probabilities.gather(1, target)
    gradient = probabilities.scatter_add_(
        1, target, probabilities.new_full(target.shape, smoothing - 1)
    )
    entries = SparseEntries.of(gradient, _SPARSE) if gradient.device.type == "cpu" else None
    support = _support_sizes(gradient, entries, target, of_target, alpha)
    counts = torch.stack([torch.ones_like(support), margins == 0, support])
    return _Chunk(losses, counts, gradient, entries)


def _support_sizes(
    gradient: Tensor,
    entries: SparseEntries | None,
    target: Tensor,
    of_target: Tensor,
    alpha: float,
) -> Tensor:
    """Return the size of each row's support ``(rows,)``, when its probabilities are gone.

    G has the probabilities everywhere but at the target. There it is nonzero without a probability,
    or may be zero with one.

    Args:
        gradient: G, ``(rows, vocab)``.
        entries: of it, or None.
        target: ``(rows, 1)``.
        of_target: the targets' probabilities, ``(rows, 1)``.
        alpha: of entmax.
    """
    support = gradient.count_nonzero(1) if entries is None else entries.counts(len(gradient))
    changed = (of_target != 0).long() - (gradient.gather(1, target) != 0).long()
    support += changed.squeeze(1)
    if alpha == 1:
        support.fill_(gradient.size(1))  # probabilities that are rounded to 0 count
    return support


class _Gradients:
    """The gradients of `LinearLoss`, summed over chunks; the module has their formulas.

    `add` takes each chunk, then `finish` and, with smoothing, `smooth` complete them.

    Attributes:
        hidden: ``(rows, hidden)``.
        weight: of the chunks with dense products, ``(vocab, hidden)``; None if there is none.
        bias: ``(vocab,)``.
    """

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor, counted: Tensor) -> None:
        self.hidden, self.bias = torch.empty_like(hidden), torch.zeros_like(bias)
        self.weight: Tensor | None = None
        self._inputs = hidden, weight, bias
        self._counted = counted.to(hidden.dtype)  # c
        # Of the chunks with sparse products, the entries of G.
        none = hidden.new_zeros(0, dtype=torch.int64)
        self._entries = [SparseEntries(none, none, hidden.new_zeros(0))]

    def add(self, rows: slice, chunk: _Chunk) -> None:
        """Add the gradients of a chunk; with entries, those of weight and bias come later."""
        hidden, weight, _ = self._inputs
        if chunk.entries is None:
            self.hidden[rows] = product(chunk.gradient, weight.t())
            part = weight_gradient(chunk.gradient, hidden[rows])
            self.weight = part if self.weight is None else self.weight.add_(part)
            self.bias += self._counted[rows] @ chunk.gradient
        else:
            self.hidden[rows] = chunk.entries.times(weight, len(chunk.gradient))
            self._entries.append(chunk.entries._replace(row=chunk.entries.row + rows.start))

    def finish(self) -> SparseEntries:
        """Complete the gradient of the bias; return the entries of all chunks.

        Only a CPU takes sparse products, and there `OutputLayer` leaves out rows that do not count,
        so the bias needs no factors. The gradient of the weight waits for `backward`, which scales
        the few entries instead of a whole matrix.
        """
        entries = SparseEntries(*map(torch.cat, zip(*self._entries, strict=True)))
        self.bias.index_add_(0, entries.column, entries.value)
        return entries

    def smooth(self, spread: Tensor) -> tuple[Tensor, Tensor]:
        """Subtract the terms of the spread q; they are linear in the scores, which are not needed.

        The term in the weight waits for `backward`.

        Returns:
            The sum of the states ``(hidden,)``, and the part of the loss, ``sum_r c_r q . z_r``.
        """
        hidden, weight, bias = self._inputs
        state_sum = self._counted @ hidden
        pulled = spread @ weight  # (hidden,)
        row_count = self._counted.sum()
        self.hidden -= pulled
        self.bias -= row_count * spread
        return state_sum, state_sum @ pulled + row_count * (spread @ bias)
