r"""The derivatives of entmax and of its conjugate, in float64 by PyTorch's operations.

All of them can be differentiated again. `reference` computes gradients with them; `traced_gradient`
and `row_losses` use parts.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.sparse.entropy import tsallis_entropy

# Below this w, the quotient in `curvature` would lose digits, and a series replaces it. Its last
# term is w**12 / 14!. The next one, w**13 / 15!, is at most 2e-16 of the first term, 1 / 2.
_SERIES_BOUND, _SERIES_LAST_DIVISOR = 0.5, 14


class JacobianWeights(NamedTuple):
    r"""The Jacobian weights :math:`s_i = p_i^{2-\alpha}` of rows, whose logarithms are finite.

    A weight itself may be infinite, above alpha 2 where a probability is near 0.

    Attributes:
        log_s: their logarithms ``(..., n)``, -inf outside the support.
        log_shares: logarithms of the shares :math:`s_i / \lVert s \rVert_1`, ``(..., n)``.
        is_largest: marks the largest weight of each row, ``(..., n)``.
    """

    log_s: Tensor
    log_shares: Tensor
    is_largest: Tensor

    def but_the_largest(self) -> Tensor:
        """Return the weights ``(..., n)``, with 0 for the largest of each row."""
        return torch.where(self.is_largest, -math.inf, self.log_s).exp()


def jacobian_weights(log_p: Tensor, inside: Tensor, alpha: float | Tensor) -> JacobianWeights:
    """Return the Jacobian weights of rows, which `JacobianWeights` defines.

    Args:
        log_p: log-probabilities ``(..., n)``, finite everywhere.
        inside: the support, ``(..., n)``.
        alpha: a number, or ``(..., 1)``.
    """
    log_s = torch.where(inside, (2 - alpha) * log_p, -math.inf)
    largest = log_s.argmax(-1, keepdim=True)
    # Numbers are scattered, not booleans, whose type `torch.jit.trace` loses.
    is_largest = torch.zeros_like(log_s).scatter(-1, largest, 1.0) > 0
    return JacobianWeights(log_s, torch.log_softmax(log_s, -1), is_largest)


def gradients(
    result: Tensor,
    alpha: float | Tensor,
    gradient: Tensor,
    wants_alpha: bool = False,
    logs: bool = False,
) -> tuple[Tensor, Tensor | None]:
    r"""Return the gradients with respect to the scores and to alpha, in float64.

    With Jacobian weights :math:`s_i = p_i^{2-\alpha}` on the support, the Jacobian with respect to
    the scores is :math:`\mathrm{diag}(s) - s s^\top / \lVert s \rVert_1` (Peters, Niculae and
    Martins 2019, Proposition 1). The derivative with respect to alpha is Proposition 1 of Correia,
    Niculae and Martins (2019), rearranged so that nothing cancels as alpha nears 1: with
    :math:`k_i` of :func:`curvature`,

    .. math:: \partial \log p_i / \partial\alpha
              = -k_i + p_i^{1-\alpha} \sum_j p_j k_j / \lVert s \rVert_1 .

    The code has three more symbols:

    - :math:`g_i`, the upstream gradient with respect to the probability :math:`p_i`,
    - :math:`h_i = p_i g_i`, the upstream gradient with respect to :math:`\log p_i`,
    - :math:`m = \sum_i s_i g_i / \lVert s \rVert_1`, the mean of g, weighted by s.

    Args:
        result: probabilities ``(..., n)``, or with ``logs`` their logarithms.
        alpha: a number, or ``(..., 1)``.
        gradient: upstream gradient with respect to the result, ``(..., n)``: g, or with ``logs`` h.
            It is ignored outside the support.
        wants_alpha: whether to compute the gradient with respect to alpha.
        logs: whether the result is logarithms of probabilities.

    Returns:
        The gradients with respect to the scores, ``(..., n)``, and to the alpha of each row,
        ``(..., 1)``; the latter is None unless it is wanted.
    """
    result, gradient = result.double(), gradient.double()
    inside = result > (-math.inf if logs else 0)
    gradient = torch.where(inside, gradient, 0.0)
    if logs:
        log_p = torch.where(inside, result, 0.0)
        h = gradient
    else:
        log_p = torch.where(inside, result, 1.0).log()
        h = gradient * result
    weights = jacobian_weights(log_p, inside, alpha)
    s = weights.but_the_largest()
    # m is the sum of h_i (s_i / ||s||) / p_i. Shares and probabilities are divided as logarithms,
    # since s may be infinite.
    mean = (h * (weights.log_shares - log_p).exp()).sum(-1, keepdim=True)
    # The gradient with respect to a score is s_i (g_i - m). These add up to 0 in a row, so the one
    # with the largest weight, which may be infinite, is minus the sum of the others.
    if logs:
        # s_i g_i = h_i s_i / p_i, where g_i itself might be infinite.
        s_over_p = ((1 - alpha) * log_p).exp()
        others = torch.where(weights.is_largest, 0.0, h * s_over_p) - s * mean
    else:
        others = s * (gradient - mean)
    grad_scores = torch.where(weights.is_largest, -others.sum(-1, keepdim=True), others)
    grad_scores = torch.where(gradient.isnan().any(-1, keepdim=True), math.nan, grad_scores)
    return grad_scores, _alpha_gradient(log_p, inside, alpha, h, mean) if wants_alpha else None


def _alpha_gradient(
    log_p: Tensor, inside: Tensor, alpha: float | Tensor, h: Tensor, mean: Tensor
) -> Tensor:
    r"""Return the gradient with respect to alpha, :math:`m \sum_j p_j k_j - \sum_i h_i k_i`.

    :func:`gradients` explains the symbols. With :math:`\beta = \alpha - 1`, the definition of k is
    :math:`(p_i^{-\beta} - 1 + \beta \log p_i) / \beta^2`. Its first summand is a multiple of
    :math:`p_i^{1-\alpha}`, and such multiples add nothing to the gradient, since
    :math:`\sum_j p_j p_j^{1-\alpha} = \lVert s \rVert_1` and
    :math:`\sum_i h_i p_i^{1-\alpha} = m \lVert s \rVert_1`. Above alpha 2, where it may be huge, it
    is left out; below, it stays, since the rest alone is infinite at alpha 1.

    Args:
        log_p: ``(..., n)``, 0 outside the support.
        inside: the support, ``(..., n)``.
        alpha: a number, or ``(..., 1)``.
        h: the upstream gradient with respect to log p, ``(..., n)``.
        mean: m, ``(..., 1)``.

    Returns:
        ``(..., 1)``.
    """
    beta = torch.as_tensor(alpha, dtype=torch.float64, device=log_p.device) - 1
    # Each formula gets only betas of its own range: elsewhere it may be infinite, and autograd
    # would multiply that by a gradient of 0.
    up_to_two = curvature(log_p, beta.clamp_max(1) + 1)
    above_two = (beta * log_p - 1) / beta.clamp_min(1) ** 2
    k = torch.where(beta > 1, above_two, up_to_two)
    total = torch.where(inside, log_p.exp() * k, 0.0).sum(-1, keepdim=True)
    return mean * total - (h * k).sum(-1, keepdim=True)


def curvature(log_p: Tensor, alpha: float | Tensor) -> Tensor:
    r"""Return :math:`k = (\log p)^2 (e^w - 1 - w) / w^2`, :math:`w = (1 - \alpha) \log p`.

    The limit at alpha 1, where w is 0, is :math:`(\log p)^2 / 2`.

    Args:
        log_p: finite log-probabilities, ``(..., n)``.
        alpha: a number, or ``(..., 1)``.
    """
    w = (1 - alpha) * log_p  # at least 0
    small = w < _SERIES_BOUND
    near, far = torch.where(small, w, 0.0), torch.where(small, 1.0, w)
    # (e^w - 1 - w) / w^2 = 1/2! + w/3! + w^2/4! + ... = 1/2 (1 + w/3 (1 + w/4 (1 + ...)))
    series = torch.zeros_like(w)
    for divisor in range(_SERIES_LAST_DIVISOR, 1, -1):
        series = (series * near + 1.0) / divisor
    return log_p**2 * torch.where(small, series, (torch.expm1(far) - far) / far**2)


def conjugate_alpha_derivative(probabilities: Tensor, alpha: Tensor) -> Tensor:
    """Return the derivative of each row's conjugate with respect to its alpha, ``(rows, 1)``.

    By Danskin's theorem, it equals the derivative of the Tsallis entropy at fixed probabilities.

    Args:
        probabilities: ``(rows, n)``.
        alpha: ``(rows, 1)``.
    """
    p, alpha = probabilities.double(), alpha.double()
    log_p = torch.where(p > 0, p, 1.0).log()
    bend = p * torch.exp((alpha - 1) * log_p) * curvature(log_p, alpha)
    return -(tsallis_entropy(p, alpha).unsqueeze(-1) + bend.sum(-1, keepdim=True)) / alpha
