"""Means with standard deviations, as tables show them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev


def spread(values: Sequence[float]) -> str:
    """Return the mean, with the standard deviation of several values."""
    if not values:
        return "-"
    deviation = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
    return f"{mean(values):.2f}{deviation}"
