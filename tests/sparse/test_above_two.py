"""Alphas above 2, where the smallest probabilities depend on the last digits of the scores."""

import math

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import backends, entmax, entmax_loss, log_entmax, reference
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


# --- which implementation ---


@needs_cpp
@pytest.mark.parametrize(
    "alpha", [2.5, 1e6, torch.tensor([[3.0]])], ids=["2.5", "a large alpha", "a learned alpha"]
)
def test_rows_on_a_cpu_are_solved_in_cpp(alpha: float | Tensor) -> None:
    assert backends.backend_for(torch.zeros(1, 2), alpha) is cpu


def test_rows_of_an_enormous_alpha_are_solved_by_pytorch() -> None:
    scores = torch.zeros(1, 2)
    assert backends.backend_for(scores, 1e30) is reference
    torch.testing.assert_close(entmax(scores, 1e30), torch.full((1, 2), 0.5))


# --- rows, by decimals and by hand ---


@on_each_implementation
@types
@pytest.mark.parametrize("alpha", [2.0000001, 2.25, 3.0, 6.0])
@pytest.mark.parametrize("name", ROWS)
def test_the_error_is_a_few_roundings_of_the_result(
    name: str, alpha: float, dtype: torch.dtype
) -> None:
    """This holds wherever the scores are."""
    row = torch.tensor(ROWS[name], dtype=dtype)
    exact = exact_entmax(row, alpha)
    p, logs = entmax(row, alpha).double(), log_entmax(row, alpha).double()
    # A probability is at most 1 and comes of a few operations, each rounded to its type.
    roundings = 4 * torch.finfo(dtype).eps
    assert ((p - exact).abs() <= roundings).all()
    # Whether a smaller probability is positive depends on digits that float64 does not have.
    assert (p > 0)[exact >= SCORE_ERROR].all()
    assert torch.equal(p > 0, logs > -INF)
    # The power p ** (alpha - 1) is (alpha - 1) (z - tau): an error e in z changes it by e times
    # alpha - 1, and log(p) by e / p ** (alpha - 1). These rows keep to ten times e alpha / p,
    # which is less for small p and large alpha.
    of_scores = 10 * SCORE_ERROR * alpha / exact
    # A logarithm is itself rounded, by eps of its size.
    of_logarithm = roundings * (1 + logs.abs())
    inside = exact > 1e-9
    error = (logs - exact.log()).abs()
    assert (error <= of_logarithm + of_scores)[inside].all()


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


# --- random rows of many lengths ---


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
        torch.testing.assert_close(p.double(), exact, rtol=0, atol=8 * torch.finfo(dtype).eps)
        # Both may err in their thresholds, and scores of a row differ in size.
        assert (p > 0)[exact >= 1e4 * SCORE_ERROR].all()


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


# --- traces ---


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize(
    "alpha",
    [
        pytest.param(3.0, id="an alpha"),
        pytest.param(torch.tensor([[1.5], [3.0], [1.0], [2.25]]), id="an alpha for each row"),
    ],
)
def test_a_recorded_graph_takes_rows_of_any_length(alpha: float | Tensor) -> None:
    traced = torch.jit.trace(
        lambda z: reference.mapping(z, alpha, logs=False), torch.randn(4, 9), check_trace=False
    )
    for length in (1, 9, 300):
        scores = torch.randn(4, length)
        torch.testing.assert_close(traced(scores), reference.mapping(scores, alpha, logs=False))
