"""Alphas above 2, where the smallest probabilities depend on the last digits of the scores."""

import math
from itertools import cycle
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from onmt_entmax.sparse import backends, entmax, entmax_loss, log_entmax, reference
from onmt_entmax.sparse.backends import cpu
from onmt_entmax.sparse.mapping import mapping_gradients
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

pytestmark = pytest.mark.skipif(INTERPRETED, reason="no kernels of GPUs")


def exactly(row: Tensor, alpha: float) -> Tensor:
    """Return entmax of a row by decimals, 0 for -inf."""
    finite = row > -INF
    exact = torch.zeros(len(row), dtype=torch.float64)
    values = entmax_of_decimals(tuple(row[finite].tolist()), alpha)
    exact[finite] = torch.tensor(values, dtype=torch.float64)
    return exact


def test_rows_on_a_cpu_are_solved_in_cpp() -> None:
    if cpu.module is None:
        pytest.skip("not built")
    scores = torch.zeros(1, 2)
    for alpha in (2.5, 1e6, torch.tensor([[3.0]])):
        assert backends.of(scores, alpha) is cpu
    assert backends.of(scores, 1e30) is reference
    torch.testing.assert_close(entmax(scores, 1e30), torch.full((1, 2), 0.5))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("alpha", [2.0000001, 2.25, 3.0, 6.0])
def test_every_digit(alpha: float, dtype: torch.dtype, device: str) -> None:
    """The largest error is a rounding of the result, wherever the scores are."""
    eps = torch.finfo(dtype).eps
    for scores in ROWS.values():
        row = torch.tensor(scores, dtype=dtype)
        exact = exactly(row, alpha)
        p, logs = (mapping(row, alpha).double() for mapping in (entmax, log_entmax))
        assert ((p - exact).abs() <= 4 * eps).all()
        # Exact sums of 1 are 1 in float64, so a smaller member is open.
        assert torch.equal((p > 0) | (exact < 1e-16), (exact > 0) | (exact < 1e-16))
        assert torch.equal(p > 0, logs > -INF)
        inside = exact > 1e-9
        close = 4 * eps * (1 + logs.abs()) + 1e-15 * alpha / exact
        assert ((logs - exact.log()).abs() <= close)[inside].all()


def test_powers_outside_the_range_of_float64(device: str) -> None:
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


def test_a_score_on_the_threshold_is_outside(device: str) -> None:
    """With dyadic numbers whose roots are exact."""
    for shift in (0.0, 3.0, -2.0):
        row = torch.tensor(ROWS["on the threshold"], dtype=torch.float64) + shift
        assert (entmax(row, 3.0) > 0).tolist() == [True] * 4 + [False]
        row[-1] += 1e-9
        assert (entmax(row, 3.0) > 0).all()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("spread", [1e-4, 0.02, 1.0])
def test_implementations_agree(spread: float, dtype: torch.dtype, device: str) -> None:
    """On support, probabilities and conjugates: short rows, long ones, an alpha for each row."""
    alphas = torch.tensor([*ALPHAS, 2.0], dtype=torch.float64).unsqueeze(1)
    for length in (1, 3, 16, 17, 130, 700, 2500):
        scores = (torch.randn(len(alphas), length, dtype=torch.float64) * spread).to(dtype)
        scores[:, length // 2] = scores[:, 0]
        p, exact = entmax(scores, alphas), reference.mapping(scores.double(), alphas, False)
        torch.testing.assert_close(p.double(), exact, rtol=0, atol=8 * torch.finfo(dtype).eps)
        assert torch.equal((p > 0) | (exact < 1e-12), (exact > 0) | (exact < 1e-12))
        for alpha, row, own in zip(alphas, scores, p, strict=True):
            torch.testing.assert_close(entmax(row, float(alpha)), own, rtol=1e-6, atol=1e-7)
        target = torch.zeros(len(scores)).long()
        hot = torch.nn.functional.one_hot(target, length)
        for loss, alpha, row, own in zip(
            entmax_loss(scores, target, alphas, reduction="none"), alphas, scores, hot, strict=True
        ):
            expected = loss_oracle(row.unsqueeze(0), own.unsqueeze(0), float(alpha))
            close = 1e-6 if dtype == torch.float32 else 1e-13
            assert float(loss) == pytest.approx(float(expected), rel=close, abs=close)


@pytest.mark.parametrize("alpha", ALPHAS[1:])
def test_gradients(alpha: float, device: str) -> None:
    """In scores and alphas, of mapping, loss and the loss of a row that keeps its support."""
    z = (torch.randn(3, 5, dtype=torch.float64) / (alpha - 1)).requires_grad_()
    alphas = (alpha + torch.tensor([[0.0], [0.1], [0.2]], dtype=torch.float64)).requires_grad_()
    target = torch.tensor([0, 1, 2])
    for each in (alpha, alphas):
        given = (z, each) if isinstance(each, Tensor) else (z,)
        assert gradcheck(lambda x, a=each: entmax(x, a), z)
        assert gradcheck(lambda x, *a: entmax(x, *(a or (alpha,))), given)
        assert gradcheck(lambda x, *a: entmax_loss(x, target, *(a or (alpha,))), given)
        assert gradgradcheck(lambda x, *a: entmax(x, *(a or (alpha,))), given)
    wide = torch.full((3, 200), -5.0, dtype=torch.float64).requires_grad_()
    places = torch.arange(5) * 17

    def of_few(x: Tensor) -> Tensor:
        return entmax_loss(wide.index_copy(1, places, x), target * 17, alpha)

    assert gradcheck(of_few, z)


@pytest.mark.parametrize(("alpha", "dtype"), zip((2.25, 3.0, 10.0, 50.0), cycle(TYPES)), ids=str)
def test_gradients_equal_the_definition(alpha: float, dtype: torch.dtype, device: str) -> None:
    """Also in alpha, which nothing huge makes inexact."""
    z, upstream = torch.randn(2, 8, 140, dtype=dtype)
    alphas = torch.full((8, 1), alpha, dtype=torch.float64)
    p = entmax(z / alpha, alphas)
    p[0, :9] = torch.tensor([1e-12, 1e-6, *([1 / 7] * 7)])  # weights from 1 to 1e12 ** (alpha - 2)
    expected = mapping_gradients(p, alphas, upstream, True)
    with torch.no_grad():
        found = mapping_gradients(p, alphas, upstream, True)
    for one, other in zip(found, expected, strict=True):
        scale = other.abs().amax(-1, keepdim=True).clamp_min(1e-3)
        close = 1e-6 if one.dtype == torch.float32 else 1e-12
        finite = scale < torch.finfo(one.dtype).max
        assert ((one.double() - other).abs() <= close * scale)[finite.expand_as(one)].all()


def test_the_gradient_in_alpha_of_small_probabilities(device: str) -> None:
    """By differences of decimals, where the Jacobian weight is 1e30 times another."""
    alpha, step, scores = 4.0, 1e-5, (0.0, -0.33333333, -0.05)
    row = torch.tensor([scores], dtype=torch.float64)
    each = torch.tensor([[alpha]], dtype=torch.float64, requires_grad=True)
    upstream = torch.tensor([[0.7, -1.0, 0.2]], dtype=torch.float64)
    (found,) = torch.autograd.grad(entmax(row, each), each, upstream)
    more, less = (
        torch.tensor(entmax_of_decimals(scores, alpha + s), dtype=torch.float64)
        for s in (step, -step)
    )
    expected = float(((more - less) * upstream).sum() / (2 * step))
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_rows_that_are_not_finite(device: str) -> None:
    """In the gradient, too: nan where something of the support is nan, and nowhere else."""
    scores, upstream = torch.randn(2, 4, 30)
    scores[1, 3], scores[2, 3] = math.nan, INF
    upstream[3, int(scores[3].argmax())] = math.nan
    z = scores.requires_grad_()
    alphas = torch.full((4, 1), 3.0)
    p = entmax(z, alphas)
    assert p.isnan().all(1).tolist() == [False, True, True, False]
    (gradient,) = torch.autograd.grad(p, z, upstream)
    assert gradient.isnan().any(1).tolist() == [False, True, True, True]


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("alpha", [3.0, torch.tensor([[1.5], [3.0], [1.0], [2.25]])], ids=str)
def test_a_recorded_graph_takes_rows_of_any_length(alpha: Any, monkeypatch) -> None:
    monkeypatch.setattr(reference, "is_readable", lambda *_, **__: False)
    traced = torch.jit.trace(
        lambda z: reference.mapping(z, alpha, False), torch.randn(4, 9), check_trace=False
    )
    monkeypatch.undo()
    for length in (1, 9, 300):
        scores = torch.randn(4, length)
        torch.testing.assert_close(traced(scores), reference.mapping(scores, alpha, False))
