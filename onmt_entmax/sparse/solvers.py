r"""The solvers of `reference`: log-probabilities of entmax in float64, with PyTorch's operations.

With :math:`\beta = \alpha - 1`, both look for the probability of one score :math:`z_k`, the anchor,
for which all probabilities

.. math:: \log p_i = \log(p_k^\beta + \beta (z_i - z_k)) / \beta

sum to 1; their sum grows with :math:`p_k`. At :math:`\beta = 0` the limit is softmax,
:math:`\log p_i = \log p_k + z_i - z_k`. Up to alpha 2 the anchor is the largest score. Above, the
slope of a probability is infinite at the threshold, so that no float64 threshold determines the
smallest ones; the anchor is then the smallest member of the support.

Steps end when all rows are solved. While a CUDA graph or a compiler records, that cannot be read,
so all steps are taken.
"""

import math

import torch
from torch import Tensor

from onmt_entmax.sparse.recording import has_values, is_readable_now

# --- up to alpha 2 ---

# Bounds of the unknown w, the logarithm of the largest probability: the logarithms of the smallest
# positive float64, 2**-1074, and of 1, which is raised a little in case it is rounded.
_LOWEST, _HIGHEST = -745.0, 0.01
# A step, or an interval around w, is short enough at 18 units in the last place of 1.
_SETTLED = 4e-15
# The first 25 steps are Newton's; those that would leave the interval bisect it instead. All of the
# other 75 bisect it: log2(745 / 4e-15), or 58, would be enough for the whole interval.
_NEWTON_STEPS, _STEPS = 25, 100
# A base p ** beta up to this is rounding: the score lies on the threshold.
_ON_THRESHOLD = 2.0**-48

# --- above alpha 2 ---

# The sum of probabilities may exceed 1 by its rounding; the relative error of u may be a quarter of
# that.
_MASS_SETTLED, _ERROR_SETTLED = 2.0**-52, 2.0**-54
# Slack for each score of a sum, far above the rounding of one: candidates too many do no harm.
_SORTED_SLACK = 1e-9
# Bits of a position in a row, if a recorded graph leaves the length of rows open.
_BITS = 31


def may_wait(tensor: Tensor) -> bool:
    """Return whether a tensor can be read, after waiting for a GPU if necessary."""
    recorded = tensor.is_cuda and torch.cuda.is_current_stream_capturing()
    return not recorded and has_values(tensor)


def up_to_two(below: Tensor, beta: Tensor) -> Tensor:
    r"""Return log-probabilities ``(..., n)`` for alphas from 1 to 2, -inf outside the support.

    The unknown is :math:`w = \log p_k`, the root of :math:`F(w) = \log \sum_i p_i(w)`. Since
    :math:`d \log p_i / dw = (p_k / p_i)^\beta`, Newton's step is :math:`w - F(w) / F'(w)` with

    .. math:: F'(w) = \sum_i \exp((1 - \beta) \log p_i + \beta w - F(w)).

    Args:
        below: differences to the largest score, ``(..., n)`` float64.
        beta: alpha - 1, from 0 to 1, a scalar or ``(..., 1)``.
    """

    def log_p_at(w: Tensor) -> Tensor:
        base = torch.expm1(beta * w) + beta * below  # minus 1, so that nothing cancels near beta 0
        base = torch.where(base <= _ON_THRESHOLD - 1, -1.0, base)
        return torch.where(beta == 0, below + w, torch.log1p(base) / beta)

    w = torch.full_like(below[..., :1], -math.log(below.shape[-1]))
    low, high = torch.full_like(w, _LOWEST), torch.full_like(w, _HIGHEST)
    for step in range(_STEPS):
        logs = log_p_at(w)
        excess = logs.logsumexp(-1, keepdim=True)  # F
        low, high = torch.where(excess < 0, w, low), torch.where(excess >= 0, w, high)
        growth = torch.where(logs == -math.inf, -math.inf, (1 - beta) * logs)
        newton = w - excess / (growth - excess + beta * w).exp().sum(-1, keepdim=True)
        middle = (low + high) / 2
        outside = (newton <= low) | (newton >= high)
        next_w = middle if step >= _NEWTON_STEPS else torch.where(outside, middle, newton)
        is_near = ((newton - w).abs() <= _SETTLED) | (high - low <= _SETTLED)
        settled = is_near | excess.isnan()
        # Rows on a GPU are not read: taking all steps is faster than waiting after each.
        if is_readable_now(settled) and bool(settled.all()):
            break
        w = torch.where(settled, w, next_w)
    return _normalised(log_p_at(w))


def above_two(below: Tensor, beta: Tensor) -> Tensor:
    r"""Return log-probabilities ``(..., n)`` for alphas of 2 or more, -inf outside the support.

    The unknown is the smallest probability u. As a function of u, the sum of all probabilities
    :math:`(u^\beta + \beta (z_i - z_k))^{1/\beta}` is convex, with a slope between 1 and n. So
    Newton's method falls to the root from any upper bound. Each of its steps divides the product of
    slope and excess, where the excess of the sum over 1 is at most 1 at first, by 4 or more.

    Args:
        below: differences to the largest score, ``(..., n)`` float64.
        beta: alpha - 1, 1 or more, a scalar or ``(..., 1)``.
    """
    ordered = _candidates(below, beta)
    anchor, rest = _smallest_member(ordered, beta)

    def log_p_at(w: Tensor, scores: Tensor) -> Tensor:
        apart = beta * (scores - anchor)
        logs = torch.logaddexp(beta * w, torch.where(apart > 0, apart.log(), -math.inf)) / beta
        return torch.where(apart < 0, -math.inf, logs)

    members = (ordered >= anchor).sum(-1, keepdim=True, dtype=torch.float64)
    equal = (ordered == anchor).sum(-1, keepdim=True, dtype=torch.float64)
    # u is the smallest probability of the members, and that of every score that equals the anchor:
    # two upper bounds. The sum has a slope of at most the number of members: a lower bound.
    u = torch.minimum(1 / members, (1 - rest) / equal)
    least = (1 - rest) / members
    # Excess times slope falls from at most 1 times n to 2**-52 times 1, two bits a step.
    for _ in range((52 + _bits(ordered)) // 2 + 1):
        w = u.log()
        logs = log_p_at(w, ordered)
        excess = logs.exp().sum(-1, keepdim=True) - 1
        slopes = torch.where(logs == -math.inf, -math.inf, (beta - 1) * (w - logs)).exp()
        next_u = torch.maximum(u - excess / slopes.sum(-1, keepdim=True), least)
        # The relative error of the next u is at most beta times the square of this change.
        change = (u - next_u) / u
        is_near = (excess <= _MASS_SETTLED) | (beta * change * change <= _ERROR_SETTLED)
        settled = is_near | excess.isnan()
        u = next_u
        if may_wait(settled) and bool(settled.all()):
            break
    return _normalised(log_p_at(u.log(), below))


def _normalised(logs: Tensor) -> Tensor:
    """Return log-probabilities ``(..., n)`` minus the logarithm of their sum, which is near 1."""
    return logs - logs.logsumexp(-1, keepdim=True)


def _candidates(below: Tensor, beta: Tensor) -> Tensor:
    """Return the candidates for the support, in descending order, or all scores.

    Probabilities are at least their power of alpha - 1, so the support is part of that of sparsemax
    of ``(alpha - 1) * scores``: see Algorithm 1 of Martins and Astudillo (2016). If values cannot
    be read, their number is unknown, and all scores are candidates.

    Args:
        below: differences to the largest score, ``(..., n)``.
        beta: alpha - 1, 1 or more.

    Returns:
        ``(..., candidates)``, as many as the row with the most has.
    """
    if not may_wait(below):
        return below.sort(-1, descending=True).values
    # No threshold is more than 1 / beta below the largest score. This leaves less to sort.
    near = max(int((beta * below > -1).sum(-1).amax()), 1)
    ordered = below.topk(near).values
    z, places = beta * ordered, torch.arange(1, near + 1, device=below.device)
    inside = 1 + places * z >= z.cumsum(-1) - _SORTED_SLACK * places
    return ordered[..., : max(int(inside.sum(-1).amax()), 1)]


def _smallest_member(ordered: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """Return the smallest score of the support, and what the others sum to above it.

    With a score as the threshold, the probabilities of the larger scores have some sum. The score
    is in the support if that sum is less than 1. A binary search finds the last position of such a
    score, from the highest bit to the lowest.

    Args:
        ordered: scores ``(..., n)`` in descending order.
        beta: alpha - 1, 1 or more, a scalar or ``(..., 1)``.

    Returns:
        Score and sum, ``(..., 1)`` each.
    """
    place = torch.zeros_like(ordered[..., :1], dtype=torch.int64)
    rest = torch.zeros_like(ordered[..., :1])
    for bit in reversed(range(_bits(ordered))):
        further = (place + (1 << bit)).clamp_max(ordered.shape[-1] - 1)
        margins = (beta * (ordered - ordered.gather(-1, further))).clamp_min(0)
        total = margins.pow(1 / beta).sum(-1, keepdim=True)
        place = torch.where(total < 1, further, place)
        rest = torch.where(total < 1, total, rest)
    return ordered.gather(-1, place), rest


def _bits(rows: Tensor) -> int:
    """Return how many bits the length of rows has; in a graph for any length, enough for all."""
    length = rows.shape[-1]
    return length.bit_length() if type(length) is int else _BITS
