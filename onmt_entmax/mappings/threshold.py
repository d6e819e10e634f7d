r"""Where a row of scores is cut: the threshold of entmax, found without sorting.

With :math:`\beta = \alpha - 1` and :math:`x = \beta (z - \max z)`, entmax is

.. math:: p_i = [x_i - \tau]_+^{1/\beta}, \qquad \sum_i p_i = 1, \qquad -1 \le \tau < 0

(Peters, Niculae and Martins 2019, equation 13). For :math:`1 < \alpha \le 2` the condition says
that a norm is one: :math:`\lVert [x - \tau]_+ \rVert_{1/\beta} = 1`. That norm is convex and falls
with :math:`\tau`, so Newton's method from any lower bound climbs to the threshold and never passes
it: every iterate is a lower bound too, and can only enlarge the support. On equal scores, and with
one score in the support, a single step is exact; ordinary rows take three to six.

Two forms of the same curve are used. The *power form* works on ``x`` in the type of the scores, for
a fixed alpha in [1.1, 2]. Nearer to 1 the power :math:`1/\beta` magnifies rounding, and above 2 the
norm is not convex; there, and where every row has an alpha of its own, the *log form* works on
``log p`` in float64:

.. math:: \log p_i = \log(1 + \beta (z_i - \max z - s)) / \beta, \qquad s = (1 + \tau) / \beta

whose limit at :math:`\alpha = 1` is softmax with ``s = logsumexp``.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

SMALLEST_POWER_ALPHA = 1.1
_ITERATIONS = 100


def has_power_form(alpha: float | Tensor) -> bool:
    """Whether alpha is one number for which the float32 power form is as exact as the type."""
    return not isinstance(alpha, Tensor) and SMALLEST_POWER_ALPHA <= alpha <= 2


class PowerForm(NamedTuple):
    """Rows solved in the power form.

    Attributes:
        margin: ``[x - tau]_+``, the shape of the scores; positive exactly on the support.
        threshold: ``tau`` in [-1, 0), the shape of the scores with size 1 in the last place.
    """

    margin: Tensor
    threshold: Tensor


class LogForm(NamedTuple):
    """Rows solved in the log form, in float64.

    Attributes:
        log_probabilities: the shape of the scores; -inf exactly outside the support.
        shift: ``s`` in [0, log n], the shape of the scores with size 1 in the last place.
    """

    log_probabilities: Tensor
    shift: Tensor


def refuse_rows_without_answer(maxima: Tensor) -> None:
    """Raise ValueError if the largest score of a row is -inf."""
    if bool(torch.isneginf(maxima).any()):
        raise ValueError(
            "a row of scores is -inf everywhere and has no probabilities; leave at least one finite"
        )


def tolerance(dtype: torch.dtype) -> float:
    """How far from one the sum of a row may stay: a few units in the last place."""
    return 4 * torch.finfo(dtype).eps


def power(margin: Tensor, beta: float) -> Tensor:
    """Probabilities from margins above the threshold: ``margin ** (1 / beta)``."""
    if beta == 1.0:
        return margin
    if beta == 0.5:
        return margin.square()
    return margin.pow(1 / beta)


def _norm_and_slope(margin: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """The sum of the probabilities and of their slopes ``margin ** (1 / beta - 1)``, per row."""
    if beta == 1.0:
        return margin.sum(-1, keepdim=True), (margin > 0).sum(-1, keepdim=True)
    if beta == 0.5:
        norm = torch.linalg.vector_norm(margin, dim=-1, keepdim=True)
        return norm.square(), margin.sum(-1, keepdim=True)
    slopes = margin.pow(1 / beta - 1)
    return (slopes * margin).sum(-1, keepdim=True), slopes.sum(-1, keepdim=True)


def newton_step(margin: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """One Newton step on the norm: the sum at this threshold (..., 1), and how far to raise it."""
    total, slope = _norm_and_slope(margin, beta)
    return total, (total - total.pow(1 - beta)) / slope


def solve_power(scores: Tensor, alpha: float) -> PowerForm:
    """Threshold of each row by Newton's method on the whole row.

    Args:
        scores: (..., n) with n >= 1, float32 or float64.
        alpha: a number in [1.1, 2].

    Raises:
        ValueError: if a row is -inf everywhere.
    """
    beta = alpha - 1.0
    maxima = scores.amax(-1, keepdim=True)
    scaled = (scores - maxima).mul_(beta)
    threshold = torch.full_like(maxima, -1.0)
    enough = 1 + tolerance(scores.dtype)
    margin = torch.empty_like(scaled)
    for _ in range(_ITERATIONS):
        torch.sub(scaled, threshold, out=margin).relu_()
        total, step = newton_step(margin, beta)
        largest = float(total.amax())
        if math.isnan(largest):
            refuse_rows_without_answer(maxima)
            largest = float(total.nan_to_num(0.0).amax())
        if largest <= enough:
            break
        threshold += step
    return PowerForm(margin, threshold)


def _log_curve(below: Tensor, beta: Tensor) -> Tensor:
    """``log(1 + beta y) / beta`` of ``y = below``, its limit ``y`` where beta is 0."""
    curved = (beta * below).clamp_min_(-1.0).log1p_() / beta
    return torch.where(beta == 0, below, curved)


def solve_log(scores: Tensor, alpha: float | Tensor) -> LogForm:
    """Threshold of each row in float64, for any alpha >= 1; bisection where alpha is above 2.

    Args:
        scores: (..., n) with n >= 1.
        alpha: a number, or (..., 1), one for each row.

    Raises:
        ValueError: if a row is -inf everywhere.
    """
    scores = scores.double()
    beta = torch.as_tensor(alpha, dtype=torch.float64, device=scores.device) - 1
    maxima = scores.amax(-1, keepdim=True)
    below_max = scores - maxima
    low = torch.zeros_like(maxima)
    # Equal scores need the largest shift: log n, deformed. It is -_log_curve's inverse of -log n.
    log_n = math.log(scores.shape[-1])
    high = torch.where(beta == 0, log_n, -torch.expm1(-beta * log_n) / beta).expand_as(low)
    shift, enough = low, 1 + tolerance(torch.float64)
    bisect = (beta > 1).expand_as(low)
    for _ in range(_ITERATIONS):
        logs = _log_curve(below_max - shift, beta)
        total = logs.exp().sum(-1, keepdim=True)
        low, high = torch.where(total >= 1, shift, low), torch.where(total < 1, shift, high)
        if bool(total.isnan().any()):
            refuse_rows_without_answer(maxima)
        settled = torch.where(bisect, high - low <= 2e-16 * high, total <= enough)
        if bool((settled | total.isnan()).all()):
            break
        log_total = total.log()
        slope = ((1 - beta) * logs).exp().masked_fill_(logs == -torch.inf, 0).sum(-1, keepdim=True)
        step = -total * _expm1_over(-beta * log_total, beta, -log_total) / slope
        shift = torch.where(bisect, (low + high) / 2, shift + step)
    if bool(bisect.any()):
        # The lower end keeps the whole support; there the curve is steep, so share out the excess.
        shift = torch.where(bisect, low, shift)
        logs = _log_curve(below_max - shift, beta)
        logs -= torch.where(bisect, torch.logsumexp(logs, -1, keepdim=True), 0.0)
    return LogForm(logs, shift)


def _expm1_over(exponent: Tensor, beta: Tensor, limit: Tensor) -> Tensor:
    """``expm1(exponent) / beta``, and its limit where beta is 0."""
    return torch.where(beta == 0, limit, torch.expm1(exponent) / beta)
