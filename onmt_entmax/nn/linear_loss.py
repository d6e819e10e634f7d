r"""The loss of a linear layer onto the vocabulary, with the scores of one chunk of rows at a time.

States :math:`h_r` have the scores :math:`z_r = W h_r + b`. With :math:`c_r = 1` in rows that count,
and 0 in others, the loss is :math:`\sum_r c_r (\Omega^*(z_r) - y_r^\top z_r)` (Blondel et al.
2020). The target :math:`y_r = (1 - \epsilon) e_{t_r} + q` has the probability
:math:`1 - \epsilon` at a class :math:`t_r`; label smoothing spreads the rest over the vocabulary as
q, whose sum is :math:`\epsilon`.

In the memory of a chunk, scores become probabilities, and these become
:math:`G_r = p_r - (1 - \epsilon) e_{t_r}`, from which `linear_loss_gradients` makes the gradients.
On a GPU no shape depends on a value, so that CUDA graphs can record the loss; so all chunks are
dense there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from onmt_entmax.nn.linear_loss_gradients import LossGradients, SavedGradients, SpreadTerms
from onmt_entmax.nn.products import product
from onmt_entmax.nn.sparse_entries import SparseEntries
from onmt_entmax.sparse.backends import solve

# Scores in a chunk: on a CPU they fit a cache, on a GPU they take 512 MB. A chunk has at least
# `_LEAST_ROWS`, since each reads all weights.
_CPU_SCORES, _GPU_SCORES = 1 << 21, 1 << 27
_LEAST_ROWS = 256
# Share of nonzero gradients in a chunk up to which sparse products are faster. Here they take 0.52
# of the time of dense products for 776 tokens and 300 states, and 0.74 for 18,000 and 500; at
# 1 / 8, 0.87 and 1.44 (float32, one thread, AVX-512).
_MAX_DENSITY = 1 / 16


class LossTargets(NamedTuple):
    """The targets of a loss.

    Attributes:
        target: t, ``(rows,)`` int64.
        is_counted: c, ``(rows,)``, false in rows that the loss ignores.
        smoothing: epsilon, the probability that smoothing takes from each target.
        spread: q, ``(vocab,)``, the probabilities that smoothing adds; None without smoothing.
    """

    target: Tensor
    is_counted: Tensor
    smoothing: float = 0.0
    spread: Tensor | None = None


class LinearLoss(Function):
    r"""Return the sum of the losses, and int64 counts ``(3,)``: rows, correct rows, support.

    ``apply(hidden, weight, bias, targets, alpha)`` with

    - hidden ``(rows, hidden)``, which must be constant zeros in ignored rows; the gradient there is
      meaningless,
    - weight ``(vocab, hidden)`` and bias ``(vocab,)``,
    - `LossTargets`, and alpha, a number >= 1.

    Forward computes the gradients, since they need the memory of the scores. Backward multiplies
    them by the incoming gradient, a number.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: LossTargets,
        alpha: float,
    ) -> tuple[Tensor, Tensor]:
        loss, counts = hidden.new_zeros(()), targets.target.new_zeros(3)
        factors = targets.is_counted.to(hidden.dtype)
        gradients = LossGradients(hidden, weight, bias, factors)
        for rows in _chunks(hidden, weight):
            is_counted = targets.is_counted[rows]
            scores = product(hidden[rows], weight, bias)  # (chunk, vocab)
            target = targets.target[rows].unsqueeze(1)
            chunk = _chunk_loss(scores, target, alpha, targets.smoothing)
            loss += chunk.losses.masked_fill_(~is_counted, 0).sum()
            counts += (chunk.counts * is_counted).sum(1)
            if any(ctx.needs_input_grad[:3]):
                gradients.add(rows, chunk.gradient, chunk.entries)
        terms: SpreadTerms | None = None
        if targets.spread is not None:
            terms = SpreadTerms.of(targets.spread, hidden, weight, bias, factors)
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
        saved = SavedGradients(*ctx.saved_tensors)
        return (
            saved.hidden_gradient * gradient,
            saved.scaled_weight_gradient(gradient),
            saved.bias_gradient * gradient,
            None,
            None,
        )


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


def _chunk_loss(scores: Tensor, target: Tensor, alpha: float, smoothing: float) -> _Chunk:
    """Return the losses of a chunk, and their gradient G, which takes the memory of the scores.

    Args:
        scores: ``(rows, vocab)``.
        target: ``(rows, 1)`` int64.
        alpha: the alpha of entmax.
        smoothing: the probability that smoothing takes from the target.
    """
    target_scores = scores.gather(1, target).squeeze(1)
    # The scores of a chunk are the largest memory here, up to 512 MB on a GPU. So probabilities
    # replace them in place, and G replaces the probabilities.
    conjugate, maxima = solve(scores, alpha, scores)
    probabilities = scores
    margins = maxima - target_scores  # small differences first: they keep their digits
    losses = conjugate + (1 - smoothing) * margins + smoothing * maxima
    target_probabilities = probabilities.gather(1, target)
    gradient = probabilities.scatter_add_(
        1, target, probabilities.new_full(target.shape, smoothing - 1)
    )
    entries = SparseEntries.of(gradient, _MAX_DENSITY) if gradient.device.type == "cpu" else None
    support = _support_sizes(gradient, entries, target, target_probabilities, alpha)
    counts = torch.stack([torch.ones_like(support), margins == 0, support])
    return _Chunk(losses, counts, gradient, entries)


def _support_sizes(
    gradient: Tensor,
    entries: SparseEntries | None,
    target: Tensor,
    target_probabilities: Tensor,
    alpha: float,
) -> Tensor:
    """Return the size of each row's support ``(rows,)``, after G has replaced the probabilities.

    G equals the probabilities everywhere but at the target, where it may be zero or nonzero
    whatever the probability is. So its nonzero entries are counted, and corrected at the target.

    Args:
        gradient: G, ``(rows, vocab)``.
        entries: the nonzero entries of G, if they are known.
        target: ``(rows, 1)`` int64.
        target_probabilities: the targets' probabilities, ``(rows, 1)``.
        alpha: the alpha of entmax.
    """
    rows, vocab = gradient.shape
    if alpha == 1:  # all tokens, also those whose probability is rounded to 0
        return target.new_full((rows,), vocab)
    support = gradient.count_nonzero(1) if entries is None else entries.counts(rows)
    changed = (target_probabilities != 0).long() - (gradient.gather(1, target) != 0).long()
    return support + changed.squeeze(1)
