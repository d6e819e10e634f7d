r"""The conjugate of the negative Tsallis entropy, which every entmax loss starts from.

:math:`\Omega^*(z) = \max_p p^\top z + H_\alpha(p)`, whose gradient is entmax. Rows are worked on in
groups that fit the caches. Of a row with a small support only that is kept for the gradient; of any
other row only its maximum and threshold, from which the scores give the probabilities again.

What is computed is the conjugate's excess over the largest score, which is between 0 and log n: a
loss adds the lead of that score over the target's. Where all scores are far from 0, both keep their
digits, which the conjugate itself has no room for.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.sparse import solvers
from onmt_entmax.sparse.backends import by_kernel
from onmt_entmax.sparse.entropy import tsallis_entropy
from onmt_entmax.sparse.jacobian import jacobian_weights, scores_gradient
from onmt_entmax.sparse.solvers import (
    has_power_form,
    log_curve,
    power,
    refuse_rows_without_answer,
    solve_log,
    solve_power,
    steep_logs,
    wide,
)

# Scores in a group that is searched for candidates, in one that is searched again by itself if they
# are too many, and in one that Newton's method runs over whole (second-level cache).
_SEARCHED = 1 << 25
_SEARCHED_AGAIN = 1 << 22
WHOLE = 1 << 18
# The part of a row above which its entries are not kept: where they are scattered into a gradient,
# another pass over the row takes less from there on.
_FEW = 1 / 64
# Up to so many scores in all, the probabilities of dense rows are kept rather than made again.
_KEPT = 1 << 22


class Entries(NamedTuple):
    """Probabilities that are not zero, in the order of the flattened scores.

    Attributes:
        position: (k,) int64, in the flattened scores.
        row: (k,) int64.
        probability: (k,).
    """

    position: Tensor
    row: Tensor
    probability: Tensor


class Conjugate(NamedTuple):
    """Solved rows of scores.

    Attributes:
        excess: (rows,) the conjugates less the largest scores.
        maxima: (rows, 1) the largest scores.
        threshold: (rows, 1), in float64 from native code and in the log form, where it is the
            shift.
        entries: of the rows outside ``dense``.
        dense: ranges of rows (begin, end) of which no entries are kept.
        whole: (rows, n) with the probabilities of the dense rows, or None if there are none or
            they are too many to be kept.
    """

    excess: Tensor
    maxima: Tensor
    threshold: Tensor
    entries: Entries
    dense: list[tuple[int, int]]
    whole: Tensor | None


def row_groups(
    begin: int, end: int, length: int, scores: int, least: int = 1
) -> Iterator[tuple[int, int]]:
    """Split rows of a length into groups of at most so many scores, but of ``least`` rows."""
    step = max(scores // max(length, 1), least)
    for first in range(begin, end, step):
        yield first, min(first + step, end)


def conjugate(
    scores: Tensor, alpha: float | Tensor, keep: bool = False, part: float = _FEW
) -> Conjugate:
    """Conjugates of rows of scores, and what their gradient needs.

    Args:
        scores: (rows, n), rows and n >= 1, contiguous, float32 or float64 (where there are
            kernels, the half types too); no autograd.
        alpha: a number >= 1, or (rows, 1).
        keep: whether to return all probabilities of dense rows when the scores are few.
        part: of a row, above which its support is not returned as entries. A hint: what finds
            candidates only, keeps all it finds.

    Raises:
        ValueError: if a row is -inf everywhere.
    """
    made = by_kernel("conjugate", scores, alpha, part)
    if made is None:
        return _by_groups(wide(scores), alpha, keep)
    excess, maxima, threshold, entries, dense = made
    entries = _no_entries(excess) if entries is None else Entries(*entries)
    return Conjugate(excess, maxima, threshold, entries, dense, None)


def _by_groups(scores: Tensor, alpha: float | Tensor, keep: bool) -> Conjugate:
    """As :func:`conjugate`, of float32 or float64 in PyTorch, group by group of rows."""
    rows, n = scores.shape
    solved: list[Sequence[Tensor]] = []
    found: list[Entries] = []
    dense = []
    whole = None
    for begin, end in row_groups(0, rows, n, _SEARCHED):
        bound = None
        if not isinstance(alpha, Tensor) and (has_power_form(alpha) or alpha > 2):
            group = scores[begin:end]
            if alpha != 1.5 or not solvers.nearly_equal(group):
                bound = solvers.lower_bound(group, alpha)
        todo = [(begin, end)]
        while todo:
            first, last = todo.pop(0)
            group = scores[first:last]
            limits = None if bound is None else [x[first - begin : last - begin] for x in bound]
            if limits is not None:
                candidates = solvers.select(group, *limits)
                if candidates is not None:
                    *rest, probability = _solve(candidates.scores, alpha, limits)
                    found.append(_members(candidates, probability, first, n))
                    solved.append(rest)
                    continue
                if group.numel() > _SEARCHED_AGAIN and last - first > 1:
                    # A few rows with many candidates are not to decide for all.
                    todo = [*row_groups(first, last, n, _SEARCHED_AGAIN), *todo]
                    continue
            if keep and whole is None and scores.numel() <= _KEPT:
                whole = torch.empty_like(scores)
            for a, b in row_groups(first, last, n, WHOLE if whole is None else _KEPT):
                limits = None if bound is None else [x[a - begin : b - begin] for x in bound]
                alphas = alpha[a:b] if isinstance(alpha, Tensor) else alpha
                out = None if whole is None else whole[a:b]
                solved.append(_solve(scores[a:b], alphas, limits, out)[:3])
            dense.append((first, last))
    excess, maxima, threshold = (torch.cat(parts) for parts in zip(*solved, strict=True))
    if not found:
        found.append(_no_entries(excess))
    entries = Entries(*(torch.cat(parts) for parts in zip(*found, strict=True)))
    return Conjugate(excess.squeeze(1), maxima, threshold, entries, dense, whole)


def _no_entries(excess: Tensor) -> Entries:
    """No entries, on the device and with probabilities in the type of an excess."""
    nowhere = torch.empty(0, dtype=torch.int64, device=excess.device)
    return Entries(nowhere, nowhere, excess.new_empty(0))


def _members(
    candidates: solvers.Candidates, probability: Tensor, begin: int, length: int
) -> Entries:
    """Entries of a group of rows of a length from row ``begin`` on."""
    probability = probability.view(-1).index_select(0, candidates.slot)
    inside = probability.nonzero().squeeze(1)
    position, row = (x.index_select(0, inside) for x in (candidates.position, candidates.row))
    found = probability.index_select(0, inside)
    return Entries(position + begin * length, row + begin, found)


def write_probabilities(
    scores: Tensor, alpha: float | Tensor, maxima: Tensor, threshold: Tensor, out: Tensor
) -> Tensor:
    """Probabilities of solved rows, from what :class:`Conjugate` keeps of them, into ``out``.

    Args:
        scores: (rows, n).
        alpha: a number >= 1, or (rows, 1).
        maxima: (rows, 1).
        threshold: (rows, 1).
        out: (rows, n), returned; may be the scores.
    """
    if by_kernel("write_probabilities", scores, alpha, maxima, threshold, out) is not None:
        return out
    if not isinstance(alpha, Tensor):
        if alpha == 1:
            return torch.sub(scores, maxima, out=out).sub_(threshold).exp_()
        if has_power_form(alpha):
            margin = torch.sub(scores, maxima).sub_(threshold).relu_()
            return power(margin, alpha - 1, out)
    below = scores.double() - maxima.double()
    logs = log_curve(below - threshold, alpha)
    beta = torch.as_tensor(alpha, dtype=torch.float64, device=scores.device) - 1
    if bool((beta > 1).any()):
        logs = torch.where(beta > 1, steep_logs(below, beta, threshold), logs)
    return out.copy_(logs.exp_())


def entries_gradient(entries: Entries, alpha: float, gradient: Tensor, shape: torch.Size) -> Tensor:
    """Gradient in the scores, of this shape, given the gradient (k,) in the entries.

    The Jacobian of :mod:`onmt_entmax.mappings.gradient`, summed along the support only.
    """
    if alpha > 2:
        return _steep_entries_gradient(entries, alpha, gradient, shape)
    slope = jacobian_weights(entries.probability, alpha)
    along = slope * gradient
    sums = gradient.new_zeros(2, shape[0])
    sums = sums.index_add(1, entries.row, torch.stack([along, slope]))
    mean = (sums[0] / sums[1].clamp_min(torch.finfo(slope.dtype).tiny))[entries.row]
    whole = gradient.new_zeros(shape.numel())
    return whole.scatter_(0, entries.position, along - slope * mean).view(shape)


def _steep_entries_gradient(
    entries: Entries, alpha: float, gradient: Tensor, shape: torch.Size
) -> Tensor:
    """As :func:`entries_gradient` above alpha 2, where infinite slopes ask for whole rows: those
    that have entries, since no others have a gradient."""
    rows, of_entry = entries.row.unique(return_inverse=True)
    place = entries.position + (of_entry - entries.row) * shape[1]

    def spread(values: Tensor) -> Tensor:
        return values.new_zeros(len(rows) * shape[1]).scatter(0, place, values).view(-1, shape[1])

    of_rows = scores_gradient(spread(entries.probability), alpha, spread(gradient))
    return gradient.new_zeros(shape).index_copy(0, rows, of_rows)


def _solve(
    scores: Tensor,
    alpha: float | Tensor,
    limits: Sequence[Tensor] | None,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Excess, maximum and threshold of rows, each (rows, 1), and the probabilities (rows, n).

    ``limits`` is what ``lower_bound`` found for these rows, ``out`` the memory for probabilities.

    In the power form the excess is ``t + (beta sum p u + 1 / beta) / alpha`` with margins ``u``:
    the dual objective, flat at the threshold ``t``, so that a rounding error of the threshold
    enters squared. In the log form it is ``s - beta H(p)``.
    """
    if not isinstance(alpha, Tensor):
        if alpha == 1:
            maxima = scores.amax(1, keepdim=True)
            refuse_rows_without_answer(maxima)
            probability = torch.sub(scores, maxima, out=out).exp_()
            total = probability.sum(1, keepdim=True)
            excess = total.log()
            return excess, maxima, excess, probability.div_(total)
        if has_power_form(alpha):
            beta = alpha - 1
            _, known, start = (None, None, None) if limits is None else limits
            maxima, threshold, margin, below = solve_power(scores, alpha, start, known)
            probability = power(margin, beta, below if out is None else out)
            # Here ``margin`` is beta times the margins.
            energy = margin.mul_(probability).sum(1, keepdim=True)
            dual = threshold + (energy + 1 / beta) / alpha
            return dual, maxima, threshold, probability
    maxima, shift, logs = solve_log(scores, alpha)
    probability = logs.exp()
    entropy = tsallis_entropy(probability, alpha, 1).unsqueeze(1)
    excess = (shift - (alpha - 1) * entropy).to(scores.dtype)
    probability = probability.to(scores.dtype) if out is None else out.copy_(probability)
    return excess, maxima.to(scores.dtype), shift, probability
