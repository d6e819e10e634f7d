r"""The conjugate of the negative Tsallis entropy, from which entmax losses are computed: PyTorch.

:math:`\Omega^*(z) = \max_p p^\top z + H_\alpha(p)`, whose gradient is entmax. What is computed is
the shifted conjugate :math:`\Omega^*(z - \max z)`, between 0 and log n: a loss adds the difference
between the largest score and the target's, so that scores far from 0 lose no digits.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.sparse.candidates import Candidates, lower_bound, select
from onmt_entmax.sparse.entropy import tsallis_entropy
from onmt_entmax.sparse.solvers import (
    has_power_form,
    log_curve,
    logs_above_two,
    margins,
    power,
    refuse_rows_without_answer,
    rounded,
    solve_log,
    solve_power,
    upcast_half,
)

# Scores in a group of rows: searched for candidates at once; searched again where a larger group
# had too many; solved as whole rows, so that they stay in the second-level cache.
_SEARCHED = 1 << 25
_SEARCHED_AGAIN = 1 << 22
CACHED = 1 << 18
# The part of a row up to which its support is returned as entries. With more, scattering them into
# a gradient takes longer than another pass over the row.
SPARSE_PART = 1 / 64
# Up to so many scores, the probabilities of dense rows are kept instead of computed again.
_KEPT = 1 << 22


class Entries(NamedTuple):
    """Positive probabilities of rows of scores, in the order of the flattened scores.

    Attributes:
        position: ``(entries,)`` int64, in the flattened scores.
        row: ``(entries,)`` int64.
        probability: ``(entries,)``.
    """

    position: Tensor
    row: Tensor
    probability: Tensor

    @classmethod
    def none(cls, like: Tensor) -> "Entries":
        """Return no entries, with the device and type of ``like``."""
        nowhere = torch.empty(0, dtype=torch.int64, device=like.device)
        return cls(nowhere, nowhere, like.new_empty(0))


class Conjugate(NamedTuple):
    """Solved rows of scores.

    A row is sparse, and its support is among the entries; or it is dense, and its probabilities
    can be computed again from its maximum and threshold.

    Attributes:
        shifted: ``(rows,)`` the conjugates of scores minus the row's largest.
        maxima: ``(rows, 1)`` the largest scores.
        threshold: ``(rows, 1)``, the shift in the log form; float64 but from Triton.
        entries: of the sparse rows.
        dense: ranges (begin, end) of the dense rows.
        whole: ``(rows, n)`` with the probabilities of the dense rows, or None.
    """

    shifted: Tensor
    maxima: Tensor
    threshold: Tensor
    entries: Entries
    dense: list[tuple[int, int]]
    whole: Tensor | None


def row_groups(
    begin: int, end: int, length: int, scores: int, least: int = 1
) -> Iterator[tuple[int, int]]:
    """Split rows into groups of at most ``scores`` scores, but of at least ``least`` rows.

    Args:
        begin: the first row.
        end: after the last row.
        length: scores in a row.
        scores: scores in a group.
        least: rows in a group.
    """
    step = max(scores // max(length, 1), least)
    for first in range(begin, end, step):
        yield first, min(first + step, end)


def conjugate(
    scores: Tensor,
    alpha: float | Tensor,
    keep: bool = False,
    sparse_part: float = SPARSE_PART,
) -> Conjugate:
    """Solve rows of scores; see `Backend.conjugate`."""
    scores = upcast_half(scores)
    n = scores.shape[1]
    solved: list[Sequence[Tensor]] = []
    found: list[Entries] = []
    dense = []
    whole = None
    for begin, end, limits, candidates in _searched(scores, alpha):
        if candidates is not None:
            *rest, probability = _solve(candidates.scores, alpha, limits)
            found.append(_support(candidates, probability, begin, n))
            solved.append(rest)
            continue
        if keep and whole is None and scores.numel() <= _KEPT:
            whole = torch.empty_like(scores)
        for a, b in row_groups(begin, end, n, CACHED if whole is None else _KEPT):
            known = None if limits is None else [x[a - begin : b - begin] for x in limits]
            alphas = alpha[a:b] if isinstance(alpha, Tensor) else alpha
            out = None if whole is None else whole[a:b]
            solved.append(_solve(scores[a:b], alphas, known, out)[:3])
        dense.append((begin, end))
    shifted, maxima, threshold = (torch.cat(parts) for parts in zip(*solved, strict=True))
    if not found:
        found.append(Entries.none(shifted))
    entries = Entries(*(torch.cat(parts) for parts in zip(*found, strict=True)))
    return Conjugate(shifted.squeeze(1), maxima, threshold, entries, dense, whole)


def _searched(
    scores: Tensor, alpha: float | Tensor
) -> Iterator[tuple[int, int, Sequence[Tensor] | None, Candidates | None]]:
    """Search groups of rows for candidates.

    Yields:
        The first row of a group and the row after the last; what :func:`lower_bound` found, if it
        applies; and the candidates, if they are few.
    """
    rows, n = scores.shape
    number = None  # near 1 and for alphas of rows there are no bounds
    if not isinstance(alpha, Tensor) and (has_power_form(alpha) or alpha > 2):
        number = alpha
    for begin, end in row_groups(0, rows, n, _SEARCHED):
        group = scores[begin:end]
        limits = None if number is None else lower_bound(group, number)
        candidates = None if limits is None else select(group, *limits)
        if limits is None or candidates is not None or group.numel() <= _SEARCHED_AGAIN:
            yield begin, end, limits, candidates
            continue
        # A few rows with many candidates must not make all rows dense.
        for first, last in row_groups(begin, end, n, _SEARCHED_AGAIN):
            part = [x[first - begin : last - begin] for x in limits]
            yield first, last, part, select(scores[first:last], *part)


def _support(candidates: Candidates, probability: Tensor, begin: int, length: int) -> Entries:
    """Return the entries of a group of rows that starts at row ``begin``."""
    probability = probability.view(-1).index_select(0, candidates.slot)
    inside = probability.nonzero().squeeze(1)
    position, row = (x.index_select(0, inside) for x in (candidates.position, candidates.row))
    found = probability.index_select(0, inside)
    return Entries(position + begin * length, row + begin, found)


def write_probabilities(
    scores: Tensor,
    alpha: float | Tensor,
    maxima: Tensor,
    threshold: Tensor,
    out: Tensor,
    factors: Tensor | None = None,
) -> None:
    """Write the probabilities of solved rows, group by group; see `Backend.write_probabilities`."""
    for first, last in row_groups(0, len(scores), scores.shape[1], CACHED):
        rows = slice(first, last)
        alphas = alpha[rows] if isinstance(alpha, Tensor) else alpha
        part = out[rows]
        _write(scores[rows], alphas, maxima[rows], threshold[rows], part)
        if factors is not None:
            part *= factors[rows].unsqueeze(1)


def _write(
    scores: Tensor, alpha: float | Tensor, maxima: Tensor, threshold: Tensor, out: Tensor
) -> None:
    """Write the probabilities of a group of rows."""
    if not isinstance(alpha, Tensor):
        if alpha == 1:
            torch.sub(scores, maxima, out=out).sub_(threshold).exp_()
            return
        if has_power_form(alpha):
            margin = margins(scores, alpha, maxima, threshold)
            out.copy_(rounded(power(margin, alpha - 1), margin > 0, out.dtype))
            return
    below = scores.double() - maxima.double()
    logs = log_curve(below - threshold, alpha)
    beta = torch.as_tensor(alpha, dtype=torch.float64, device=scores.device) - 1
    if bool((beta > 1).any()):
        logs = torch.where(beta > 1, logs_above_two(below, beta, threshold), logs)
    out.copy_(rounded(logs.exp(), logs > -torch.inf, out.dtype))


def _solve(
    scores: Tensor,
    alpha: float | Tensor,
    limits: Sequence[Tensor] | None,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Solve rows by Newton's method or bisection.

    In the power form the shifted conjugate is ``t + (beta sum p u + 1 / beta) / alpha`` with the
    margins ``u`` over the threshold ``t``. It is the dual objective, flat at the threshold, so that
    a rounding error of the threshold enters squared. In the log form it is ``s - beta H(p)``.

    Args:
        scores: ``(rows, n)``.
        alpha: a number, or ``(rows, 1)``.
        limits: what ``lower_bound`` found for these rows.
        out: memory for the probabilities.

    Returns:
        Shifted conjugates, maxima and thresholds ``(rows, 1)``, and probabilities ``(rows, n)``.
    """
    if not isinstance(alpha, Tensor):
        if alpha == 1:
            maxima = scores.amax(1, keepdim=True)
            refuse_rows_without_answer(maxima)
            probability = torch.sub(scores, maxima, out=out).exp_()
            total = probability.sum(1, keepdim=True)
            shifted = total.log()
            return shifted, maxima, shifted, probability.div_(total)
        if has_power_form(alpha):
            beta = alpha - 1
            _, known, start = (None, None, None) if limits is None else limits
            maxima, threshold, margin = solve_power(scores, alpha, start, known)
            exact = power(margin, beta)
            # `power` has multiplied the margins by beta.
            energy = (margin * exact).sum(1, keepdim=True)
            # Rounding may give a number below 0.
            dual = (threshold + (energy + 1 / beta) / alpha).clamp_min(0.0)
            probability = rounded(exact, margin > 0, scores.dtype)
            if out is not None:
                out.copy_(probability)
            return dual.to(scores.dtype), maxima, threshold, probability
    maxima, shift, logs = solve_log(scores, alpha)
    probability = logs.exp()
    entropy = tsallis_entropy(probability, alpha, 1).unsqueeze(1)
    shifted = (shift - (alpha - 1) * entropy).clamp_min(0.0).to(scores.dtype)
    probability = rounded(probability, logs > -torch.inf, scores.dtype)
    if out is not None:
        out.copy_(probability)
    return shifted, maxima.to(scores.dtype), shift, probability
