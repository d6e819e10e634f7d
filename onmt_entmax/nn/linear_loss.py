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
:math:`G^\top H`           `_Gradients.add`          `_Saved.weight_gradient`, of all chunks
of q, in states and bias   `_Gradients.finish`       `_Gradients.finish`
of q, in the weight        `_Saved.weight_gradient`  `_Saved.weight_gradient`
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

    Forward computes the gradients, since they need the memory of the scores. Backward multiplies
    them by the incoming gradient, a number.
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
        factors = counted.to(hidden.dtype)  # c
        gradients = _Gradients(hidden, weight, bias, factors)
        for rows in _chunks(hidden, weight):
            is_counted = counted[rows]
            scores = product(hidden[rows], weight, bias)  # (chunk, vocab)
            chunk = _solve(scores, target[rows].unsqueeze(1), alpha, smoothing)
            loss += chunk.losses.masked_fill_(~is_counted, 0).sum()
            counts += (chunk.counts * is_counted).sum(1)
            if any(ctx.needs_input_grad[:3]):
                gradients.add(rows, chunk)
        terms: _SpreadTerms | None = None
        if spread is not None:
            terms = _SpreadTerms.of(spread, hidden, weight, bias, factors)
            loss -= terms.loss
        ctx.save_for_backward(*gradients.finish(terms))
        ctx.mark_non_differentiable(counts)
        return loss, counts

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _counts: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "OutputLayer.loss has no gradients of gradients (create_graph=True): "
                "use entmax_loss(layer.scores(hidden), target) instead"
            )
        saved = _Saved(*ctx.saved_tensors)
        in_hidden = saved.hidden_gradient * gradient
        in_weight = saved.weight_gradient(gradient)
        in_bias = saved.bias_gradient * gradient
        no_gradients = [None] * 5  # of target, counted, alpha, smoothing and spread
        return in_hidden, in_weight, in_bias, *no_gradients


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
    # The scores of a chunk are the largest memory here, up to 512 MB on a GPU. So probabilities
    # replace them in place, and G replaces the probabilities.
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

    `add` takes each chunk, then `finish` completes them.

    Args:
        hidden: ``(rows, hidden)``.
        weight: ``(vocab, hidden)``.
        bias: ``(vocab,)``.
        factors: c, ``(rows,)``.
    """

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor, factors: Tensor) -> None:
        self._hidden, self._weight, self._factors = hidden, weight, factors
        self._in_hidden, self._in_bias = torch.empty_like(hidden), torch.zeros_like(bias)
        # Of the chunks with dense products, (vocab, hidden).
        self._dense_in_weight: Tensor | None = None
        # Of the chunks with sparse products, the entries of G.
        none = hidden.new_zeros(0, dtype=torch.int64)
        self._entries = [SparseEntries(none, none, hidden.new_zeros(0))]

    def add(self, rows: slice, chunk: _Chunk) -> None:
        """Add the gradients of a chunk; with entries, those of weight and bias come later."""
        if chunk.entries is None:
            self._in_hidden[rows] = product(chunk.gradient, self._weight.t())
            part = weight_gradient(chunk.gradient, self._hidden[rows])
            dense = self._dense_in_weight
            self._dense_in_weight = part if dense is None else dense.add_(part)
            self._in_bias += self._factors[rows] @ chunk.gradient
        else:
            self._in_hidden[rows] = chunk.entries.times(self._weight, len(chunk.gradient))
            self._entries.append(chunk.entries._replace(row=chunk.entries.row + rows.start))

    def finish(self, terms: _SpreadTerms | None) -> _Saved:
        """Complete the gradients of states and bias; return what the backward pass needs.

        Only a CPU takes sparse products, and there `OutputLayer` leaves out rows that do not count,
        so the entries need no factors.

        Args:
            terms: of the spread; None without smoothing.
        """
        entries = SparseEntries(*map(torch.cat, zip(*self._entries, strict=True)))
        self._in_bias.index_add_(0, entries.column, entries.value)
        if terms is not None:
            self._in_hidden -= terms.pulled
            self._in_bias -= terms.row_count * terms.spread
        return _Saved(
            self._in_hidden,
            self._in_bias,
            self._dense_in_weight,
            *entries,
            self._hidden,
            state_sum=None if terms is None else terms.state_sum,
            spread=None if terms is None else terms.spread,
        )


class _SpreadTerms(NamedTuple):
    """The parts of the spread q in loss and gradients, which are linear in the scores.

    So they need no scores, but sums of states alone.
    """

    spread: Tensor
    """q, ``(vocab,)``."""
    state_sum: Tensor
    """The sum of the states h_r, ``(hidden,)``."""
    row_count: Tensor
    """The sum of c_r."""
    pulled: Tensor
    """The product of the transposed weight with q, ``(hidden,)``."""
    loss: Tensor
    """``sum_r c_r q . z_r``, which is subtracted from the loss."""

    @classmethod
    def of(
        cls, spread: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor, factors: Tensor
    ) -> _SpreadTerms:
        """Return the terms; see `_Gradients` for the other arguments."""
        state_sum = factors @ hidden
        pulled = spread @ weight
        row_count = factors.sum()
        loss = state_sum @ pulled + row_count * (spread @ bias)
        return cls(spread, state_sum, row_count, pulled, loss)


class _Saved(NamedTuple):
    """What the backward pass needs: two gradients, and the parts of that in the weight."""

    hidden_gradient: Tensor
    """``(rows, hidden)``."""
    bias_gradient: Tensor
    """``(vocab,)``."""
    dense_weight: Tensor | None
    """The gradient in the weight of the chunks with dense products, ``(vocab, hidden)``."""
    row: Tensor
    """Of the entries of G in all chunks with sparse products, ``(entries,)``, as the next two."""
    column: Tensor
    value: Tensor
    hidden: Tensor
    """The states, ``(rows, hidden)``."""
    state_sum: Tensor | None
    """See `_SpreadTerms`, as for the spread."""
    spread: Tensor | None

    def weight_gradient(self, factor: Tensor) -> Tensor:
        """Return the gradient in the weight times a number, ``(vocab, hidden)``.

        It waits for the backward pass, in which the number scales the few entries instead of a
        whole matrix.
        """
        entries = SparseEntries(self.row, self.column, self.value)
        if self.dense_weight is not None and not len(entries.row):
            in_weight = self.dense_weight * factor
        else:
            transposed = entries.transposed()  # (vocab, rows)
            scaled = transposed._replace(value=transposed.value * factor)
            in_weight = scaled.times(self.hidden, len(self.bias_gradient))
            if self.dense_weight is not None:
                in_weight.addcmul_(self.dense_weight, factor)
        if self.spread is not None:
            assert self.state_sum is not None, "both are terms of the spread"
            in_weight.addr_(self.spread, self.state_sum * factor, alpha=-1)
        return in_weight
