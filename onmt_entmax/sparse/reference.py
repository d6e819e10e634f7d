r"""Alpha-entmax in plain PyTorch: the definition that the C++ code and the GPU kernels must equal.

.. math:: \mathrm{entmax}_\alpha(z) = \arg\max_p\; p^\top z + H_\alpha(p)
          = [(\alpha - 1) z - \tau]_+^{1 / (\alpha - 1)}

(Peters, Niculae and Martins 2019, equations 10 and 13.) The unknown here is not the threshold but
the probability of one score :math:`z_k`, the anchor. With :math:`\beta = \alpha - 1`,

.. math:: \log p_i = \log(p_k^\beta + \beta (z_i - z_k)) / \beta,

whose limit at :math:`\alpha = 1` is softmax. The sum of p grows with :math:`p_k`. Up to alpha 2 the
anchor is the largest score. Above, the slope of a probability is infinite at the threshold, so that
no float64 threshold determines the smallest ones; the anchor is then the smallest member of the
support. Everything is computed in float64, for any alpha from 1, one number or one a row. Above 2,
steps end when all rows are solved, which waits for a GPU. While a CUDA graph or a compiler records,
nothing is read and all steps are taken.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import (
    is_readable,
    refuse_rows_without_answer,
    rounded,
    working_type,
)
from onmt_entmax.sparse.entropy import tsallis_entropy

# Up to alpha 2. The unknown is the logarithm of a probability, between those of the smallest
# positive float64 and, a little above, of 1; it is settled to about 18 units in the last place.
_LOWEST, _HIGHEST, _SETTLED = -745.0, 0.01, 4e-15
# Newton's steps, kept inside the interval by bisection; then bisection alone, which takes 58 steps
# from any interval to a settled one.
_NEWTON_STEPS, _STEPS = 25, 100
# How far above the threshold, in terms of beta * z, a score may be by rounding alone.
_ON_THRESHOLD = 2.0**-48
# Bits of the number of a score, if the length of rows is open.
_BITS = 31


def log_probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Return log-probabilities ``(..., n)`` in float64, -inf exactly outside the support.

    Args:
        scores: ``(..., n)`` with n >= 1, any floating-point type.
        alpha: a number >= 1, or ``(..., 1)``.

    Raises:
        ValueError: if a row is -inf everywhere (nan on a GPU).
    """
    maxima = scores.amax(-1, keepdim=True)
    refuse_rows_without_answer(maxima)
    below = scores.double() - maxima.double()
    beta = torch.as_tensor(alpha, dtype=torch.float64, device=scores.device) - 1
    above = below_two = True
    if not isinstance(alpha, Tensor):
        above, below_two = alpha > 2, alpha <= 2
    elif _may_wait(alpha):
        above, below_two = bool((alpha > 2).any()), not bool((alpha > 2).all())
    if not above:
        return _up_to_two(below, beta)
    if not below_two:
        return _above_two(below, beta)
    low, high = _up_to_two(below, beta.clamp_max(1)), _above_two(below, beta.clamp_min(1))
    return torch.where(beta > 1, high, low)


def _up_to_two(below: Tensor, beta: Tensor) -> Tensor:
    """Return log-probabilities for beta from 0 to 1, of differences to the largest score."""

    def curve(w: Tensor) -> Tensor:
        base = torch.expm1(beta * w) + beta * below
        # Up to rounding, a score on the threshold is outside.
        base = torch.where(base <= _ON_THRESHOLD - 1, -1.0, base)
        return torch.where(beta == 0, below + w, torch.log1p(base) / beta)

    # The unknown is the logarithm of the largest probability.
    w = torch.full_like(below[..., :1], -math.log(below.shape[-1]))
    low, high = torch.full_like(w, _LOWEST), torch.full_like(w, _HIGHEST)
    for step in range(_STEPS):
        logs = curve(w)
        excess = logs.logsumexp(-1, keepdim=True)
        low, high = torch.where(excess < 0, w, low), torch.where(excess >= 0, w, high)
        growth = torch.where(logs == -math.inf, -math.inf, (1 - beta) * logs)
        newton = w - excess / (growth - excess + beta * w).exp().sum(-1, keepdim=True)
        middle = (low + high) / 2
        outside = (newton <= low) | (newton >= high)
        following = middle if step >= _NEWTON_STEPS else torch.where(outside, middle, newton)
        is_near = ((newton - w).abs() <= _SETTLED) | (high - low <= _SETTLED)
        settled = is_near | excess.isnan()
        if is_readable(settled) and bool(settled.all()):
            break
        w = torch.where(settled, w, following)
    logs = curve(w)
    return logs - logs.logsumexp(-1, keepdim=True)


def _above_two(below: Tensor, beta: Tensor) -> Tensor:
    r"""Return log-probabilities for beta of 1 or more, of differences to the largest score.

    The unknown is the smallest probability u. The sum of
    :math:`(u^\beta + \beta (z_i - z_k))^{1/\beta}`, norms of two numbers, is convex in u, with a
    slope between 1 and n. So Newton's method falls to the root from any upper bound, and each of
    its steps divides the excess of the sum, at most 1 at first, times the slope by 4 or more.
    """
    ordered = _candidates(below, beta)
    anchor, rest = _smallest_member(ordered, beta)

    def curve(w: Tensor, scores: Tensor) -> Tensor:
        apart = beta * (scores - anchor)
        logs = torch.logaddexp(beta * w, torch.where(apart > 0, apart.log(), -math.inf)) / beta
        return torch.where(apart < 0, -math.inf, logs)

    members = (ordered >= anchor).sum(-1, keepdim=True, dtype=torch.float64)
    equal = (ordered == anchor).sum(-1, keepdim=True, dtype=torch.float64)
    # Each score that equals the anchor has probability u, and no slope is above that of all.
    u = torch.minimum(1 / members, (1 - rest) / equal)
    least = (1 - rest) / members
    # From 1 times n to 2**-52 times 1.
    for _ in range((52 + _bits(ordered)) // 2 + 1):
        w = u.log()
        logs = curve(w, ordered)
        excess = logs.exp().sum(-1, keepdim=True) - 1
        weights = torch.where(logs == -math.inf, -math.inf, (beta - 1) * (w - logs))
        following = torch.maximum(u - excess / weights.exp().sum(-1, keepdim=True), least)
        # The relative error of the following is at most beta times the square of this change.
        change = (u - following) / u
        settled = (excess <= 2.0**-52) | (beta * change * change <= 2.0**-54) | excess.isnan()
        u = following
        if _may_wait(settled) and bool(settled.all()):
            break
    logs = curve(u.log(), below)
    return logs - logs.logsumexp(-1, keepdim=True)


def _candidates(below: Tensor, beta: Tensor) -> Tensor:
    """Return the scores in descending order; only the largest, if the others can be left out.

    Probabilities are at least their power of alpha - 1, so the support is part of that of sparsemax
    of ``(alpha - 1) * scores``: see Algorithm 1 of Martins and Astudillo (2016).
    """
    if not _may_wait(below):
        return below.sort(-1, descending=True).values
    near = max(int((beta * below > -1).sum(-1).amax()), 1)
    ordered = below.topk(near).values
    z, places = beta * ordered, torch.arange(1, near + 1, device=below.device)
    # The slack is for rounding.
    inside = 1 + places * z >= z.cumsum(-1) - 1e-9 * places
    return ordered[..., : max(int(inside.sum(-1).amax()), 1)]


def _smallest_member(ordered: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """Return the smallest score of the support, and the sum of the others with it as threshold.

    A score is in the support if that sum is less than 1.

    Args:
        ordered: ``(..., n)``, in descending order.
        beta: 1 or more.
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
    """Return the bits of the length of rows, of any length if a recorded graph leaves it open."""
    length = rows.shape[-1]
    return length.bit_length() if type(length) is int else _BITS


def _may_wait(tensor: Tensor) -> bool:
    """Return whether a tensor can be read, a GPU's after waiting."""
    recorded = tensor.is_cuda and torch.cuda.is_current_stream_capturing()
    return not recorded and is_readable(tensor, wait=True)


def mapping(scores: Tensor, alpha: float | Tensor, logs: bool) -> Tensor:
    """Return probabilities or their logarithms, float64 for float64 scores, else float32."""
    log_p, dtype = log_probabilities(scores, alpha), working_type(scores)
    return log_p.to(dtype) if logs else rounded(log_p.exp(), log_p > -math.inf, dtype)


def solve(scores: Tensor, alpha: float | Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """Write probabilities, return shifted conjugates and maxima of rows; see `backends.solve`."""
    maxima = scores.amax(-1)
    logs = log_probabilities(scores, alpha)
    p = logs.exp()
    below = torch.where(p > 0, scores.double() - maxima.double().unsqueeze(-1), 0.0)
    conjugate = ((p * below).sum(-1) + tsallis_entropy(p, alpha)).clamp_min(0.0)
    out.copy_(rounded(p, logs > -math.inf, out.dtype))
    return conjugate.to(out.dtype), maxima


def conjugate(scores: Tensor, alpha: float | Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Return shifted conjugates and maxima, and what :func:`scaled` needs: the probabilities."""
    p = torch.empty_like(scores)
    return *solve(scores, alpha, p), (p,)


def scaled(
    scores: Tensor, alpha: float | Tensor, kept: Sequence[Tensor], factors: Tensor
) -> Tensor:
    """Return the probabilities of rows times ``factors`` ``(rows,)``."""
    return kept[0] * factors.unsqueeze(1)


def gradients(
    result: Tensor,
    alpha: float | Tensor,
    gradient: Tensor,
    of_alpha: bool = False,
    logs: bool = False,
) -> tuple[Tensor, Tensor | None]:
    r"""Return the gradients in the scores ``(..., n)`` and in alpha ``(..., 1)``, in float64.

    With Jacobian weights :math:`s_i = p_i^{2-\alpha}` on the support, the Jacobian in the scores is
    :math:`\mathrm{diag}(s) - s s^\top / \lVert s \rVert_1` (Peters, Niculae and Martins 2019,
    Proposition 1). The derivative in alpha is Proposition 1 of Correia, Niculae and Martins (2019),
    rearranged so that nothing cancels as alpha nears 1: with :math:`k_i` of :func:`curvature`,

    .. math:: \partial \log p_i / \partial\alpha
              = -k_i + p_i^{1-\alpha} \sum_j p_j k_j / \lVert s \rVert_1 .

    Multiples of :math:`p_i^{1-\alpha}` in k add nothing. Above alpha 2, where they may be huge,
    they are left out.

    All operations are differentiable again.

    Args:
        result: probabilities ``(..., n)``, or with ``logs`` their logarithms.
        alpha: a number, or ``(..., 1)``.
        gradient: in the result; ignored outside the support.
        of_alpha: whether that in alpha is wanted, else None.
        logs: what the result is.
    """
    result, gradient = result.double(), gradient.double()
    inside = result > (-math.inf if logs else 0)
    log_p = torch.where(inside, result, 0.0 if logs else 1.0)
    log_p = log_p if logs else log_p.log()
    gradient = torch.where(inside, gradient, 0.0)
    in_logs = gradient if logs else gradient * result  # the gradient in log p
    log_s = torch.where(inside, (2 - alpha) * log_p, -math.inf)
    # The mean of the gradient in p, by the weights s.
    share = torch.log_softmax(log_s, -1)
    mean = (in_logs * (share - log_p).exp()).sum(-1, keepdim=True)
    # Gradients add up to 0. That of the largest weight, infinite above alpha 2, is computed so.
    lead = torch.zeros_like(inside).scatter_(-1, log_s.argmax(-1, keepdim=True), True)
    s = torch.where(lead | ~inside, -math.inf, log_s).exp()
    if logs:
        others = torch.where(s > 0, gradient * ((1 - alpha) * log_p).exp(), 0.0) - s * mean
    else:
        others = s * (gradient - mean)
    in_scores = torch.where(lead, -others.sum(-1, keepdim=True), others)
    in_scores = torch.where(gradient.isnan().any(-1, keepdim=True), math.nan, in_scores)
    return in_scores, _in_alpha(log_p, inside, alpha, in_logs, mean) if of_alpha else None


def _in_alpha(
    log_p: Tensor, inside: Tensor, alpha: float | Tensor, in_logs: Tensor, mean: Tensor
) -> Tensor:
    """Return the gradient in alpha ``(..., 1)``, see `gradients`.

    Args:
        log_p: ``(..., n)``, 0 outside the support.
        inside: the support.
        alpha: a number, or ``(..., 1)``.
        in_logs: the gradient in log p.
        mean: of the gradient in p, by the weights s, ``(..., 1)``.
    """
    beta = torch.as_tensor(alpha, dtype=torch.float64, device=log_p.device) - 1
    k = curvature(log_p, beta.clamp_max(1) + 1)
    k = torch.where(beta > 1, (beta * log_p - 1) / beta.clamp_min(1) ** 2, k)
    total = torch.where(inside, log_p.exp() * k, 0.0).sum(-1, keepdim=True)
    return mean * total - (in_logs * k).sum(-1, keepdim=True)


def curvature(log_p: Tensor, alpha: float | Tensor) -> Tensor:
    r"""Return :math:`k = (\log p)^2 (e^w - 1 - w) / w^2`, :math:`w = (1 - \alpha) \log p`."""
    w = (1 - alpha) * log_p  # at least 0
    small = w < 0.5  # where the quotient would lose digits: 14 terms of its series are exact there
    near, far = torch.where(small, w, 0.0), torch.where(small, 1.0, w)
    series = torch.zeros_like(w)
    for n in range(14, 1, -1):
        series = (series * near + 1.0) / n
    return log_p**2 * torch.where(small, series, (torch.expm1(far) - far) / far**2)


def conjugate_in_alpha(probabilities: Tensor, alpha: Tensor) -> Tensor:
    """Return the derivative of each row's conjugate in its alpha, ``(rows, 1)``.

    By Danskin's theorem it is that of the Tsallis entropy of fixed probabilities ``(rows, n)``.
    """
    p, alpha = probabilities.double(), alpha.double()
    log_p = torch.where(p > 0, p, 1.0).log()
    bend = p * torch.exp((alpha - 1) * log_p) * curvature(log_p, alpha)
    return -(tsallis_entropy(p, alpha).unsqueeze(-1) + bend.sum(-1, keepdim=True)) / alpha
