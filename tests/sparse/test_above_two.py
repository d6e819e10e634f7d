"""Entmax with alphas above 2 of chosen rows equals fifty digits, or a solution by hand."""

import math
from functools import cache

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax, log_entmax
from tests.oracles import entmax_of_decimals

INF = float("inf")
# At alpha 3, four scores of 0 have probability 1/4 and the threshold -1/32, on which the last is.
ON_THE_THRESHOLD = [0.0] * 4 + [-1 / 32]
ROWS = {
    "one score": [7.0],
    "all equal": [0.25] * 5,
    "ties": [1.0, 1.0, 0.75, 0.75, 0.75, -4.0],
    "on the threshold": ON_THE_THRESHOLD,
    "-inf": [-INF, 0.03, -INF, 0.01],
    "far from 0": [1e5, 1e5 + 0.25, 1e5 - 0.5, 1e5 + 0.125],
    "one huge": [1e30, 0.0, 5.0],
    "halved": [-(2.0**-k) for k in range(6)],
    "close": [0.0, -1e-300, -3e-310, -0.3],
    "apart by little": [1e-6, -3e-7, 2e-8, 0.0, -1e-6, 5e-7, -2e-7],
}
LONGEST = max(map(len, ROWS.values()))

# The largest error of a score near 1, or of a threshold, in float64: half a machine epsilon.
SCORE_ERROR = 1e-16
# The error of a few operations on numbers up to 1, in machine epsilons of the type.
EPSILONS = 4
# Logarithms of probabilities up to this depend on digits of the scores that float64 does not have.
LEAST_WITH_A_LOGARITHM = 1e-9

# The Triton kernels take alphas up to 2 only.
on_each_implementation = pytest.mark.usefixtures("cpu_implementation")
types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
some_alphas = pytest.mark.parametrize("alpha", [2.0000001, 2.25, 3.0, 6.0])


def scores_of(dtype: torch.dtype) -> Tensor:
    """Return ROWS ``(rows, LONGEST)`` in a type, filled up with -inf."""
    return torch.tensor([row + [-INF] * (LONGEST - len(row)) for row in ROWS.values()], dtype=dtype)


@cache  # for all tests and implementations: decimals take seconds
def exact_probabilities(alpha: float, dtype: torch.dtype) -> Tensor:
    """Return entmax of the rows in a type ``(rows, LONGEST)`` by decimals, 0 for -inf."""
    exact = torch.zeros(len(ROWS), LONGEST, dtype=torch.float64)
    for row, probabilities in zip(scores_of(dtype), exact, strict=True):
        finite = row > -INF
        values = entmax_of_decimals(tuple(row[finite].tolist()), alpha)
        probabilities[finite] = torch.tensor(values, dtype=torch.float64)
    return exact


def failing(is_right: Tensor) -> list[str]:
    """Return the names of the ROWS that have a wrong number.

    Args:
        is_right: whether each number of each row is right, ``(rows, LONGEST)``.
    """
    return [name for name, row in zip(ROWS, is_right, strict=True) if not row.all()]


@on_each_implementation
@types
@some_alphas
def test_probabilities_equal_fifty_digits(alpha: float, dtype: torch.dtype) -> None:
    p = entmax(scores_of(dtype), alpha).double()
    error = (p - exact_probabilities(alpha, dtype)).abs()
    assert failing(error <= EPSILONS * torch.finfo(dtype).eps) == []


@on_each_implementation
@types
@some_alphas
def test_the_support_has_every_score_whose_probability_float64_resolves(
    alpha: float, dtype: torch.dtype
) -> None:
    """Whether a smaller probability is positive depends on digits that float64 does not have."""
    is_resolved = exact_probabilities(alpha, dtype) >= SCORE_ERROR
    assert is_resolved.any(1).all()
    assert failing((entmax(scores_of(dtype), alpha) > 0) | ~is_resolved) == []


@on_each_implementation
@types
@some_alphas
def test_logarithms_equal_fifty_digits(alpha: float, dtype: torch.dtype) -> None:
    """The tolerance is the sum of two errors: rounding, and the effect of errors of the scores.

    An error e of a score z changes log(p) by e / p ** (alpha - 1), since p ** (alpha - 1) is
    (alpha - 1) (z - tau) with the threshold tau. On these rows it was less, at most 10 e alpha / p.
    """
    exact, logs = exact_probabilities(alpha, dtype), log_entmax(scores_of(dtype), alpha).double()
    from_rounding = EPSILONS * torch.finfo(dtype).eps * (1 + logs.abs())
    from_scores = 10 * SCORE_ERROR * alpha / exact
    is_close = (logs - exact.log()).abs() <= from_rounding + from_scores
    assert failing(is_close | (exact <= LEAST_WITH_A_LOGARITHM)) == []


@on_each_implementation
@types
@some_alphas
def test_logarithms_have_the_support_of_probabilities(alpha: float, dtype: torch.dtype) -> None:
    scores = scores_of(dtype)
    assert failing((log_entmax(scores, alpha) > -INF) == (entmax(scores, alpha) > 0)) == []


@on_each_implementation
def test_probabilities_are_right_if_their_powers_leave_the_range_of_float64() -> None:
    """The expected probabilities of two scores 5e-318 apart are found by bisection.

    With beta = alpha - 1 = 1040, that of the larger one, p, satisfies
    p ** beta = (1 - p) ** beta + beta * 5e-318.
    """
    beta, apart = 1040, 5e-318
    low, high = 0.5, 1.0
    for _ in range(60):  # more than the 53 bits of a float64
        p = (low + high) / 2
        # The logarithm of p ** beta - (1 - p) ** beta.
        difference = beta * math.log(p) + math.log1p(-(((1 - p) / p) ** beta))
        low, high = (p, high) if difference < math.log(beta) + math.log(apart) else (low, p)
    p = entmax(torch.tensor([0.0, -apart], dtype=torch.float64), beta + 1.0)
    # The logarithms of these powers, near -720, are rounded by 1e-13.
    assert p.tolist() == pytest.approx([low, 1 - low], abs=1e-13)


shifts = pytest.mark.parametrize("shift", [0.0, 3.0, -2.0])


@on_each_implementation
@shifts
def test_a_score_on_the_threshold_is_outside(shift: float) -> None:
    """Scores and threshold are dyadic, and their square roots are exact: nothing is rounded."""
    row = torch.tensor(ON_THE_THRESHOLD, dtype=torch.float64) + shift
    assert (entmax(row, 3.0) > 0).tolist() == [True] * 4 + [False]


@on_each_implementation
@shifts
def test_a_score_just_above_the_threshold_is_inside(shift: float) -> None:
    row = torch.tensor(ON_THE_THRESHOLD, dtype=torch.float64) + shift
    row[-1] += 1e-9
    assert (entmax(row, 3.0) > 0).all()
