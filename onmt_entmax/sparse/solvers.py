r"""Thresholds of entmax by Newton's method or bisection, in PyTorch operations.

With :math:`\beta = \alpha - 1` and scores :math:`x = z - \max z`, entmax is

.. math:: p_i = (\beta [x_i - t]_+)^{1/\beta}, \qquad \sum_i p_i = 1, \qquad -1/\beta \le t < 0

(Peters, Niculae and Martins 2019, equation 13, with its threshold :math:`\tau = \beta t`). For
:math:`1 < \alpha \le 2` the condition is on a norm of order :math:`q = 1 / \beta \ge 1`:
:math:`\lVert [x - t]_+ \rVert_q = q`. That norm is convex and decreases in :math:`t`, so Newton's
method increases from any lower bound to the threshold and never passes it: every iterate is a lower
bound too, and can only enlarge the support. On equal scores, and with one score in the support, a
single step is exact; ordinary rows take three to six.

Two forms of the equation are solved. The *power form* above, in the scores' type, serves one alpha
in [1.1, 2]. Nearer to 1 the power magnifies rounding, and above 2 there is no norm; there, and
where each row has its own alpha, the *log form* solves for ``log p`` in float64:

.. math:: \log p_i = \log(1 + \beta (x_i - s)) / \beta, \qquad s = t + 1 / \beta

with the *shift* ``s``. Its limit at :math:`\alpha = 1` is softmax with ``s = logsumexp(x)``.
"""

import math
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import is_traced

SMALLEST_POWER_ALPHA = 1.1
# Up to this exponent, whole powers are computed as products.
_MOST_PRODUCTS = 10
# The first threshold to try, as a part of the order; the least possible one is -1.
_GUESS = -0.75
_ITERATIONS = 100
# Margins of order 1 up to this are rounding of the threshold.
_ROUNDED_MARGIN = 2.0**-48
_EPSILON = {dtype: torch.finfo(dtype).eps for dtype in (torch.float32, torch.float64)}
# Units in the last place by which a bound is lowered, against rounding in its steps.
SLACK = 32


class PowerForm(NamedTuple):
    """Rows solved in the power form.

    Attributes:
        maxima: the largest score of each row, ``(..., 1)``.
        threshold: ``t`` in [-1 / beta, 0), ``(..., 1)`` in float64.
        margin: see :func:`margins`, ``(..., n)``.
    """

    maxima: Tensor
    threshold: Tensor
    margin: Tensor


class LogForm(NamedTuple):
    """Rows solved in the log form, in float64.

    Attributes:
        maxima: the largest score of each row, ``(..., 1)``.
        shift: ``s`` in [0, log n], ``(..., 1)``.
        log_probabilities: ``(..., n)``; -inf exactly outside the support.
    """

    maxima: Tensor
    shift: Tensor
    log_probabilities: Tensor


def has_power_form(alpha: float | Tensor) -> bool:
    """Return whether alpha is one number in [1.1, 2], for which the power form is exact."""
    return not isinstance(alpha, Tensor) and SMALLEST_POWER_ALPHA <= alpha <= 2


def upcast_half(scores: Tensor) -> Tensor:
    """Return scores in float32 or float64; kernels read half types, PyTorch code does not."""
    return scores if scores.dtype.itemsize >= 4 else scores.float()


def refuse_rows_without_answer(maxima: Tensor) -> None:
    """Refuse rows whose largest score is -inf.

    Raises:
        ValueError: if there is one.
    """
    if bool(torch.isneginf(maxima).any()):
        raise ValueError(
            "a row of scores is -inf everywhere and has no probabilities; leave at least one finite"
        )


def checked_softmax(result: Tensor, scores: Tensor) -> Tensor:
    """Return a softmax, or its logarithm, unless a row of its scores is -inf everywhere.

    Where reading would synchronise, such a row stays nan.

    Raises:
        ValueError: if there is one.
    """
    looking = scores.device.type == "cpu" and not is_traced()
    if looking and bool(result.detach()[..., 0].isnan().any()):
        refuse_rows_without_answer(scores.amax(-1))
    return result


def whole_power(exponent: float) -> int:
    """Return the whole number that an exponent is up to rounding, or 0 if products do not pay."""
    whole = round(exponent)
    exact = abs(exponent - whole) <= 3e-16 * whole**2
    return whole if exact and 1 <= whole <= _MOST_PRODUCTS else 0


def raised(base: Tensor, exponent: float, out: Tensor) -> Tensor:
    """Write ``base ** exponent`` into ``out``, which must not be ``base``, and return it.

    Whole exponents use products, which cost a twentieth of a power.
    """
    whole = whole_power(exponent)
    if whole < 2:
        return torch.pow(base, exponent, out=out)
    torch.mul(base, base, out=out)
    for place, bit in enumerate(f"{whole:b}"[1:]):
        if place:
            out.mul_(out)
        if bit == "1":
            out.mul_(base)
    return out


def margins(scores: Tensor, alpha: float, maxima: Tensor, threshold: Tensor) -> Tensor:
    """Return ``[x - t]_+`` of rows in the power form, ``(..., n)`` in float64.

    This alone decides what is in the support, for probabilities and for logarithms. A margin within
    the rounding of the threshold is 0: a score on the threshold is outside, however the sum that
    gave the threshold was rounded.

    Args:
        scores: ``(..., n)``.
        alpha: a number in [1.1, 2].
        maxima: the largest score of each row, ``(..., 1)``.
        threshold: ``(..., 1)``.
    """
    margin = scores.double() - maxima.double() - threshold
    return torch.threshold_(margin, _ROUNDED_MARGIN / (alpha - 1), 0.0)


def power(margin: Tensor, beta: float) -> Tensor:
    """Return ``(beta * margin) ** (1 / beta)``; the margins become ``beta * margin``."""
    if beta == 1.0:
        return margin.clone()
    return raised(margin.mul_(beta), 1 / beta, torch.empty_like(margin))


def rounded(probability: Tensor, support: Tensor, dtype: torch.dtype) -> Tensor:
    """Return probabilities in a type, positive exactly on the support.

    One that rounds to 0 there becomes the smallest number of the type.

    Args:
        probability: ``(..., n)``.
        support: mask, ``(..., n)``.
        dtype: of the result.
    """
    result = probability.to(dtype)
    return result.masked_fill((result == 0) & support, smallest(dtype))


def smallest(dtype: torch.dtype) -> float:
    """Return the smallest positive number of a type."""
    info = torch.finfo(dtype)
    return info.smallest_normal * info.eps


def newton_step(
    margin: Tensor, order: float, level: float | Tensor, scratch: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute a Newton step towards the threshold at which the norm of the margins is ``level``.

    Args:
        margin: ``(..., n)``.
        order: of the norm, ``1 / beta`` for entmax.
        level: the wanted norm, ``1 / beta`` for entmax.
        scratch: ``(..., n)``; overwritten unless the order is 2.

    Returns:
        The norm, and numerator and denominator of the step; all ``(..., 1)``.
    """
    if order == 2:
        norm = torch.linalg.vector_norm(margin, 2, -1, True)
        return norm, (norm - level).mul_(norm), margin.sum(-1, True)
    if order == 1:
        norm = margin.sum(-1, True)
        return norm, norm - level, torch.sign(margin, out=scratch).sum(-1, True)
    slope = raised(margin, order - 1, scratch).sum(-1, True)
    total = scratch.mul_(margin).sum(-1, True)
    norm = total.pow(1 / order)
    return norm, (norm - level).mul_(total.pow_(1 - 1 / order)), slope


def solve_power(
    scores: Tensor, alpha: float, start: Tensor | None = None, maxima: Tensor | None = None
) -> PowerForm:
    """Solve for the threshold of each row by Newton's method on the whole row.

    Float32 scores are solved in float32 first, and from there in float64.

    Args:
        scores: ``(..., n)`` with n >= 1, float32 or float64.
        alpha: a number in [1.1, 2].
        start: lower bounds of the thresholds, ``(..., 1)``. By default a guess: the first step from
            anywhere ends below the threshold.
        maxima: the largest score of each row, ``(..., 1)``, if known.

    Raises:
        ValueError: if a row is -inf everywhere.
    """
    order = 1 / (alpha - 1)
    maxima = scores.amax(-1, True) if maxima is None else maxima
    threshold = _climb(scores - maxima, order, start, maxima)
    if scores.dtype != torch.float64:
        # Rounding may have raised it above the threshold.
        start = threshold.double() - SLACK * _EPSILON[scores.dtype] * order
        threshold = _climb(scores.double() - maxima.double(), order, start, maxima)
    return PowerForm(maxima, threshold, margins(scores, alpha, maxima, threshold))


def _climb(below: Tensor, order: float, start: Tensor | None, maxima: Tensor) -> Tensor:
    """Return the thresholds of rows ``below`` ``(..., n)`` in their type; see `solve_power`.

    At order 2 the second derivative of the norm is at most n / 2, so a step ``d`` leaves an error
    of at most ``n d**2 / 4``: once that is below rounding, the step is the last.
    """
    level = _number(order, below.dtype, below.device)
    threshold = _number(_GUESS * order, below.dtype, below.device) if start is None else start
    margin = (below - threshold).relu_()
    scratch = margin if order == 2 else torch.empty_like(margin)
    enough, previous = (1 + 2 * _EPSILON[below.dtype]) * order, math.inf
    short = 4 * math.sqrt(_EPSILON[below.dtype] / below.shape[-1]) if order == 2 else 0.0
    for iteration in range(_ITERATIONS):
        norm, rise, slope = newton_step(margin, order, level, scratch)
        # Ordinary rows need three steps, or one from a bound; a check costs half a small step.
        if iteration >= (3 if start is None else 1):
            largest = float(norm.amax())
            if largest != largest:
                refuse_rows_without_answer(maxima)
                largest = float(norm.nan_to_num(0.0).amax())
            # The norm decreases at every step until rounding stops it.
            if largest <= enough or largest >= previous:
                break
            previous = largest
        step = rise.div_(slope)
        checked = short > 0 and iteration >= (2 if start is None else 1)
        last = checked and float(step.amax()) <= short
        threshold = threshold.add_(step) if iteration else step.add_(threshold)
        torch.sub(below, threshold, out=margin).relu_()
        if last:
            break
    return threshold


@cache
def _number(value: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return a cached 0-dim tensor, with which operations start faster than with a number."""
    return torch.tensor(value, dtype=dtype, device=device)


def log_curve(below: Tensor, alpha: float | Tensor) -> Tensor:
    """Return ``log(1 + beta y) / beta`` of ``y = below``, or -inf; at alpha 1 its limit y."""
    beta = torch.as_tensor(alpha, dtype=below.dtype, device=below.device) - 1
    curved = (beta * below).clamp_min_(-1.0).log1p_().div_(beta)
    return torch.where(beta == 0, below, curved)


def solve_log(scores: Tensor, alpha: float | Tensor) -> LogForm:
    """Solve for the shift of each row in float64, for any alpha >= 1; above 2 by bisection.

    Args:
        scores: ``(..., n)`` with n >= 1.
        alpha: a number, or ``(..., 1)``, one for each row.

    Raises:
        ValueError: if a row is -inf everywhere.
    """
    scores = scores.double()
    beta = torch.as_tensor(alpha, dtype=torch.float64, device=scores.device) - 1
    maxima = scores.amax(-1, True)
    below_max = scores - maxima
    low = torch.zeros_like(maxima)
    # Equal scores have the largest shift: log n at alpha 1.
    high = -_expm1_over(beta, torch.full_like(maxima, -math.log(scores.shape[-1])))
    shift, bisect = low, (beta > 1).expand_as(low)
    enough = 1 + 4 * torch.finfo(torch.float64).eps
    for _ in range(_ITERATIONS):
        logs = log_curve(below_max - shift, beta + 1)
        total = logs.exp().sum(-1, keepdim=True)
        low, high = torch.where(total >= 1, shift, low), torch.where(total < 1, shift, high)
        broken = total.isnan()
        if bool(broken.any()):
            refuse_rows_without_answer(maxima)
        settled = torch.where(bisect, high - low <= 2e-16 * high, total <= enough)
        if bool((settled | broken).all()):
            break
        slope = torch.exp((1 - beta) * logs).nan_to_num_(0.0, 0.0, 0.0).sum(-1, keepdim=True)
        step = -total * _expm1_over(beta, -total.log()) / slope
        shift = torch.where(bisect, (low + high) / 2, shift + step)
    if bool(bisect.any()):
        # The lower end keeps the whole support.
        shift = torch.where(bisect, low, shift)
        logs = torch.where(bisect, logs_above_two(below_max, beta, shift), logs)
    return LogForm(maxima, shift, logs)


def logs_above_two(below: Tensor, beta: Tensor, shift: Tensor) -> Tensor:
    """Return log-probabilities for alpha > 2, from a lower bound next to the shift.

    There a probability's slope is infinite at the threshold, so that even the nearest float64
    threshold does not determine the smallest probabilities. The unknown is therefore the smallest
    probability ``v``, of the score ``x_k``; the others are
    ``(beta (x_i - x_k) + v ** beta) ** (1 / beta)``. Each is a norm of two terms, hence convex and
    increasing in v, and Newton's method decreases to a sum of 1.

    Args:
        below: scores minus the largest, ``(..., n)`` in float64.
        beta: alpha - 1, broadcasting; the result is meaningless where it is not above 1.
        shift: ``(..., 1)``, as in :class:`LogForm`.
    """
    beta = torch.where(beta > 1, beta, 2.0)
    inside = 1 + beta * (below - shift) > 0
    while True:
        least = torch.where(inside, below, math.inf).amin(-1, keepdim=True)
        difference = torch.where(inside, beta * (below - least), 0.0)
        # If the others sum to 1 or more, the smallest is not in the support after all.
        full = difference.pow(1 / beta).sum(-1, keepdim=True) >= 1
        if not bool(full.any()):
            break
        inside &= ~(full & (below == least))
    first = inside & (difference == 0)
    v = 1 / inside.sum(-1, keepdim=True).to(below.dtype)
    for _ in range(_ITERATIONS):
        p = torch.where(first, v, (difference + v**beta) ** (1 / beta)) * inside
        slope = torch.where(first, 1.0, (v / p) ** (beta - 1)).nan_to_num_(0.0) * inside
        step = (p.sum(-1, keepdim=True) - 1) / slope.sum(-1, keepdim=True)
        following = torch.minimum(v - step, v).clamp_min_(0.0)
        if bool((following == v).all()):
            break
        v = following
    logs = torch.where(first, v.log(), torch.log(difference + v**beta) / beta)
    logs = torch.where(inside, logs, -math.inf)
    return torch.where(below.isnan().any(-1, keepdim=True), math.nan, logs)


def _expm1_over(beta: Tensor, factor: Tensor) -> Tensor:
    """Return ``expm1(beta * factor) / beta``, and its limit ``factor`` where beta is 0."""
    return torch.where(beta == 0, factor, torch.expm1(beta * factor) / beta)
