"""Find by bisection the scale of random scores that gives them the support of a trained model."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt


def scale_for_support(
    support_of: Callable[[float], float],
    support: float,
    *,
    smallest: float,
    largest: float,
    halvings: int,
) -> float:
    """Return the factor of scores with which about `support` tokens have a positive probability.

    Larger scores have a smaller support, so the logarithm of the factor can be bisected. If the
    factor is not between `smallest` and `largest`, the nearer of the two is returned, nearly.

    Args:
        support_of: returns the mean support of rows whose scores are multiplied by a factor.
        support: mean number of tokens with a positive probability to reach.
        smallest: a factor that gives a larger support.
        largest: a factor that gives a smaller support.
        halvings: how often to halve the interval between the two, on a logarithmic scale. The
            result is precise up to a factor of (largest / smallest) ** (1 / 2 ** halvings).
    """
    for _ in range(halvings):
        factor = sqrt(smallest * largest)
        if support_of(factor) > support:
            smallest = factor
        else:
            largest = factor
    return sqrt(smallest * largest)
