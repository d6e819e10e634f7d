"""Output layers that have the support of a trained model without its training."""

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
    """Return a factor of scores with which about `support` tokens have a positive probability.

    Larger scores have a smaller support, so bisection of the factor's logarithm finds it.

    Args:
        support_of: returns the mean support of a row whose scores are multiplied by a factor.
        support: the mean to reach.
        smallest: factor with which the mean support is larger.
        largest: factor with which it is smaller.
        halvings: how often the interval between both is halved.
    """
    for _ in range(halvings):
        factor = sqrt(smallest * largest)
        if support_of(factor) > support:
            smallest = factor
        else:
            largest = factor
    return sqrt(smallest * largest)
