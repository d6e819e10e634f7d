"""Slow, obvious versions of the numerics, in float64, for tests to compare with."""

import torch
from torch import Tensor


def entmax_oracle(scores: Tensor, alpha: float) -> Tensor:
    """Entmax of scores (..., n) along the last dimension, by bisection to convergence.

    The defining equation as it stands: ``sum [beta z - tau]_+ ** (1 / beta) = 1``.
    """
    z = scores.detach().double()
    z = z - z.amax(-1, keepdim=True)
    if alpha == 1:
        exponentials = z.exp()
        return exponentials / exponentials.sum(-1, keepdim=True)
    beta = alpha - 1
    low = torch.full_like(z[..., :1], -1.0)
    high = torch.zeros_like(low)
    for _ in range(200):
        tau = (low + high) / 2
        total = ((beta * z - tau).clamp_min(0) ** (1 / beta)).sum(-1, keepdim=True)
        low, high = torch.where(total >= 1, tau, low), torch.where(total >= 1, high, tau)
    probabilities = (beta * z - low).clamp_min(0) ** (1 / beta)
    return probabilities / probabilities.sum(-1, keepdim=True)


def entropy_oracle(probabilities: Tensor, alpha: float) -> Tensor:
    """Tsallis entropy of float64 distributions (..., n), by its definition."""
    p = probabilities.double()
    if alpha == 1:
        return -torch.xlogy(p, p).sum(-1)
    return (p - p**alpha).sum(-1) / (alpha * (alpha - 1))


def loss_oracle(scores: Tensor, target: Tensor, alpha: float) -> Tensor:
    """Losses (rows,) of scores (rows, n) against distributions (rows, n), by the definition.

    The Fenchel-Young loss plus the entropy of the target, as cross-entropy counts it.
    """
    z = scores.detach().double()
    p = entmax_oracle(z, alpha)
    finite = torch.where(p > 0, z, 0.0)
    conjugate = (p * finite).sum(-1) + entropy_oracle(p, alpha)
    weighed = torch.where(target == 0, 0.0, z) * target.double()
    return target.double().sum(-1) * conjugate - weighed.sum(-1)
