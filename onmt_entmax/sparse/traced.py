r"""Entmax as a fixed sequence of PyTorch operations, for tracers and for exports to ONNX.

`torch.jit.trace` records the operations of one example, and an ONNX file holds nothing but known
operations. Both are then run with other scores and other lengths, so that here nothing is read from
a tensor, no Python number comes from a shape, and every search takes a fixed number of steps.
`mapping.py` calls :func:`mapping` while PyTorch traces or exports.

With :math:`\beta = \alpha - 1` and :math:`z_k` the score of the anchor, as in `reference`,

.. math:: p_i = [p_k^\beta + \beta (z_i - z_k)]_+^{1 / \beta}.

| alpha | anchor | how its probability is found |
|---|---|---|
| 2, 1.5 | the largest score | a formula of the sorted scores |
| other numbers up to 2 | the largest score | bisection of its logarithm |
| numbers above 2 | the smallest member of the support, itself found by bisection | likewise |
| one for each row | by the row's alpha | likewise; rows with alpha 1 are softmax |

Everything is computed in float64. The derivatives of a bisection are wrong, so solutions are
constants for autograd, and a term that is 0 has the derivatives: see :func:`_zero_with_gradient`.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from onmt_entmax.sparse import derivatives
from onmt_entmax.sparse.precision import round_on_support, working_type
from onmt_entmax.sparse.recording import is_in_onnx_export

# Below, alpha - 1 cancels in float64, and entmax equals softmax to 1e-8.
_SOFTMAX = 2.0**-26
# A score with at most this p ** (alpha - 1), which is rounding, is on the threshold, so outside.
_ON_THRESHOLD = 2.0**-48
# Where the bisections of a log-probability begin. The largest probability of n scores is at least
# 1 / n, whose logarithm is above this for n up to 2**46; the smallest float64 is 2**-1074.
_LEAST_LARGEST = -32.0
_LEAST_SMALLEST = -1024.0
# Scores that are farther below the largest, times alpha - 1, have no probability. Any bound below
# -1 would do; it keeps sums finite where scores are -inf.
_FAR_BELOW = -2.0
# The width at which bisections end: four times the rounding of a float64 near 1.
_LAST_WIDTH = 2.0**-50


def mapping(scores: Tensor, alpha: float | Tensor, logs: bool) -> Tensor:
    """Return probabilities or their logarithms, as `reference.mapping`, with first derivatives.

    Args:
        scores: ``(..., n)`` with n >= 1, any floating-point type.
        alpha: a number above 1, or ``(..., 1)``.
        logs: whether logarithms are returned.
    """
    constant_alpha = alpha.detach() if isinstance(alpha, Tensor) else alpha
    log_p = log_probabilities(scores.detach(), constant_alpha)
    dtype = working_type(scores)
    result = log_p.to(dtype) if logs else round_on_support(log_p.exp(), log_p > -math.inf, dtype)
    if is_in_onnx_export():
        return result
    return result + _zero_with_gradient(scores, alpha, constant_alpha, log_p, logs).to(dtype)


def log_probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Return log-probabilities ``(..., n)`` in float64, -inf exactly outside the support.

    Args:
        scores: ``(..., n)`` with n >= 1, any floating-point type.
        alpha: a number above 1, or ``(..., 1)``, where nan gives nan.
    """
    scores = scores.double()
    below = scores - scores.amax(-1, keepdim=True)
    if isinstance(alpha, Tensor):
        return _by_rows(below, alpha.double() - 1)
    if alpha > 2:
        return _above_two(below, alpha - 1)
    return _up_to_two(below, alpha - 1)


def _up_to_two(below: Tensor, beta: float) -> Tensor:
    """Return log-probabilities ``(..., n)`` for one alpha up to 2.

    Args:
        below: differences to the largest score, ``(..., n)``.
        beta: alpha - 1.
    """
    root = 1 / beta
    apart = below * beta

    def mass(w: Tensor) -> Tensor:
        return ((beta * w).exp() + apart).relu().pow(root).sum(-1, keepdim=True)

    if root in (1, 2):
        level = -_threshold_by_sorting(apart, root)
    else:
        level = (beta * _log_anchor(mass, apart, _LEAST_LARGEST)).exp()
    base = level + apart
    logs = base.relu().log() * root
    return _normalised(logs.masked_fill(base <= _ON_THRESHOLD, -math.inf))


def _above_two(below: Tensor, beta: float) -> Tensor:
    """Return log-probabilities ``(..., n)`` for one alpha above 2; arguments as `_up_to_two`."""
    root = 1 / beta
    apart = below * beta
    apart = apart - _smallest_member(apart, root)
    apart = apart.masked_fill(apart < 0, -math.inf)
    return _from_anchor(apart, beta, root, apart >= 0)


def _by_rows(below: Tensor, beta: Tensor) -> Tensor:
    """Return log-probabilities ``(..., n)`` where each row has an alpha of its own.

    Every row is computed in each way, since a graph has no branches.

    Args:
        below: differences to the largest score, ``(..., n)``.
        beta: alpha - 1, ``(..., 1)``.
    """
    is_softmax = beta < _SOFTMAX
    # Another alpha stands in for rows of softmax, which are replaced at the end.
    beta = torch.where(is_softmax, torch.ones_like(beta), beta)
    is_above_two = beta > 1
    root = 1 / beta
    apart = below * beta
    smallest = _smallest_member(apart, root)
    apart = apart - torch.where(is_above_two, smallest, torch.zeros_like(smallest))
    apart = apart.masked_fill((apart < 0) & is_above_two, -math.inf)
    logs = _from_anchor(apart, beta, root, is_above_two & (apart >= 0))
    return torch.where(is_softmax, below - below.exp().sum(-1, keepdim=True).log(), logs)


def _from_anchor(
    apart: Tensor, beta: float | Tensor, root: float | Tensor, members: Tensor
) -> Tensor:
    """Return log-probabilities ``(..., n)``, where the anchor may be the smallest member.

    Its probability may be so small that its power is 0 in float64. So its own log-probability, and
    that of scores that equal it, is taken as it is.

    Args:
        apart: differences to the anchor, times beta, ``(..., n)``.
        beta: alpha - 1, a number or ``(..., 1)``.
        root: 1 / beta.
        members: which scores are in the support whatever rounding says, ``(..., n)``.
    """

    def mass(w: Tensor) -> Tensor:
        p = ((beta * w).exp() + apart).relu().pow(root)
        return torch.where(apart == 0, w.exp(), p).sum(-1, keepdim=True)

    w = _log_anchor(mass, apart, _LEAST_SMALLEST)
    base = (beta * w).exp() + apart
    logs = torch.where(apart == 0, w + torch.zeros_like(apart), base.relu().log() * root)
    outside = (base <= _ON_THRESHOLD) & ~members
    return _normalised(logs.masked_fill(outside, -math.inf))


def _normalised(logs: Tensor) -> Tensor:
    """Return log-probabilities ``(..., n)`` minus the logarithm of their sum, near 1."""
    return logs - logs.exp().sum(-1, keepdim=True).log()


def _threshold_by_sorting(apart: Tensor, root: float) -> Tensor:
    """Return the threshold ``(..., 1)`` of sparsemax, or of 1.5-entmax.

    The threshold of the k largest scores alone is the root of a polynomial. Up to the size of the
    support it grows with k, and beyond it is above the k-th score.

    Args:
        apart: scores minus the largest, times alpha - 1, ``(..., n)``.
        root: 1 for sparsemax, 2 for 1.5-entmax.
    """
    ordered = apart.clamp_min(_FAR_BELOW).sort(-1, descending=True).values
    count = torch.ones_like(ordered).cumsum(-1)
    mean = ordered.cumsum(-1) / count
    if root == 1:
        thresholds = mean - 1 / count
    else:
        spread = (ordered * ordered).cumsum(-1) / count - mean * mean
        thresholds = mean - (1 / count - spread).relu().sqrt()
    return thresholds.masked_fill(thresholds > ordered, -math.inf).amax(-1, keepdim=True)


def _smallest_member(apart: Tensor, root: float | Tensor) -> Tensor:
    """Return the smallest score of the support ``(..., 1)``, scaled as ``apart`` is.

    Args:
        apart: scores minus the largest, times alpha - 1, ``(..., n)``.
        root: 1 / (alpha - 1), a number or ``(..., 1)``.
    """

    def is_below_threshold(t: Tensor) -> Tensor:
        return (apart - t).relu().pow(root).sum(-1, keepdim=True) >= 1

    # The largest score, 0 here, has a probability of at most 1.
    threshold = _last_number(is_below_threshold, torch.zeros_like(apart[..., :1]) - 1.0, 1.0)
    # On the threshold itself, or below it, a score is outside.
    return apart.masked_fill(apart <= threshold, 0.0).amin(-1, keepdim=True)


def _log_anchor(mass: Callable[[Tensor], Tensor], apart: Tensor, least: float) -> Tensor:
    """Return the log-probability of the anchor ``(..., 1)``, with which probabilities add up to 1.

    Args:
        mass: the sum of the probabilities, which grows with the anchor's log-probability.
        apart: gives the shape, ``(..., n)``.
        least: a lower bound of the log-probability.
    """
    start = torch.zeros_like(apart[..., :1]) + least
    return _last_number(lambda w: mass(w) < 1, start, -least)


def _last_number(holds: Callable[[Tensor], Tensor], low: Tensor, width: float) -> Tensor:
    """Return the last number from ``low`` to ``low + width`` up to which a condition holds."""
    while width > _LAST_WIDTH:
        width /= 2
        further = low + width
        low = torch.where(holds(further), further, low)
    return low


def _zero_with_gradient(
    scores: Tensor,
    alpha: float | Tensor,
    constant_alpha: float | Tensor,
    log_p: Tensor,
    logs: bool,
) -> Tensor:
    r"""Return zeros ``(..., n)`` with the derivatives of the result.

    `scores - scores.detach()` is 0 and has the derivative 1: autograd takes it for a small change
    dz of the scores. A sum of such changes times derivatives is 0, too, and autograd finds these
    derivatives in it. They are those of `reference.gradients`. On the support, with Jacobian
    weights :math:`s_i = p_i^{2 - \alpha}` and their shares :math:`s_i / \lVert s \rVert_1`,

    .. math:: dp_i = s_i (dz_i - \sum_j \tfrac{s_j}{\lVert s \rVert_1} dz_j)
              \quad\text{and}\quad d \log p_i = dp_i / p_i .

    Args:
        scores: ``(..., n)``.
        alpha: a number, or ``(..., 1)``.
        constant_alpha: the same for autograd, a constant.
        log_p: log-probabilities ``(..., n)``, without a graph.
        logs: whether the result is logarithms.
    """
    inside = log_p > -math.inf
    log_p = torch.where(inside, log_p, 0.0)
    change_of_scores = torch.where(inside, scores - scores.detach(), 0.0).double()
    log_s = torch.where(inside, (2 - constant_alpha) * log_p, -math.inf)
    log_shares = torch.log_softmax(log_s, -1)
    mean = (log_shares.exp() * change_of_scores).sum(-1, keepdim=True)
    centred = change_of_scores - mean
    # Changes of probabilities add up to 0. That of the largest weight, which may be infinite, is
    # minus the sum of the others.
    is_largest = torch.zeros_like(log_s).scatter(-1, log_s.argmax(-1, keepdim=True), 1.0) > 0
    others = (torch.where(is_largest, -math.inf, log_s).exp() * centred).sum(-1, keepdim=True)
    of_largest = -others * (-log_p).exp() if logs else -others * torch.ones_like(log_p)
    power = (1 if logs else 2) - constant_alpha  # of p, which dz is multiplied by
    slopes = torch.where(is_largest, 0.0, (power * log_p).exp())
    change = torch.where(is_largest, of_largest, slopes * centred)
    if isinstance(alpha, Tensor):
        slopes_in_alpha = _slopes_in_alpha(constant_alpha, log_p, log_shares, inside, logs)
        change = change + slopes_in_alpha * (alpha - constant_alpha).double()
    # Infinite derivatives times 0 would be nan.
    return torch.where((change == 0) & inside, change, 0.0)


def _slopes_in_alpha(
    alpha: float | Tensor, log_p: Tensor, log_shares: Tensor, inside: Tensor, logs: bool
) -> Tensor:
    r"""Return the derivatives of the result in alpha, ``(..., n)``; 0 outside the support.

    With k of `derivatives.curvature`, they are

    .. math:: \partial \log p_i / \partial \alpha
              = p_i^{1 - \alpha} \sum_j p_j k_j / \lVert s \rVert_1 - k_i .

    Args:
        alpha: ``(..., 1)``, without a graph.
        log_p: log-probabilities ``(..., n)``, 0 outside the support.
        log_shares: logarithms of the shares of the Jacobian weights, ``(..., n)``.
        inside: the support, ``(..., n)``.
        logs: whether the result is logarithms.
    """
    k = derivatives.curvature(log_p, alpha)
    total = torch.where(inside, log_p.exp() * k, 0.0).sum(-1, keepdim=True)
    of_logs = (log_shares - log_p).exp() * total - k
    return torch.where(inside, of_logs if logs else log_p.exp() * of_logs, 0.0)
