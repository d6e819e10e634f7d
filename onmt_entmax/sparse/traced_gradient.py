r"""The derivatives of a traced mapping, as zeros that are added to its result.

Autograd cannot differentiate the bisections that find the result, and a trace has only operations
of PyTorch, so the derivatives are added as a term. `scores - scores.detach()` is 0 and has the
derivative 1: autograd takes it for a small change of the scores. A sum of such changes times
constants is 0, too, and autograd finds these constants as its derivatives. They are those of
`derivatives.gradients`, written as changes of the result instead of gradients in the arguments.
"""

import math

import torch
from torch import Tensor

from onmt_entmax.sparse import derivatives


def zeros_with_gradient(scores: Tensor, alpha: float | Tensor, log_p: Tensor, logs: bool) -> Tensor:
    r"""Return zeros ``(..., n)`` with the derivatives of the result.

    On the support, with Jacobian weights :math:`s_i = p_i^{2 - \alpha}` and their shares
    :math:`s_i / \lVert s \rVert_1`, a change dz of the scores changes the result by

    .. math:: dp_i = s_i (dz_i - \sum_j \tfrac{s_j}{\lVert s \rVert_1} dz_j)
              \quad\text{and}\quad d \log p_i = dp_i / p_i .

    Args:
        scores: ``(..., n)``.
        alpha: a number, or ``(..., 1)``.
        log_p: log-probabilities ``(..., n)``, without a graph.
        logs: whether the result is logarithms.
    """
    constant_alpha = alpha.detach() if isinstance(alpha, Tensor) else alpha
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
    # An infinite derivative times a change of 0 is nan. It is replaced, so that the value, which is
    # added to the result, stays exactly 0.
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
