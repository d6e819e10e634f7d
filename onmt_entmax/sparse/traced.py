r"""Entmax as a fixed sequence of PyTorch operations, for tracers and for exports to ONNX.

`torch.jit.trace` records the operations of one example, and an ONNX file holds only standard
operations. Both are later run with other scores and lengths. So no value is read from a tensor, no
Python number comes from a shape, and every search takes a fixed number of steps. `mapping.py` calls
:func:`mapping` while PyTorch traces or exports.

As in `solvers`, :math:`\beta = \alpha - 1`, and :math:`z_k` and :math:`p_k` are score and
probability of the anchor, with which

.. math:: p_i = [p_k^\beta + \beta (z_i - z_k)]_+^{1 / \beta}.

=====================  ============================  ===========================
alpha                  anchor                        the anchor's probability
=====================  ============================  ===========================
2, 1.5                 largest score                 formula of sorted scores
other numbers up to 2  largest score                 bisection of its logarithm
numbers above 2        smallest score of the         bisection of its logarithm
                       support, by bisection
one for each row       either, by the row's alpha    bisection of its logarithm
=====================  ============================  ===========================

Everything is computed in float64. Autograd would get wrong derivatives of a bisection, so solutions
are constants for it; traced_gradient.py adds the right derivatives.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from onmt_entmax.sparse.precision import round_on_support, working_type
from onmt_entmax.sparse.recording import is_in_onnx_export
from onmt_entmax.sparse.traced_gradient import zeros_with_gradient

# Below this alpha - 1, entmax equals softmax to 1e-8. It is the root of the machine epsilon: nearer
# to 1, alpha - 1 would have less than half of the digits of a float64.
_SOFTMAX = 2.0**-26
# A score with at most this p ** (alpha - 1) is on the threshold up to rounding, and so outside the
# support: 16 machine epsilons, as in `solvers`.
_ON_THRESHOLD = 2.0**-48
# Lower bounds of the anchor's log-probability, from which it is bisected. The largest probability
# of n scores is at least 1 / n, whose logarithm is above -32 for n up to 2**46. The smallest
# positive float64 is 2**-1074, whose logarithm is -745.
_LEAST_LARGEST = -32.0
_LEAST_SMALLEST = -1024.0
# Differences to the largest score, times alpha - 1, are raised to this, so that sums are finite
# where scores are -inf. Any number below -1 would do: such a score has no probability.
_FAR_BELOW = -2.0
# The width of an interval at which its bisection ends: four machine epsilons.
_LAST_WIDTH = 2.0**-50


def mapping(scores: Tensor, alpha: float | Tensor, logs: bool) -> Tensor:
    """Return probabilities or their logarithms, as `reference.mapping`, with first derivatives.

    Args:
        scores: ``(..., n)`` with n >= 1, any floating-point type.
        alpha: a number above 1, or ``(..., 1)``.
        logs: whether logarithms are returned.

    Returns:
        ``(..., n)``, in float64 for float64 scores, else in float32.
    """
    constant_alpha = alpha.detach() if isinstance(alpha, Tensor) else alpha
    log_p = log_probabilities(scores.detach(), constant_alpha)
    dtype = working_type(scores)
    result = log_p.to(dtype) if logs else round_on_support(log_p.exp(), log_p > -math.inf, dtype)
    if is_in_onnx_export():
        return result
    return result + zeros_with_gradient(scores, alpha, log_p, logs).to(dtype)


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
    exponent = 1 / beta
    differences = below * beta

    def total(log_anchor: Tensor) -> Tensor:
        return ((beta * log_anchor).exp() + differences).relu().pow(exponent).sum(-1, keepdim=True)

    if exponent in (1, 2):
        anchor_power = -_threshold_by_sorting(differences, exponent)
    else:
        anchor_power = (beta * _log_anchor(total, differences, _LEAST_LARGEST)).exp()
    powers = anchor_power + differences
    logs = powers.relu().log() * exponent
    return _normalised(logs.masked_fill(powers <= _ON_THRESHOLD, -math.inf))


def _above_two(below: Tensor, beta: float) -> Tensor:
    """Return log-probabilities ``(..., n)`` for one alpha above 2; arguments as `_up_to_two`."""
    exponent = 1 / beta
    differences = below * beta
    differences = differences - _smallest_member(differences, exponent)
    differences = differences.masked_fill(differences < 0, -math.inf)
    return _from_anchor(differences, beta, exponent, differences >= 0)


def _by_rows(below: Tensor, beta: Tensor) -> Tensor:
    """Return log-probabilities ``(..., n)`` where each row has its own alpha.

    A graph has no branches. So every row gets a smallest member of the support and a softmax. The
    former is used if the row's alpha is above 2, the latter if it is 1.

    Args:
        below: differences to the largest score, ``(..., n)``.
        beta: alpha - 1, ``(..., 1)``.
    """
    is_softmax = beta < _SOFTMAX
    # Another alpha stands in for rows of softmax, which are replaced at the end.
    beta = torch.where(is_softmax, torch.ones_like(beta), beta)
    is_above_two = beta > 1
    exponent = 1 / beta
    differences = below * beta
    smallest = _smallest_member(differences, exponent)
    differences = differences - torch.where(is_above_two, smallest, torch.zeros_like(smallest))
    differences = differences.masked_fill((differences < 0) & is_above_two, -math.inf)
    logs = _from_anchor(differences, beta, exponent, is_above_two & (differences >= 0))
    return torch.where(is_softmax, below - below.exp().sum(-1, keepdim=True).log(), logs)


def _from_anchor(
    differences: Tensor, beta: float | Tensor, exponent: float | Tensor, members: Tensor
) -> Tensor:
    """Return log-probabilities ``(..., n)``, where the anchor may be the smallest member.

    The anchor's probability may be so small that its power of beta is 0 in float64. So the
    log-probability of the anchor, and of scores that equal it, is not computed from the power.

    Args:
        differences: scores minus the anchor's, times beta, ``(..., n)``.
        beta: alpha - 1, a number or ``(..., 1)``.
        exponent: 1 / beta.
        members: marks scores that are in the support even if rounding puts them on the threshold,
            ``(..., n)``.
    """

    is_anchor = differences == 0

    def total(log_anchor: Tensor) -> Tensor:
        p = ((beta * log_anchor).exp() + differences).relu().pow(exponent)
        return torch.where(is_anchor, log_anchor.exp(), p).sum(-1, keepdim=True)

    log_anchor = _log_anchor(total, differences, _LEAST_SMALLEST)
    powers = (beta * log_anchor).exp() + differences
    logs = powers.relu().log() * exponent
    logs = torch.where(is_anchor, log_anchor + torch.zeros_like(differences), logs)
    outside = (powers <= _ON_THRESHOLD) & ~members
    return _normalised(logs.masked_fill(outside, -math.inf))


def _normalised(logs: Tensor) -> Tensor:
    """Return log-probabilities ``(..., n)`` whose probabilities sum to 1, from a sum near 1."""
    return logs - logs.exp().sum(-1, keepdim=True).log()


def _threshold_by_sorting(differences: Tensor, exponent: float) -> Tensor:
    """Return the threshold ``(..., 1)`` of sparsemax, or of 1.5-entmax.

    For the k largest scores alone, the threshold is the root of a polynomial. It grows with k up to
    the size of the support. For larger k it is above the k-th score, which shows that k is too
    large. (Martins and Astudillo 2016, Algorithm 1; Peters, Niculae and Martins 2019, Algorithm 2.)

    Args:
        differences: scores minus the largest, times alpha - 1, ``(..., n)``.
        exponent: 1 / (alpha - 1): 1 for sparsemax, 2 for 1.5-entmax.
    """
    ordered = differences.clamp_min(_FAR_BELOW).sort(-1, descending=True).values
    count = torch.ones_like(ordered).cumsum(-1)
    mean = ordered.cumsum(-1) / count
    if exponent == 1:
        thresholds = mean - 1 / count
    else:
        spread = (ordered * ordered).cumsum(-1) / count - mean * mean
        thresholds = mean - (1 / count - spread).relu().sqrt()
    return thresholds.masked_fill(thresholds > ordered, -math.inf).amax(-1, keepdim=True)


def _smallest_member(differences: Tensor, exponent: float | Tensor) -> Tensor:
    """Return the smallest score of the support ``(..., 1)``, scaled as ``differences`` are.

    Args:
        differences: scores minus the largest, times alpha - 1, ``(..., n)``.
        exponent: 1 / (alpha - 1), a number or ``(..., 1)``.
    """

    def is_below_threshold(t: Tensor) -> Tensor:
        return (differences - t).relu().pow(exponent).sum(-1, keepdim=True) >= 1

    # The threshold is between -1 and 0: the largest score, 0 here, has a probability of at most 1.
    start = torch.zeros_like(differences[..., :1]) - 1.0
    threshold = _bisected(is_below_threshold, start, 1.0)
    # On the threshold itself, or below it, a score is outside.
    return differences.masked_fill(differences <= threshold, 0.0).amin(-1, keepdim=True)


def _log_anchor(total: Callable[[Tensor], Tensor], differences: Tensor, lowest: float) -> Tensor:
    """Return the log-probability of the anchor ``(..., 1)``, with which probabilities add up to 1.

    Args:
        total: returns the sum of the probabilities ``(..., 1)`` for a log-probability of the anchor
            ``(..., 1)``, with which it grows.
        differences: gives the shape, ``(..., n)``.
        lowest: a lower bound of the log-probability.
    """
    start = torch.zeros_like(differences[..., :1]) + lowest
    return _bisected(lambda log_anchor: total(log_anchor) < 1, start, -lowest)


def _bisected(condition: Callable[[Tensor], Tensor], low: Tensor, width: float) -> Tensor:
    """Return the last number from ``low`` to ``low + width`` up to which a condition holds.

    Args:
        condition: takes numbers ``(..., 1)``, and returns for each whether it holds. It must hold
            up to some number, and not beyond.
        low: ``(..., 1)``.
        width: width of the interval.
    """
    while width > _LAST_WIDTH:
        width /= 2
        middle = low + width
        low = torch.where(condition(middle), middle, low)
    return low
