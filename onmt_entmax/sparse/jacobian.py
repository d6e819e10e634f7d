r"""Derivatives of entmax and its conjugate, from probabilities and by differentiable operations.

With Jacobian weights :math:`s_i = p_i^{2-\alpha}` on the support and 0 elsewhere, the Jacobian in
the scores is :math:`\mathrm{diag}(s) - s s^\top / \lVert s \rVert_1` (Peters, Niculae and Martins
2019, Proposition 1). The derivative in alpha is Proposition 1 of Correia, Niculae and Martins
(2019), rearranged so that nothing cancels as alpha nears 1: with :math:`u = p^{\alpha-1}`,
:math:`w = -\log u` and :math:`k = (\log p)^2 (e^w - 1 - w) / w^2`,

.. math:: \partial p_i / \partial\alpha = -p_i k_i + s_i \sum_j p_j k_j / \sum_j s_j .

Autograd differentiates these operations again for second derivatives.
"""

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import is_readable
from onmt_entmax.sparse.candidates import nonzero
from onmt_entmax.sparse.conjugate import Entries
from onmt_entmax.sparse.entropy import tsallis_entropy

_SERIES_BELOW = 0.5
_SERIES_TERMS = 14


def jacobian_weights(probabilities: Tensor, alpha: float | Tensor) -> Tensor:
    """Return ``p ** (2 - alpha)`` on the support and 0 elsewhere, in the shape of ``p``.

    Args:
        probabilities: ``(..., n)``.
        alpha: a number, or ``(..., 1)``.
    """
    if not isinstance(alpha, Tensor):
        if alpha == 1:
            return probabilities
        if not torch.is_grad_enabled():
            if alpha == 2:
                return (probabilities > 0).to(probabilities.dtype)
            if alpha < 2:
                return probabilities.sqrt() if alpha == 1.5 else probabilities.pow(2 - alpha)
    # 1 stands in for 0, whose power or derivative may be infinite.
    support = probabilities > 0
    return torch.where(support, torch.where(support, probabilities, 1.0) ** (2 - alpha), 0.0)


def scores_gradient(probabilities: Tensor, alpha: float | Tensor, gradient: Tensor) -> Tensor:
    """Return the gradient in the scores, given the gradient in the probabilities.

    Args:
        probabilities: ``(..., n)``.
        alpha: a number, or ``(..., 1)``.
        gradient: in the probabilities, ``(..., n)``.

    Returns:
        ``(..., n)``.
    """
    if may_exceed_two(alpha):
        return _gradient_above_two(probabilities, alpha, gradient)
    weights = jacobian_weights(probabilities, alpha)
    weighted = weights * gradient
    mean = weighted.sum(-1, True) / weights.sum(-1, True)
    return torch.addcmul(weighted, weights, mean, value=-1)


def may_exceed_two(alpha: float | Tensor) -> bool:
    """Return whether an alpha is above 2, or cannot be read."""
    if not isinstance(alpha, Tensor):
        return alpha > 2
    return not is_readable(alpha) or bool((alpha > 2).any())


def _gradient_above_two(probabilities: Tensor, alpha: float | Tensor, gradient: Tensor) -> Tensor:
    """Return :func:`scores_gradient` where alpha may exceed 2; rows of any alpha are right.

    There the smallest probability has the largest weight, possibly infinite, and its own gradient
    would be that weight times a difference near 0. Gradients add up to 0, so it is computed as
    minus the sum of the others.
    """
    logs = torch.where(probabilities > 0, _logs(probabilities), -torch.inf)
    smallest = _smallest_member(logs)
    mean = (_normalized_weights(logs, alpha) * gradient).sum(-1, True)
    weights = jacobian_weights(torch.where(smallest, 0.0, probabilities), alpha)
    others = weights * (gradient - mean)
    return torch.where(smallest, -others.sum(-1, True), others)


def entries_gradient(entries: Entries, alpha: float, gradient: Tensor, shape: torch.Size) -> Tensor:
    """Return the gradient in the scores, given the gradient in the entries of sparse rows.

    Args:
        entries: the support of rows of scores.
        alpha: a number.
        gradient: in the entries, ``(entries,)``.
        shape: of the scores and the result, ``(rows, n)``.
    """
    if alpha > 2:
        return _entries_gradient_above_two(entries, alpha, gradient, shape)
    weights = jacobian_weights(entries.probability, alpha)
    weighted = weights * gradient
    sums = gradient.new_zeros(2, shape[0])
    sums = sums.index_add(1, entries.row, torch.stack([weighted, weights]))
    mean = (sums[0] / sums[1].clamp_min(torch.finfo(weights.dtype).tiny))[entries.row]
    whole = gradient.new_zeros(shape.numel())
    return whole.scatter_(0, entries.position, weighted - weights * mean).view(shape)


def _entries_gradient_above_two(
    entries: Entries, alpha: float, gradient: Tensor, shape: torch.Size
) -> Tensor:
    """Return :func:`entries_gradient` for alpha > 2, through the whole rows that have entries."""
    rows, of_entry = entries.row.unique(return_inverse=True)
    place = entries.position + (of_entry - entries.row) * shape[1]

    def spread(values: Tensor) -> Tensor:
        return values.new_zeros(len(rows) * shape[1]).scatter(0, place, values).view(-1, shape[1])

    of_rows = scores_gradient(spread(entries.probability), alpha, spread(gradient))
    return gradient.new_zeros(shape).index_copy(0, rows, of_rows)


def _smallest_member(logs: Tensor) -> Tensor:
    """Return a mask ``(..., n)`` of one smallest member of the support in each row."""
    place = torch.where(torch.isneginf(logs), torch.inf, logs).argmin(-1, keepdim=True)
    return torch.zeros_like(logs, dtype=torch.bool).scatter_(-1, place, True)


def _normalized_weights(logs: Tensor, alpha: float | Tensor) -> Tensor:
    """Return Jacobian weights that sum to 1, of log-probabilities ``(..., n)``."""
    return _log_normalized_weights(logs, alpha).exp()


def _log_normalized_weights(logs: Tensor, alpha: float | Tensor) -> Tensor:
    outside = torch.isneginf(logs)
    exponents = torch.where(outside, -torch.inf, (2 - alpha) * torch.where(outside, 0.0, logs))
    return torch.log_softmax(exponents, -1)


def _second_order(w: Tensor) -> Tensor:
    """Return ``(exp(w) - 1 - w) / w ** 2`` for w >= 0, by its series near 0."""
    small = w < _SERIES_BELOW
    near = torch.where(small, w, 0.0)
    series = torch.zeros_like(w)
    for n in range(_SERIES_TERMS, 1, -1):
        series = (series * near + 1.0) / n
    far = torch.where(small, 1.0, w)
    return torch.where(small, series, (torch.expm1(far) - far) / far**2)


def _logs(probabilities: Tensor) -> Tensor:
    """Return logarithms on the support and 0 elsewhere, where a factor of 0 follows."""
    return torch.where(probabilities > 0, probabilities, 1.0).log()


def _curvature(logs: Tensor, alpha: float | Tensor) -> Tensor:
    """Return the ``k`` of the module's docstring, from log-probabilities."""
    return logs**2 * _second_order((1 - alpha) * logs)


def alpha_derivative(probabilities: Tensor, alpha: float | Tensor) -> Tensor:
    """Return the derivative of each probability ``(..., n)`` in its row's alpha."""
    logs = _logs(probabilities)
    bend = probabilities * _curvature(logs, alpha)
    weights = _normalized_weights(torch.where(probabilities > 0, logs, -torch.inf), alpha)
    return weights * bend.sum(-1, keepdim=True) - bend


def log_scores_gradient(logs: Tensor, alpha: float | Tensor, gradient: Tensor) -> Tensor:
    """Return the gradient in the scores, given the gradient in the log-probabilities.

    On the support ``d log p_i = (d z_i - sum s d z / sum s) / u_i``.

    Args:
        logs: log-probabilities ``(..., n)``, -inf outside the support.
        alpha: a number, or ``(..., 1)``.
        gradient: ``(..., n)``; ignored outside the support.
    """
    support = ~torch.isneginf(logs)
    inside = torch.where(support, logs, 0.0)
    weights = _normalized_weights(logs, alpha)
    weighted = torch.where(support, gradient, 0.0) * torch.exp((1 - alpha) * inside)
    if not may_exceed_two(alpha):
        return weighted - weights * weighted.sum(-1, keepdim=True)
    # As in _gradient_above_two; what the smallest member adds to the others is finite as a product.
    smallest = _smallest_member(logs)
    others = torch.where(smallest, 0.0, weighted)
    own = torch.where(smallest, torch.where(support, gradient, 0.0), 0.0).sum(-1, keepdim=True)
    least = torch.where(smallest, inside, 0.0).sum(-1, keepdim=True)
    from_smallest = own * torch.exp(_log_normalized_weights(logs, alpha) + (1 - alpha) * least)
    others = others - weights * others.sum(-1, keepdim=True) - from_smallest
    others = torch.where(support & ~smallest, others, 0.0)
    return torch.where(smallest, -others.sum(-1, keepdim=True), others)


def log_alpha_derivative(logs: Tensor, alpha: float | Tensor) -> Tensor:
    """Return the derivative of log-probabilities ``(..., n)`` in alpha; 0 outside the support."""
    support = ~torch.isneginf(logs)
    inside = torch.where(support, logs, 0.0)
    bend = _curvature(inside, alpha)
    mean = (torch.where(support, torch.exp(inside), 0.0) * bend).sum(-1, keepdim=True)
    ratio = torch.exp(_log_normalized_weights(logs, alpha) - inside)
    return torch.where(support, ratio * mean - bend, 0.0)


def entropy_alpha_derivative(probabilities: Tensor, alpha: Tensor) -> Tensor:
    """Return the derivative in alpha of the Tsallis entropy of fixed probabilities.

    By Danskin's theorem it is also the derivative of the conjugate, hence of the loss.

    Args:
        probabilities: ``(rows, n)``.
        alpha: ``(rows, 1)``.

    Returns:
        ``(rows, 1)``.
    """
    support = probabilities > 0
    # On a GPU, counting would wait.
    if not is_readable(probabilities) or 4 * int(support.count_nonzero()) > support.numel():
        return _entropy_alpha_derivative(probabilities, alpha)
    # The derivative is a sum over the support: its entries are rows of one number.
    position = nonzero(support)
    row = position // probabilities.shape[1]
    entries = probabilities.flatten()[position].unsqueeze(1)
    shares = _entropy_alpha_derivative(entries, alpha[row])
    return torch.zeros_like(probabilities[:, :1]).index_add(0, row, shares)


def _entropy_alpha_derivative(probabilities: Tensor, alpha: Tensor) -> Tensor:
    """Return the same, computed from all numbers."""
    logs = _logs(probabilities)
    entropy = tsallis_entropy(probabilities, alpha).unsqueeze(-1)
    bend = probabilities * torch.exp((alpha - 1) * logs) * _curvature(logs, alpha)
    return -(entropy + bend.sum(-1, keepdim=True)) / alpha
