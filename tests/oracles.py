"""Slow reference implementations of entmax, its entropy and its losses, from their definitions.

Entmax of scores z is p = [(alpha - 1) (z - tau)]_+ ^ (1 / (alpha - 1)), with the threshold tau for
which p sums to 1.
"""

from decimal import Decimal, localcontext
from functools import cache

import torch
from torch import Tensor

MOST_BISECTIONS = 200  # about 55 halve an interval of length 1 down to a bit of float64


def entmax_oracle(scores: Tensor, alpha: float) -> Tensor:
    """Return entmax of scores ``(..., n)``: Algorithm 1 of Peters, Niculae and Martins (2019).

    With z scaled by alpha - 1 and its maximum at 0, tau is between -1, where the largest score
    alone has probability 1, and -n ** (1 - alpha), where it has the least possible one, 1 / n.
    """
    if alpha == 1:
        return scores.detach().double().softmax(-1)
    z = scores.detach().double()
    z = (alpha - 1) * (z - z.amax(-1, keepdim=True))
    low = torch.full_like(z[..., :1], -1.0)
    high = torch.full_like(low, -(z.shape[-1] ** (1 - alpha)))
    for _ in range(MOST_BISECTIONS):
        tau = (low + high) / 2
        if not ((low < tau) & (tau < high)).any():  # no number of float64 lies between them
            break
        total = (z - tau).clamp_min(0).pow(1 / (alpha - 1)).sum(-1, keepdim=True)
        low, high = torch.where(total < 1, low, tau), torch.where(total < 1, tau, high)
    p = (z - low).clamp_min(0).pow(1 / (alpha - 1))
    return p / p.sum(-1, keepdim=True)


def entmax15_by_sorting(row: Tensor) -> Tensor:
    """Return 1.5-entmax of scores ``(n,)``, exactly: Algorithm 2 of Peters et al. (2019).

    For each size rho of the support, tau follows from the mean and the squared deviation of the
    rho largest scores; the right size is the one whose tau divides the scores there.
    """
    z = row.detach().double() / 2
    ordered = [*z.sort(descending=True).values.tolist(), -float("inf")]
    for rho in range(1, len(ordered)):
        mean = sum(ordered[:rho]) / rho
        deviation = sum((score - mean) ** 2 for score in ordered[:rho])
        tau = mean - (max(1 - deviation, 0) / rho) ** 0.5
        if ordered[rho] <= tau <= ordered[rho - 1]:
            break
    return (z - tau).clamp_min(0).square()


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
    """Return entmax of a row of scores for alpha above 1, computed with 50 decimal digits or more.

    Up to a factor, a score is above tau by p ** (alpha - 1). For a p as small as 1e-17, this power
    is as small as 1e-17 ** (alpha - 1): so alpha - 1 times as many digits are needed.
    """
    digits = int(17 * (alpha - 1)) + 50
    with localcontext() as context:
        context.prec = digits
        beta, z = Decimal(alpha) - 1, [Decimal(score) for score in scores]
        low, high = max(z) - 1 / beta, max(z)
        bisections = int(3.4 * digits) + 20  # a digit has 3.33 bits; some more for the interval
        for _ in range(bisections):
            tau = (low + high) / 2
            total = sum((beta * (x - tau)) ** (1 / beta) for x in z if x > tau)
            low, high = (tau, high) if total >= 1 else (low, tau)
        return [float((beta * (x - low)) ** (1 / beta)) if x > low else 0.0 for x in z]
