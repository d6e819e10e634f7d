"""Alphas above 2, where the smallest probabilities depend on the last digits of the scores."""

import math

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax, entmax_loss, log_entmax, reference
from onmt_entmax.sparse.backends import cpu
from tests.oracles import entmax_of_decimals, loss_oracle
from tests.sparse.conftest import INTERPRETED

INF = float("inf")
ALPHAS = (2.0000001, 2.25, 2.5, 3.0, 4.0, 10.0)
TYPES = (torch.float32, torch.float64)
ROWS = {
    "one score": [7.0],
    "all equal": [0.25] * 5,
    "ties": [1.0, 1.0, 0.75, 0.75, 0.75, -4.0],
    "on the threshold": [0.0] * 4 + [-1 / 32],
    "-inf": [-INF, 0.03, -INF, 0.01],
    "far from 0": [1e5, 1e5 + 0.25, 1e5 - 0.5, 1e5 + 0.125],
    "one huge": [1e30, 0.0, 5.0],
    "halved": [-(2.0**-k) for k in range(6)],
    "close": [0.0, -1e-300, -3e-310, -0.3],
    "apart by little": [1e-6, -3e-7, 2e-8, 0.0, -1e-6, 5e-7, -2e-7],
}

# Float64 has 16 digits: a score near 1, or a threshold, is known up to this.
SCORE_ERROR = 1e-16

pytestmark = pytest.mark.skipif(INTERPRETED, reason="the Triton kernels take alphas up to 2 only")
# By the fixture `device`, which chooses what solves rows on a CPU: PyTorch, or C++ with each
# instruction set.
on_each_implementation = pytest.mark.usefixtures("device")
needs_cpp = pytest.mark.skipif(cpu.module is None, reason="not built")
types = pytest.mark.parametrize("dtype", TYPES)
spreads = pytest.mark.parametrize("spread", [1e-4, 0.02, 1.0])


def exact_entmax(row: Tensor, alpha: float) -> Tensor:
    """Return entmax of a row ``(n,)`` by decimals, 0 for -inf."""
    finite = row > -INF
    exact = torch.zeros(len(row), dtype=torch.float64)
    values = entmax_of_decimals(tuple(row[finite].tolist()), alpha)
    exact[finite] = torch.tensor(values, dtype=torch.float64)
    return exact


# --- rows, by decimals and by hand ---------------------------------------------------------


some_alphas = pytest.mark.parametrize("alpha", [2.0000001, 2.25, 3.0, 6.0])
names = pytest.mark.parametrize("name", ROWS)


def roundings(dtype: torch.dtype) -> float:
    """Return the error of a few operations on numbers up to 1, each rounded to the type."""
    return 4 * torch.finfo(dtype).eps


@on_each_implementation
@types
@some_alphas
@names
def test_the_error_of_a_probability_is_a_few_roundings(
    name: str, alpha: float, dtype: torch.dtype
) -> None:
    """Whether one below `SCORE_ERROR` is positive depends on digits that float64 does not have."""
    row = torch.tensor(ROWS[name], dtype=dtype)
    p, exact = entmax(row, alpha).double(), exact_entmax(row, alpha)
    assert ((p - exact).abs() <= roundings(dtype)).all()
    assert (p > 0)[exact >= SCORE_ERROR].all()


@on_each_implementation
@types
@some_alphas
@names
def test_the_error_of_a_logarithm_is_that_of_the_scores_and_a_few_roundings(
    name: str, alpha: float, dtype: torch.dtype
) -> None:
    """The limit for errors of the scores was measured on these rows: ten times alpha / p.

    By the formula it would be larger for small p: p ** (alpha - 1) is (alpha - 1) (z - tau), so
    that an error e in z changes log(p) by e / p ** (alpha - 1).
    """
    row = torch.tensor(ROWS[name], dtype=dtype)
    exact, logs = exact_entmax(row, alpha), log_entmax(row, alpha).double()
    of_scores = 10 * SCORE_ERROR * alpha / exact
    of_logarithm = roundings(dtype) * (1 + logs.abs())  # it is rounded by its size
    error = (logs - exact.log()).abs()
    assert (error <= of_logarithm + of_scores)[exact > 1e-9].all()
    assert torch.equal(logs > -INF, entmax(row, alpha) > 0), "they have the same support"


@on_each_implementation
def test_powers_outside_the_range_of_float64() -> None:
    """Two scores 5e-318 apart, by bisection of p ** 1040 = (1 - p) ** 1040 + 1040 * 5e-318."""
    beta, apart = 1040, 5e-318
    low, high = 0.5, 1.0
    for _ in range(60):
        p = (low + high) / 2
        # The logarithm of p ** beta - (1 - p) ** beta.
        difference = beta * math.log(p) + math.log1p(-(((1 - p) / p) ** beta))
        low, high = (p, high) if difference < math.log(beta) + math.log(apart) else (low, p)
    p = entmax(torch.tensor([0.0, -apart], dtype=torch.float64), beta + 1.0)
    assert p.tolist() == pytest.approx([low, 1 - low], abs=1e-13)


@on_each_implementation
@pytest.mark.parametrize("shift", [0.0, 3.0, -2.0])
def test_a_score_on_the_threshold_is_outside(shift: float) -> None:
    """With dyadic numbers whose roots are exact."""
    row = torch.tensor(ROWS["on the threshold"], dtype=torch.float64) + shift
    assert (entmax(row, 3.0) > 0).tolist() == [True] * 4 + [False]
    row[-1] += 1e-9
    assert (entmax(row, 3.0) > 0).all()


# --- random rows of many lengths --------------------------------------------------------------


def rows_and_alphas(length: int, spread: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return scores ``(rows, length)`` with a tie in each row, and alphas ``(rows, 1)``."""
    alphas = torch.tensor([*ALPHAS, 2.0], dtype=torch.float64).unsqueeze(1)
    scores = (torch.randn(len(alphas), length, dtype=torch.float64) * spread).to(dtype)
    scores[:, length // 2] = scores[:, 0]
    return scores, alphas


# Short rows and long ones, around the width of vectors.
LENGTHS = (1, 3, 16, 17, 130, 700, 2500)


@on_each_implementation
@types
@spreads
def test_probabilities_and_support_are_those_of_the_definition(
    spread: float, dtype: torch.dtype
) -> None:
    for length in LENGTHS:
        scores, alphas = rows_and_alphas(length, spread, dtype)
        p = entmax(scores, alphas)
        exact = reference.mapping(scores.double(), alphas, logs=False)
        # Twice the roundings of a short row: the definition in float64 is rounded, too.
        error = (p.double() - exact).abs().max()
        assert error <= 8 * torch.finfo(dtype).eps, f"{length} scores"
        # Both may err in their thresholds, and scores of a row differ in size.
        assert (p > 0)[exact >= 1e4 * SCORE_ERROR].all(), f"{length} scores"


@on_each_implementation
@types
@spreads
def test_a_number_and_a_tensor_of_alphas_give_the_same(spread: float, dtype: torch.dtype) -> None:
    for length in LENGTHS:
        scores, alphas = rows_and_alphas(length, spread, dtype)
        for alpha, row, p in zip(alphas, scores, entmax(scores, alphas), strict=True):
            torch.testing.assert_close(entmax(row, float(alpha)), p, rtol=1e-6, atol=1e-7)


@on_each_implementation
@types
@spreads
def test_losses_are_those_of_the_definition(spread: float, dtype: torch.dtype) -> None:
    tolerance = 1e-6 if dtype == torch.float32 else 1e-13
    for length in LENGTHS:
        scores, alphas = rows_and_alphas(length, spread, dtype)
        target = torch.zeros(len(scores)).long()
        one_hot = torch.nn.functional.one_hot(target, length)
        losses = entmax_loss(scores, target, alphas, reduction="none")
        for loss, alpha, row, of_row in zip(losses, alphas, scores, one_hot, strict=True):
            expected = loss_oracle(row.unsqueeze(0), of_row.unsqueeze(0), float(alpha))
            assert float(loss) == pytest.approx(float(expected), rel=tolerance, abs=tolerance)
