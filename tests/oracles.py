"""Slow, obvious versions of the numerics, in float64, for tests to compare with."""

from decimal import Decimal, localcontext
from functools import cache

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


@cache
def entmax_of_decimals(scores: tuple[float, ...], alpha: float) -> list[float]:
    """Entmax of a row, for an alpha above 2: a probability p moves its score by p ** (alpha - 1),
    so that as many more digits are needed, and slowly had."""
    digits = int(17 * (alpha - 1)) + 10
    with localcontext() as context:
        context.prec = digits
        beta, z = Decimal(alpha) - 1, [Decimal(score) for score in scores]
        low, high = max(z) - 1 / beta, max(z)
        for _ in range(int(3.4 * digits)):
            cut = (low + high) / 2
            total = sum((beta * (x - cut)) ** (1 / beta) for x in z if x > cut)
            low, high = (cut, high) if total >= 1 else (low, cut)
        return [float((beta * (x - low)) ** (1 / beta)) if x > low else 0.0 for x in z]
