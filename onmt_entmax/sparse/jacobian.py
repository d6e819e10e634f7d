r"""Derivatives of entmax, written with differentiable operations on the probabilities alone.

The Jacobian in the scores is :math:`\mathrm{diag}(s) - s s^\top / \lVert s \rVert_1` with
:math:`s_i = p_i^{2-\alpha}` on the support and 0 elsewhere (Peters, Niculae and Martins 2019,
Proposition 1). The derivative in alpha is Proposition 1 of Correia, Niculae and Martins (2019),
rearranged so that nothing cancels as alpha nears 1: with :math:`u = p^{\alpha-1}`,
:math:`w = -\log u` and :math:`k = (\log p)^2 (e^w - 1 - w) / w^2`,

.. math:: \partial p_i / \partial\alpha = -p_i k_i + s_i \sum_j p_j k_j / \sum_j s_j .

Since only operations that autograd knows are used, gradients of gradients follow by themselves.
"""

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import has_memory, is_traced
from onmt_entmax.sparse.entropy import tsallis_entropy

_SERIES_BELOW = 0.5
_SERIES_TERMS = 14


def jacobian_weights(probabilities: Tensor, alpha: float | Tensor) -> Tensor:
    """``p ** (2 - alpha)`` on the support, 0 elsewhere; the shape of ``probabilities``."""
    if not isinstance(alpha, Tensor):
        if alpha == 1:
            return probabilities
        if not torch.is_grad_enabled():
            if alpha == 2:
                return (probabilities > 0).to(probabilities.dtype)
            if alpha < 2:
                return probabilities.sqrt() if alpha == 1.5 else probabilities.pow(2 - alpha)
    # Outside the support 1 stands in for 0, whose power (or its derivative) may be infinite.
    support = probabilities > 0
    return torch.where(support, torch.where(support, probabilities, 1.0) ** (2 - alpha), 0.0)


def scores_gradient(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, slope: Tensor | None = None
) -> Tensor:
    """Gradient in the scores, given that in the probabilities; all (..., n).

    Args:
        probabilities: of the scores.
        alpha: a number, or (..., 1).
        gradient: in the probabilities.
        slope: :func:`jacobian_weights` of them, if they are known.
    """
    if _may_be_steep(alpha):
        return _steep_gradient(probabilities, alpha, gradient)
    slope = jacobian_weights(probabilities, alpha) if slope is None else slope
    along = slope * gradient
    return torch.addcmul(along, slope, along.sum(-1, True) / slope.sum(-1, True), value=-1)


def _may_be_steep(alpha: float | Tensor) -> bool:
    """Whether an alpha is above 2; also where a tensor cannot be looked at without waiting."""
    if not isinstance(alpha, Tensor):
        return alpha > 2
    looking = alpha.device.type == "cpu" and has_memory(alpha) and not is_traced()
    return not looking or bool((alpha > 2).any())


def _steep_gradient(probabilities: Tensor, alpha: float | Tensor, gradient: Tensor) -> Tensor:
    """Above alpha 2 the smallest probability has the largest slope, which may be infinite and takes
    nearly all the mean. Its gradient, a difference of next to nothing times that, is what the
    others leave: they all add up to 0."""
    logs = torch.where(probabilities > 0, _logs(probabilities), -torch.inf)
    steepest = _steepest(logs)
    mean = (_shares(logs, alpha) * gradient).sum(-1, True)
    slope = jacobian_weights(torch.where(steepest, 0.0, probabilities), alpha)
    others = slope * (gradient - mean)
    return torch.where(steepest, -others.sum(-1, True), others)


def _steepest(logs: Tensor) -> Tensor:
    """A mask (..., n) with one smallest member of the support of log-probabilities (..., n)."""
    place = torch.where(torch.isneginf(logs), torch.inf, logs).argmin(-1, keepdim=True)
    return torch.zeros_like(logs, dtype=torch.bool).scatter_(-1, place, True)


def _shares(logs: Tensor, alpha: float | Tensor) -> Tensor:
    """The slopes over their sum, of log-probabilities (..., n) with -inf outside the support."""
    return _log_shares(logs, alpha).exp()


def _log_shares(logs: Tensor, alpha: float | Tensor) -> Tensor:
    outside = torch.isneginf(logs)
    exponents = torch.where(outside, -torch.inf, (2 - alpha) * torch.where(outside, 0.0, logs))
    return torch.log_softmax(exponents, -1)


def _second_order(w: Tensor) -> Tensor:
    """``(exp(w) - 1 - w) / w ** 2`` for w >= 0, by its series where the difference would cancel."""
    small = w < _SERIES_BELOW
    near = torch.where(small, w, 0.0)
    series = torch.zeros_like(w)
    for n in range(_SERIES_TERMS, 1, -1):
        series = (series * near + 1.0) / n
    far = torch.where(small, 1.0, w)
    return torch.where(small, series, (torch.expm1(far) - far) / far**2)


def _logs(probabilities: Tensor) -> Tensor:
    """Logarithms on the support; 0 elsewhere, where they are multiplied by 0."""
    return torch.where(probabilities > 0, probabilities, 1.0).log()


def curvature(logs: Tensor, alpha: float | Tensor) -> Tensor:
    """The ``k`` of the module's docstring from log-probabilities: how alpha bends the curve."""
    return logs**2 * _second_order((1 - alpha) * logs)


def alpha_derivative(probabilities: Tensor, alpha: float | Tensor) -> Tensor:
    """Derivative of each probability in its row's alpha; the shape of ``probabilities``."""
    logs = _logs(probabilities)
    bend = probabilities * curvature(logs, alpha)
    shares = _shares(torch.where(probabilities > 0, logs, -torch.inf), alpha)
    return shares * bend.sum(-1, keepdim=True) - bend


def log_scores_gradient(logs: Tensor, alpha: float | Tensor, gradient: Tensor) -> Tensor:
    """Gradient in the scores, given the gradient in the log-probabilities ``logs``; all (..., n).

    ``d log p_i = (d z_i - sum s d z / sum s) / u_i`` on the support; what arrives for an entry
    outside it is not used.
    """
    support = ~torch.isneginf(logs)
    inside = torch.where(support, logs, 0.0)
    shares = _shares(logs, alpha)
    along = torch.where(support, gradient, 0.0) * torch.exp((1 - alpha) * inside)
    if not _may_be_steep(alpha):
        return along - shares * along.sum(-1, keepdim=True)
    # See _steep_gradient: here what the steepest gives to the others is finite as a product.
    steepest = _steepest(logs)
    others = torch.where(steepest, 0.0, along)
    own = torch.where(steepest, torch.where(support, gradient, 0.0), 0.0).sum(-1, keepdim=True)
    least = torch.where(steepest, inside, 0.0).sum(-1, keepdim=True)
    given = own * torch.exp(_log_shares(logs, alpha) + (1 - alpha) * least)
    others = others - shares * others.sum(-1, keepdim=True) - given
    others = torch.where(support & ~steepest, others, 0.0)
    return torch.where(steepest, -others.sum(-1, keepdim=True), others)


def log_alpha_derivative(logs: Tensor, alpha: float | Tensor) -> Tensor:
    """Derivative of each log-probability in its row's alpha, 0 outside the support; (..., n)."""
    support = ~torch.isneginf(logs)
    inside = torch.where(support, logs, 0.0)
    bend = curvature(inside, alpha)
    weighed = (torch.where(support, torch.exp(inside), 0.0) * bend).sum(-1, keepdim=True)
    # Slopes over their sum, and over the probabilities.
    ratio = torch.exp(_log_shares(logs, alpha) - inside)
    return torch.where(support, ratio * weighed - bend, 0.0)


def entropy_alpha_derivative(probabilities: Tensor, alpha: float | Tensor) -> Tensor:
    r"""Derivative in alpha of the Tsallis entropy of fixed probabilities (..., n) -> (..., 1).

    By Danskin's theorem this is also the derivative of the conjugate, hence of the loss.
    """
    logs = _logs(probabilities)
    entropy = tsallis_entropy(probabilities, alpha).unsqueeze(-1)
    bend = probabilities * torch.exp((alpha - 1) * logs) * curvature(logs, alpha)
    return -(entropy + bend.sum(-1, keepdim=True)) / alpha
