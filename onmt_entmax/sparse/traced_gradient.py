r"""The derivatives of a traced mapping, as zeros that are added to its result.

Autograd cannot differentiate the bisections that find the result, and a trace can only hold
operations of PyTorch. So a term is added that has the value 0 and the right derivatives. It is made
of `scores - scores.detach()`, which is 0 and has the derivative 1. A sum of these zeros times
constants has the value 0, and its derivatives are the constants.

`derivatives.gradients` has the same formulas. It goes backwards, from an upstream gradient to the
gradients with respect to the arguments; here they go forwards, from changes of the arguments to a
change of the result. Both give a gradient that is not finite where a derivative overflows float64.
"""

import math

import torch
from torch import Tensor

from onmt_entmax.sparse.derivatives import JacobianWeights, curvature, jacobian_weights


def zeros_with_gradient(scores: Tensor, alpha: float | Tensor, log_p: Tensor, logs: bool) -> Tensor:
    r"""Return zeros ``(..., n)`` that have the derivatives of the mapping for autograd.

    On the support, with Jacobian weights :math:`s_i = p_i^{2 - \alpha}` and their shares
    :math:`s_i / \lVert s \rVert_1`, a change dz of the scores changes the result by

    .. math:: dp_i = s_i (dz_i - \sum_j \tfrac{s_j}{\lVert s \rVert_1} dz_j)
              \quad\text{and}\quad d \log p_i = dp_i / p_i .

    Args:
        scores: ``(..., n)``.
        alpha: a number, or ``(..., 1)``.
        log_p: log-probabilities ``(..., n)`` without a graph, -inf outside the support.
        logs: whether the result is logarithms, or else probabilities.
    """
    constant_alpha = alpha.detach() if isinstance(alpha, Tensor) else alpha
    inside = log_p > -math.inf
    log_p = torch.where(inside, log_p, 0.0)
    weights = jacobian_weights(log_p, inside, constant_alpha)
    dz = torch.where(inside, scores - scores.detach(), 0.0).double()
    change = _change_by_scores(dz, weights, constant_alpha, log_p, logs)
    if isinstance(alpha, Tensor):
        slopes = _alpha_derivatives(constant_alpha, log_p, weights.log_shares, inside, logs)
        change = change + slopes * (alpha - constant_alpha).double()
    # Where a derivative is infinite, it turns the change, which is 0, into nan. The value must stay
    # 0.
    return torch.where((change == 0) & inside, change, 0.0)


def _change_by_scores(
    dz: Tensor, weights: JacobianWeights, alpha: float | Tensor, log_p: Tensor, logs: bool
) -> Tensor:
    """Return the change of the result ``(..., n)`` by a change of the scores.

    `zeros_with_gradient` has the formula.

    Args:
        dz: the change of the scores ``(..., n)``, 0 outside the support.
        weights: the Jacobian weights of the rows.
        alpha: a number, or ``(..., 1)``, without a graph.
        log_p: log-probabilities ``(..., n)``, 0 outside the support.
        logs: whether the result is logarithms.
    """
    s, is_largest = weights.but_the_largest(), weights.is_largest
    centred = dz - (weights.log_shares.exp() * dz).sum(-1, keepdim=True)
    # Changes of probabilities add up to 0. So the one with the largest weight, which may be
    # infinite, is minus the sum of the others.
    dp_of_largest = -(s * centred).sum(-1, keepdim=True)
    if not logs:
        return torch.where(is_largest, dp_of_largest, s * centred)
    # Factors that are not used are replaced by finite ones: autograd multiplies them by a gradient
    # of 0, and an infinite one would make it nan.
    over_p = torch.where(is_largest, -log_p, 0.0).exp()
    s_over_p = torch.where(is_largest, -math.inf, (1 - alpha) * log_p).exp()
    return torch.where(is_largest, dp_of_largest * over_p, s_over_p * centred)


def _alpha_derivatives(
    alpha: float | Tensor, log_p: Tensor, log_shares: Tensor, inside: Tensor, logs: bool
) -> Tensor:
    r"""Return the derivatives of the result with respect to alpha, ``(..., n)``.

    They are 0 outside the support. With k of `derivatives.curvature`, those of logarithms are

    .. math:: \partial \log p_i / \partial \alpha
              = p_i^{1 - \alpha} \sum_j p_j k_j / \lVert s \rVert_1 - k_i .

    Args:
        alpha: a number or ``(..., 1)``, without a graph.
        log_p: log-probabilities ``(..., n)``, 0 outside the support.
        log_shares: logarithms of the shares of the Jacobian weights, ``(..., n)``.
        inside: the support, ``(..., n)``.
        logs: whether the result is logarithms.
    """
    k = curvature(log_p, alpha)
    total = torch.where(inside, log_p.exp() * k, 0.0).sum(-1, keepdim=True)
    slopes = (log_shares - log_p).exp() * total - k
    return torch.where(inside, slopes if logs else log_p.exp() * slopes, 0.0)
