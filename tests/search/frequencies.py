"""A chi-squared test of whether draws may come from a distribution."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

# Cells of a chi-squared test must expect some draws, for their counts to be nearly normal.
_LEAST_EXPECTED = 5
# A fair draw exceeds five standard deviations once in three million times, and a probability of
# 1e-6 is about as small. Seeds are fixed, so a test that passes once always does.
_MOST_SIGMA = 5.0
_LEAST_PROBABILITY = 1e-6


def check_frequencies(counts: Counter[Any], probabilities: Mapping[Any, float]) -> None:
    """Check by a chi-squared test that draws may come from a distribution.

    Outcomes that are rare count as one. If even that is rare, its number is not nearly normal, and
    its own probability is computed.

    Args:
        counts: draws of each outcome.
        probabilities: probability of each outcome.

    Raises:
        AssertionError: there are too few draws for a test, an outcome is impossible, or the counts
            are so far from what is expected that a fair draw would hardly ever give them (five
            sigma).
    """
    draws = counts.total()
    impossible = set(counts) - set(probabilities)
    assert not impossible, f"impossible outcomes were drawn: {impossible}"
    assert sum(probabilities.values()) == pytest.approx(1, abs=1e-5)
    expected = {key: draws * p for key, p in probabilities.items()}
    rare = [key for key in expected if expected[key] < _LEAST_EXPECTED]
    cells = [(counts[key], expected[key]) for key in expected if key not in rare]
    assert cells, f"{draws} draws are too few for a test"
    rare_count, rare_expected = sum(counts[key] for key in rare), sum(expected[key] for key in rare)
    if rare_expected >= _LEAST_EXPECTED:
        cells.append((rare_count, rare_expected))
    elif rare:
        probability = _probability_of_so_many(rare_count, rare_expected)
        assert probability > _LEAST_PROBABILITY, (
            f"{rare_count} draws of rare outcomes, of which {rare_expected:.3g} were expected"
        )
    if len(cells) > 1:
        sigma = _sigma(cells)
        assert sigma < _MOST_SIGMA, f"{sigma:.1f} sigma; (draws, expected draws): {cells}"


def _probability_of_so_many(number: int, expected: float) -> float:
    """Return the probability of seeing so many rare outcomes or more (Poisson)."""
    if number == 0:
        return 1.0
    # A hundred terms of the tail: of at most five expected outcomes, the rest is far below a float.
    logs = (k * math.log(expected) - math.lgamma(k + 1) for k in range(number, number + 100))
    return math.exp(-expected) * sum(map(math.exp, logs))


def _sigma(cells: list[tuple[int, float]]) -> float:
    """Return how many standard deviations chi squared is above its mean.

    Its cube root is nearly normal (Wilson and Hilferty 1931).

    Args:
        cells: number and expected number of the draws in each; at least two cells.
    """
    freedom = len(cells) - 1
    statistic = sum((number - expected) ** 2 / expected for number, expected in cells)
    variance = 2 / (9 * freedom)
    return ((statistic / freedom) ** (1 / 3) - (1 - variance)) / math.sqrt(variance)
