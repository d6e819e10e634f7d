"""McNemar's exact test against the tail of a binomial distribution, and its approximation."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.report.mcnemar import mcnemar


@given(st.integers(0, 40), st.integers(0, 40), st.sampled_from([1, 30]))
def test_mcnemar_is_the_tail_of_a_fair_coin(won: int, lost: int, times: int) -> None:
    """Counts of up to 1,200 words are more than are summed exactly."""
    won, lost = won * times, lost * times
    number = won + lost
    tail = sum(math.comb(number, k) for k in range(min(won, lost) + 1))
    expected = float(min(Fraction(1), Fraction(2 * tail, 2**number)))
    assert mcnemar(won, lost) == pytest.approx(expected, rel=1e-9)


def test_mcnemar_of_large_counts_is_near_the_normal_approximation() -> None:
    """The approximation has a continuity correction."""
    z = (1000 - 1) / math.sqrt(1_001_000)
    assert mcnemar(500_000, 501_000) == pytest.approx(math.erfc(z / math.sqrt(2)), rel=1e-6)
