r"""The solvers of `reference`: log-probabilities of entmax in float64, with PyTorch's operations.

Let :math:`\beta = \alpha - 1`, and let the anchor be one of the scores, :math:`z_k`. A solver looks
for the probability :math:`p_k` of the anchor with which all probabilities, given by

.. math:: \log p_i = \log(p_k^\beta + \beta (z_i - z_k)) / \beta ,

sum to 1. Their sum grows with :math:`p_k`. At :math:`\beta = 0`, the limit of the formula is
softmax, :math:`\log p_i = \log p_k + z_i - z_k`. Up to alpha 2, the anchor is the largest score.
Above 2, a probability has an infinite slope at the threshold, so the smallest probabilities depend
on digits that a float64 threshold does not have. Therefore, the anchor is then the smallest score
of the support.

Steps end when all rows are solved. While a CUDA graph or a compiler records, nobody can read
whether they are, so all steps are taken.
"""

import math

import torch
from torch import Tensor

from onmt_entmax.sparse.recording import has_values, is_readable_now

# --- up to alpha 2 ---

# Bounds of the unknown w, the logarithm of the largest probability: the logarithms of the smallest
# positive float64, 2**-1074, and of 1, which is raised a little in case it is rounded.
_LOWEST, _HIGHEST = -745.0, 0.01
# A row is solved when its step, or the interval around w, is this short: 18 machine epsilons, a
# little more than the rounding of w and of the sums.
_SETTLED = 4e-15
# The first 25 steps are Newton's; those that would leave the interval bisect it instead. The other
# 75 all bisect it: log2(745 / 4e-15), or 58, would be enough for the whole interval.
_NEWTON_STEPS, _STEPS = 25, 100
# A base p ** beta up to this, 16 machine epsilons, is rounding: the score is on the threshold.
_ON_THRESHOLD = 2.0**-48

# --- above alpha 2 ---

# A row is solved if its sum of probabilities exceeds 1 by at most a rounding, or if the relative
# error of u, the smallest probability, is at most a quarter of that.
_MASS_SETTLED, _ERROR_SETTLED = 2.0**-52, 2.0**-54
# The comparison that finds candidates gets so much slack for each score of its sum. This is far
# more than a rounding, since candidates too many do no harm.
_SORTED_SLACK = 1e-9
# Bits of a position in a row if a recorded graph leaves the length of rows open, below 2^31.
_BITS = 31


def may_wait(tensor: Tensor) -> bool:
    """Return whether a tensor can be read, after waiting for a GPU if necessary."""
    recorded = tensor.is_cuda and torch.cuda.is_current_stream_capturing()
    return not recorded and has_values(tensor)


def up_to_two(below: Tensor, beta: Tensor) -> Tensor:
    r"""Return log-probabilities ``(..., n)`` for alphas from 1 to 2, -inf outside the support.

    The unknown is :math:`w = \log p_k`, the root of :math:`F(w) = \log \sum_i p_i(w)`. Since
    :math:`d \log p_i / dw = (p_k / p_i)^\beta`, Newton's next w is :math:`w - F(w) / F'(w)` with

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

    The unknown is u, the probability of the anchor :math:`z_k`, which is the smallest one. As a
    function of u, the sum of all probabilities :math:`(u^\beta + \beta (z_i - z_k))^{1/\beta}` is
    convex, with a slope between 1 and n. So Newton's method falls to the root from any upper bound.
    The excess is the sum minus 1, and at most 1 at first. Each step divides the product of slope
    and excess by 4 or more.

    Args:
        below: differences to the largest score, ``(..., n)`` float64.
        beta: alpha - 1, 1 or more, a scalar or ``(..., 1)``.
    """
    ordered = _candidates(below, beta)
    anchor, rest = _smallest_member(ordered, beta)

    def log_p_at(w: Tensor, scores: Tensor) -> Tensor:  # at w = log u
        apart = beta * (scores - anchor)
        logs = torch.logaddexp(beta * w, torch.where(apart > 0, apart.log(), -math.inf)) / beta
        return torch.where(apart < 0, -math.inf, logs)

    members = (ordered >= anchor).sum(-1, keepdim=True, dtype=torch.float64)
    equal = (ordered == anchor).sum(-1, keepdim=True, dtype=torch.float64)
    # Two upper bounds of u: it is the smallest probability of the members, and each score that
    # equals the anchor has it. A lower bound: the sum's slope is at most the number of members.
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

    No probability is below its power of alpha - 1. So the support is a part of the support of
    sparsemax of ``(alpha - 1) * scores``, which Algorithm 1 of Martins and Astudillo (2016) finds.
    If values cannot be read, the number of candidates is unknown, and all scores are candidates.

    Args:
        below: differences to the largest score, ``(..., n)`` float64.
        beta: alpha - 1, 1 or more, a scalar or ``(..., 1)``.

    Returns:
        ``(..., candidates)``. All rows have as many as the row with the most needs.
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
    """Return the smallest score of the support, and the sum of the others with it as threshold.

    If a score were the threshold, the probabilities of the larger scores would have some sum. The
    score is in the support if that sum is less than 1. A binary search, from the highest bit of the
    position to the lowest, finds the last such score.

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
