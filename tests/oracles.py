"""Reference implementations in float64 or decimals, slow and by definition."""

from decimal import Decimal, localcontext
from functools import cache

import torch
from torch import Tensor


def entmax_oracle(scores: Tensor, alpha: float) -> Tensor:
    """Return entmax of scores ``(..., n)``, by bisection of its defining equation.

    ``sum [beta z - tau]_+ ** (1 / beta) = 1`` (Peters, Niculae and Martins 2019, equation 13).
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
    """Return the Tsallis entropy of distributions ``(..., n)``, by its definition."""
    p = probabilities.double()
    if alpha == 1:
        return -torch.xlogy(p, p).sum(-1)
    return (p - p**alpha).sum(-1) / (alpha * (alpha - 1))


def loss_oracle(scores: Tensor, target: Tensor, alpha: float) -> Tensor:
    """Return losses ``(rows,)`` of scores against distributions, both ``(rows, n)``.

    The Fenchel-Young loss plus the entropy of the target, as in cross-entropy.
    """
    z = scores.detach().double()
    p = entmax_oracle(z, alpha)
    finite = torch.where(p > 0, z, 0.0)
    conjugate = (p * finite).sum(-1) + entropy_oracle(p, alpha)
    weighed = torch.where(target == 0, 0.0, z) * target.double()
    return target.double().sum(-1) * conjugate - weighed.sum(-1)


@cache
def entmax_of_decimals(scores: tuple[float, ...], alpha: float) -> list[float]:
    """Return entmax of a row for alpha above 2, in decimals of enough digits.

    A score depends on its probability p by p ** (alpha - 1), hence the number of digits.
    """
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
