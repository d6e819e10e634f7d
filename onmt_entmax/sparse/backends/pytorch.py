"""The reference backend: entmax in PyTorch operations, for every device, alpha and tensor."""

import torch
from torch import Tensor

from onmt_entmax.sparse import jacobian
from onmt_entmax.sparse.arguments import has_memory
from onmt_entmax.sparse.conjugate import CACHED, conjugate, row_groups, write_probabilities
from onmt_entmax.sparse.solvers import (
    checked_softmax,
    has_power_form,
    power,
    rounded,
    solve_log,
    solve_power,
    upcast_half,
)

__all__ = [
    "conjugate",
    "log_probabilities",
    "log_scores_gradient",
    "probabilities",
    "scores_gradient",
    "write_probabilities",
]

writes_in_one_pass = False
log_scores_gradient = jacobian.log_scores_gradient


def probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Return entmax of scores; see `Backend.probabilities`."""
    scores = upcast_half(scores)
    if not isinstance(alpha, Tensor):
        if has_power_form(alpha):
            margin = solve_power(scores, alpha).margin
            return rounded(power(margin, alpha - 1), margin > 0, scores.dtype)
        if alpha == 1:
            return checked_softmax(torch.softmax(scores, -1), scores)
    logs = solve_log(scores, alpha).log_probabilities
    return rounded(logs.exp(), logs > -torch.inf, scores.dtype)


def log_probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Return the logarithm of entmax; see `Backend.log_probabilities`."""
    scores = upcast_half(scores)
    if not isinstance(alpha, Tensor):
        if has_power_form(alpha):
            margin = solve_power(scores, alpha).margin
            return margin.mul_(alpha - 1).log_().div_(alpha - 1).to(scores.dtype)
        if alpha == 1:
            return checked_softmax(torch.log_softmax(scores, -1), scores)
    return solve_log(scores, alpha).log_probabilities.to(scores.dtype)


def scores_gradient(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the gradient in the scores; see `Backend.scores_gradient`."""
    n = probabilities.shape[-1]
    few = probabilities.numel() <= CACHED or probabilities.device.type != "cpu"
    if few or isinstance(alpha, Tensor) or not has_memory(gradient):
        return jacobian.scores_gradient(probabilities, alpha, gradient).to(dtype)
    # On a CPU, group by group of rows in the cache.
    rows, gradients = probabilities.reshape(-1, n), gradient.reshape(-1, n)
    result = torch.empty_like(rows, dtype=dtype)
    for first, last in row_groups(0, len(rows), n, CACHED):
        group = slice(first, last)
        result[group] = jacobian.scores_gradient(rows[group], alpha, gradients[group])
    return result.view(probabilities.shape)
