r"""Entmax as a fixed sequence of PyTorch operations, for tracers and for exports to ONNX.

`torch.jit.trace` records the operations of one example, and an ONNX file holds nothing but known
operations. Both are then run with other scores and other lengths, so that here nothing is read from
a tensor, no Python number comes from a shape, and every search takes a fixed number of steps.

Sparsemax and 1.5-entmax take a formula of the sorted scores. For other alphas the unknown is, as in
`reference`, the log-probability of one score, the anchor: of the largest score up to alpha 2, above
of the smallest member of the support. Bisection finds it with few kinds of operations. Everything
is computed in float64.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from onmt_entmax.sparse import reference
from onmt_entmax.sparse.arguments import is_in_onnx_export, rounded, working_type

# Below, alpha - 1 cancels in float64, and entmax equals softmax to 1e-8.
_SOFTMAX = 2.0**-26


def mapping(scores: Tensor, alpha: float | Tensor, logs: bool) -> Tensor:
    """Return probabilities or their logarithms, as `reference.mapping`, with first derivatives.

    A trace is differentiated operation by operation. Derivatives of a bisection are wrong, so it
    works on detached tensors, and terms follow that are 0 and have the right derivatives.

    Args:
        scores: ``(..., n)`` with n >= 1, any floating-point type.
        alpha: a number above 1, or ``(..., 1)``.
        logs: whether logarithms are returned.
    """
    fixed = alpha.detach() if isinstance(alpha, Tensor) else alpha
    log_p, dtype = log_probabilities(scores.detach(), fixed), working_type(scores)
    result = log_p.to(dtype) if logs else rounded(log_p.exp(), log_p > -math.inf, dtype)
    if is_in_onnx_export():
        return result
    return result + _zero_with_gradient(scores, alpha, log_p, logs).to(dtype)


def log_probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Return log-probabilities ``(..., n)`` in float64, -inf exactly outside the support.

    Args:
        scores: as in :func:`mapping`.
        alpha: likewise; nan gives nan.
    """
    scores = scores.double()
    below = scores - scores.amax(-1, keepdim=True)
    beta: float | Tensor
    if isinstance(alpha, Tensor):
        beta = alpha.double() - 1
        flat = beta < _SOFTMAX
        # Another alpha stands in for rows of softmax, which are replaced at the end.
        beta = torch.where(flat, torch.ones_like(beta), beta)
        steep = beta > 1
    else:
        beta = alpha - 1
    root = 1 / beta
    apart = below * beta
    above_two = isinstance(alpha, Tensor) or alpha > 2
    if above_two:
        smallest = _smallest_member(apart, root)
        if isinstance(alpha, Tensor):
            smallest = torch.where(steep, smallest, torch.zeros_like(smallest))
        apart = apart - smallest
        outside = apart < 0
        if isinstance(alpha, Tensor):
            outside = outside & steep
        apart = apart.masked_fill(outside, -math.inf)

    def mass(w: Tensor) -> Tensor:
        p = ((beta * w).exp() + apart).relu().pow(root)
        if above_two:  # powers of the anchor's probability may be too small for float64
            p = torch.where(apart == 0, w.exp(), p)
        return p.sum(-1, keepdim=True)

    if not isinstance(root, Tensor) and root in (1, 2):
        level = -_threshold_by_sorting(apart, root)
    else:
        # The logarithm of a positive float64 is above -1024; that of 1 / n is above -32.
        least = -1024.0 if above_two else -32.0
        w = _last(lambda w: mass(w) < 1, torch.zeros_like(below[..., :1]) + least, -least)
        level = (beta * w).exp()
    base = level + apart
    # Up to rounding, a score on the threshold is outside.
    outside = base <= 2.0**-48
    logs = base.relu().log() * root
    if above_two:
        member = apart >= 0
        outside = outside & ~(steep & member if isinstance(alpha, Tensor) else member)
        logs = torch.where(apart == 0, w + torch.zeros_like(apart), logs)
    logs = logs.masked_fill(outside, -math.inf)
    logs = logs - logs.exp().sum(-1, keepdim=True).log()
    if isinstance(alpha, Tensor):
        logs = torch.where(flat, below - below.exp().sum(-1, keepdim=True).log(), logs)
    return logs


def _threshold_by_sorting(apart: Tensor, root: float) -> Tensor:
    """Return the threshold ``(..., 1)`` of sparsemax, or of 1.5-entmax.

    The threshold of the k largest scores alone is the root of a polynomial. Up to the size of the
    support it grows with k, and beyond it is above the k-th score.

    Args:
        apart: as for :func:`_smallest_member`.
        root: 1 for sparsemax, 2 for 1.5-entmax.
    """
    ordered = apart.clamp_min(-2.0).sort(-1, descending=True).values  # below -1, p is 0
    count = torch.ones_like(ordered).cumsum(-1)
    mean = ordered.cumsum(-1) / count
    if root == 1:
        each = mean - 1 / count
    else:
        spread = (ordered * ordered).cumsum(-1) / count - mean * mean
        each = mean - (1 / count - spread).relu().sqrt()
    return each.masked_fill(each > ordered, -math.inf).amax(-1, keepdim=True)


def _smallest_member(apart: Tensor, root: float | Tensor) -> Tensor:
    """Return the smallest score of the support ``(..., 1)``, scaled as ``apart`` is.

    Args:
        apart: scores minus the largest, times alpha - 1.
        root: 1 / (alpha - 1).
    """

    def is_below_threshold(t: Tensor) -> Tensor:
        return (apart - t).relu().pow(root).sum(-1, keepdim=True) >= 1

    # On the threshold itself, or below it, a score is outside.
    threshold = _last(is_below_threshold, torch.zeros_like(apart[..., :1]) - 1.0, 1.0)
    return apart.masked_fill(apart <= threshold, 0.0).amin(-1, keepdim=True)


def _last(holds: Callable[[Tensor], Tensor], low: Tensor, width: float) -> Tensor:
    """Return the last number from ``low`` to ``low + width`` up to which a condition holds."""
    while width > 2.0**-50:
        width /= 2
        further = low + width
        low = torch.where(holds(further), further, low)
    return low


def _zero_with_gradient(scores: Tensor, alpha: float | Tensor, log_p: Tensor, logs: bool) -> Tensor:
    """Return zeros ``(..., n)`` with the derivatives of the result, by `reference.gradients`."""
    fixed = alpha.detach() if isinstance(alpha, Tensor) else alpha
    inside = log_p > -math.inf
    log_p = torch.where(inside, log_p, 0.0)
    step = torch.where(inside, scores - scores.detach(), 0.0).double()
    log_s = torch.where(inside, (2 - fixed) * log_p, -math.inf)
    log_share = torch.log_softmax(log_s, -1)
    step = step - (log_share.exp() * step).sum(-1, keepdim=True)
    # Changes of probabilities add up to 0. That of the largest Jacobian weight is computed so.
    lead = torch.zeros_like(log_s).scatter(-1, log_s.argmax(-1, keepdim=True), 1.0) > 0
    rest = -(torch.where(lead, -math.inf, log_s).exp() * step).sum(-1, keepdim=True)
    scale = (-log_p).exp() if logs else torch.ones_like(log_p)
    slope = torch.where(lead, 0.0, (((1 if logs else 2) - fixed) * log_p).exp())
    change = torch.where(lead, rest * scale, slope * step)
    if isinstance(alpha, Tensor):
        bend = reference._curvature(log_p, fixed)
        total = torch.where(inside, log_p.exp() * bend, 0.0).sum(-1, keepdim=True)
        in_logs = (log_share - log_p).exp() * total - bend
        slope = torch.where(inside, in_logs if logs else log_p.exp() * in_logs, 0.0)
        change = change + slope * (alpha - fixed).double()
    # Infinite derivatives times 0 would be nan.
    return torch.where((change == 0) & inside, change, 0.0)
