r"""Alpha-entmax in plain PyTorch: the definition that the C++ code and the GPU kernels must equal.

.. math:: \mathrm{entmax}_\alpha(z) = \arg\max_p\; p^\top z + H_\alpha(p)
          = [(\alpha - 1) z - \tau]_+^{1 / (\alpha - 1)}

(Peters, Niculae and Martins 2019, equations 10 and 13.) The unknown here is not the threshold but
the log-probability :math:`w` of one score :math:`z_k`, the anchor. With :math:`\beta = \alpha - 1`,

.. math:: \log p_i = \log(e^{\beta w} + \beta (z_i - z_k)) / \beta,

whose limit at :math:`\alpha = 1` is softmax. The sum of p grows with w. Up to alpha 2 the anchor is
the largest score. Above, the slope of a probability is infinite at the threshold, so that no
float64 threshold determines the smallest ones; the anchor is then the smallest member of the
support. Everything is computed in float64, for any alpha from 1, one number or one a row. While a
CUDA graph or a compiler records, nothing is read and all steps are taken.
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
    above_two = not isinstance(alpha, Tensor) and alpha > 2
    if isinstance(alpha, Tensor):
        above_two = not is_readable(alpha) or bool((alpha > 2).any())
    apart = log_apart = below
    if above_two:
        apart = below - _smallest_member(below, beta)
        log_apart = torch.where(apart == 0, -math.inf, (beta * apart).log())

    def curve(w: Tensor) -> Tensor:
        base = torch.expm1(beta * w) + beta * below
        # Up to rounding, a score on the threshold is outside.
        base = torch.where(base <= 2.0**-48 - 1, -1.0, base)
        logs = torch.where(beta == 0, below + w, torch.log1p(base) / beta)
        if above_two:
            steep = torch.where(apart < 0, -math.inf, torch.logaddexp(beta * w, log_apart) / beta)
            logs = torch.where(beta > 1, steep, logs)
        return logs

    w = torch.full_like(below[..., :1], -math.log(scores.shape[-1]))
    # The logarithm of a positive float64, and a little above that of 1.
    low, high = torch.full_like(w, -745.0), torch.full_like(w, 0.01)
    for step in range(100):
        logs = curve(w)
        excess = logs.logsumexp(-1, keepdim=True)
        low, high = torch.where(excess < 0, w, low), torch.where(excess >= 0, w, high)
        growth = torch.where(logs == -math.inf, -math.inf, (1 - beta) * logs)
        newton = w - excess / (growth - excess + beta * w).exp().sum(-1, keepdim=True)
        outside = (newton <= low) | (newton >= high) | (step >= 25)
        following = torch.where(outside, (low + high) / 2, newton)
        settled = ((newton - w).abs() <= 4e-15) | (high - low <= 4e-15) | excess.isnan()
        if is_readable(settled) and bool(settled.all()):
            break
        w = torch.where(settled, w, following)
    logs = curve(w)
    return logs - logs.logsumexp(-1, keepdim=True)


def _smallest_member(below: Tensor, beta: Tensor) -> Tensor:
    """Return the smallest score of the support ``(..., 1)`` for alpha above 2, else the largest.

    A score is in the support if the others, with itself on the threshold, sum to less than 1.
    """
    ordered = below.sort(-1, descending=True).values
    place = torch.zeros_like(below[..., :1], dtype=torch.int64)
    for bit in reversed(range(below.shape[-1].bit_length())):
        further = (place + (1 << bit)).clamp_max(below.shape[-1] - 1)
        margin = (beta * (below - ordered.gather(-1, further))).clamp_min(0)
        inside = margin.pow(1 / beta).sum(-1, keepdim=True) < 1
        place = torch.where(inside, further, place)
    return torch.where(beta > 1, ordered.gather(-1, place), 0.0)


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
    rearranged so that nothing cancels as alpha nears 1: with :math:`k_i` of :func:`_curvature`,

    .. math:: \partial \log p_i / \partial\alpha
              = -k_i + p_i^{1-\alpha} \sum_j p_j k_j / \lVert s \rVert_1 .

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
    in_logs = gradient if logs else gradient * result
    log_s = torch.where(inside, (2 - alpha) * log_p, -math.inf)
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
    if not of_alpha:
        return in_scores, None
    k = _curvature(log_p, alpha)
    total = torch.where(inside, log_p.exp() * k, 0.0).sum(-1, keepdim=True)
    return in_scores, mean * total - (in_logs * k).sum(-1, keepdim=True)


def _curvature(log_p: Tensor, alpha: float | Tensor) -> Tensor:
    r"""Return :math:`k = (\log p)^2 (e^w - 1 - w) / w^2`, :math:`w = (1 - \alpha) \log p`."""
    w = (1 - alpha) * log_p
    small = w < 0.5
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
    bend = p * torch.exp((alpha - 1) * log_p) * _curvature(log_p, alpha)
    return -(tsallis_entropy(p, alpha).unsqueeze(-1) + bend.sum(-1, keepdim=True)) / alpha
