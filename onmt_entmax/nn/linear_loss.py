r"""The loss of a linear layer onto the vocabulary, with the scores of one chunk of rows at a time.

A row r has the state :math:`h_r` and the scores :math:`z_r = W h_r + b`. With :math:`c_r = 1` in
rows that count, and 0 in others, the loss is :math:`\sum_r c_r (\Omega^*(z_r) - y_r^\top z_r)`
(Blondel et al. 2020), with the conjugate :math:`\Omega^*` of `entmax_loss`. The target
:math:`y_r = (1 - \epsilon) e_{t_r} + q` gives the probability :math:`1 - \epsilon` to a class
:math:`t_r`, whose one-hot vector is :math:`e_{t_r}`. Label smoothing spreads the rest over the
vocabulary as q, whose sum is :math:`\epsilon`.

In the memory of a chunk, scores become probabilities :math:`p_r`, and these become
:math:`G_r = p_r - (1 - \epsilon) e_{t_r}`. `linear_loss_gradients` computes the gradients from G.
On a GPU, no shape depends on a value, so that CUDA graphs can record the loss; therefore all
products are dense there.
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

# The most scores in a chunk, unless it has `_LEAST_ROWS` rows. On a CPU, they take 8 MB in float32,
# which a third-level cache holds; on a GPU, 512 MB.
_CPU_SCORES, _GPU_SCORES = 1 << 21, 1 << 27
# The fewest rows of a chunk: each chunk reads all weights, which pays for many rows only.
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

    - ``hidden``: states ``(rows, hidden)``, float32 or float64. In rows that do not count they must
      be zeros, and their gradient has no meaning,
    - ``weight``: W, ``(vocab, hidden)``, and ``bias``: b, ``(vocab,)``, in the type of the states,
    - ``targets``: a `LossTargets`,
    - ``alpha``: a number >= 1.

    The forward pass computes the gradients, since they need the memory of the scores. The backward
    pass multiplies them by the upstream gradient, a number.
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
    """Yield the rows of each chunk; see `LinearLoss` for the arguments."""
    scores = _CPU_SCORES if hidden.device.type == "cpu" else _GPU_SCORES
    size = max(scores // len(weight), _LEAST_ROWS)
    for begin in range(0, len(hidden), size):
        yield slice(begin, begin + size)


class _Chunk(NamedTuple):
    """The losses of a chunk of rows, and their gradient with respect to the scores."""

    losses: Tensor
    """``(rows,)``, without the term of q, see `SpreadTerms`."""
    counts: Tensor
    """``(3, rows)`` int64: 1, whether the target has the largest score, size of the support."""
    gradient: Tensor
    """G, ``(rows, vocab)``."""
    entries: SparseEntries | None
    """The nonzero entries of G if they are few; None for dense products."""


def _chunk_loss(scores: Tensor, target: Tensor, alpha: float, smoothing: float) -> _Chunk:
    """Return the losses of a chunk, and their gradient G, which is written over the scores.

    Args:
        scores: z, ``(rows, vocab)``.
        target: t, ``(rows, 1)`` int64.
        alpha: the alpha of entmax.
        smoothing: epsilon, the probability that smoothing takes from the target.
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

    G equals the probabilities everywhere but at the target, where it may be zero or not, whatever
    the probability is. So the nonzero entries of G are counted, and the count is corrected at the
    target.

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
