"""Every implementation of entmax against slow definitions; test_kernels.py runs Triton."""

import math
from collections.abc import Callable
from itertools import cycle

import entmax as peer
import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import Entmax, entmax, entmax_loss, log_entmax
from onmt_entmax.sparse.backends import cpu, solve
from tests.native_modules import assert_built
from tests.oracles import (
    entmax15_by_sorting,
    entmax_of_decimals,
    entmax_oracle,
    entropy_oracle,
)
from tests.sparse.conftest import INTERPRETED

INF = float("inf")
ALPHAS = (1.2, 1.5, 2.0) if INTERPRETED else (1 + 1e-6, 1.05, 1.2, 1.33, 1.5, 1.75, 2.0, 2.5, 4.0)
LENGTHS = (1, 9, 140) if INTERPRETED else (1, 2, 9, 17, 50, 513, 776, 5003)
TYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
ROWS = {
    "equal": [0.0] * 40,
    "one huge": [0.0, 1e30, 0.0, 5.0],
    "ties at the threshold": [1.0, 1.0, 0.0, 0.0, -1.0, -1.0],
    "tied leaders": [2.0, 2.0, 2.0, -5.0],
    "subnormal": [1e-40, -1e-40, 0.0, 3e-42],
    "-inf": [-INF, 0.3, -INF, 0.1],
    "one finite": [-INF, 7.0, -INF],
    "masked": [-1e18] * 9,
    "far from 0": [1e5, 1e5 + 0.25, 1e5 - 0.5, 1e5 + 0.125],
    "outlier": [0.0] * 199 + [1.5],
}


def forms_of_alpha(alpha: float, rows: Tensor) -> tuple[float | Tensor, ...]:
    """Return alpha as a number, and as a tensor with one for each row."""
    alphas = torch.full((len(rows), 1), alpha, dtype=torch.float64, device=rows.device)
    return alpha, alphas.requires_grad_()


def rounding(exact: Tensor, alpha: float, dtype: torch.dtype) -> Tensor:
    """Return how far probabilities ``(rows, n)`` of a type may be from the exact ones, by row."""
    eps = torch.finfo(dtype).eps
    support = (exact > 0).sum(-1, keepdim=True)
    error = (16 + support) * max(eps, 4e-16) * exact.amax(-1, keepdim=True)
    if dtype == torch.float64:  # of which the definition itself has not all digits
        error = error / min(alpha - 1, 1)
    if alpha > 2:
        error = error + 8 * 2.0 ** (-52 / (alpha - 1))
    return error


def assert_mappings_equal_the_definition(rows: Tensor, alpha: float) -> None:
    """Compare `entmax` and `log_entmax` of a row, with a number and with a tensor as alpha."""
    exact = entmax_oracle(rows, alpha)
    eps, error = torch.finfo(rows.dtype).eps, rounding(exact, alpha, rows.dtype)
    for form in forms_of_alpha(alpha, rows):
        with torch.no_grad():
            p, logs = entmax(rows, form), log_entmax(rows, form)
        assert p.dtype == logs.dtype == rows.dtype
        assert ((p.double() - exact).abs() <= error).all()
        assert torch.equal(p > 0, logs > -INF)
        assert (p[exact > 1e-5] > 0).all()
        if rows.dtype.itemsize > 2:  # logarithms of 16 bits have too few digits to compare
            assert ((logs.double().exp() - exact).abs() <= error * 8).all()
            # Of the probabilities, the last digits of scores far apart decide little.
            inside = p > 1e-30
            difference = (p.double().log() - logs.double()).abs()
            power = p.double().clamp_min(1e-300) ** min(alpha - 1, 1)
            close = eps * (40 * (1 + logs.double().abs()) + 8 / power)
            assert (difference <= close)[inside].all()


def assert_solve_equals_the_definition(rows: Tensor, alpha: float) -> None:
    """Compare `solve`: probabilities in place, the largest score, and the shifted conjugate.

    The conjugate is the largest score plus entropy, less the row's largest score.
    """
    exact = entmax_oracle(rows, alpha)
    eps, scores = torch.finfo(rows.dtype).eps, rows.clone()
    shifted, maxima = solve(scores, alpha, scores)
    assert ((scores.double() - exact).abs() <= rounding(exact, alpha, rows.dtype)).all()
    assert torch.equal(maxima, rows.amax(-1))
    assert (shifted >= 0).all()
    below = torch.where(exact > 0, rows.double() - maxima.double().unsqueeze(1), 0.0)
    conjugate = (exact * below).sum(1) + entropy_oracle(exact, alpha)
    close = max(eps, 1e-15) * 64 * (1 if alpha > 1.01 else 1e6)
    assert ((shifted.double() - conjugate).abs() <= close * (1 + conjugate)).all()


def assert_equals_the_definition(rows: Tensor, alpha: float) -> None:
    assert_mappings_equal_the_definition(rows, alpha)
    if rows.dtype.itemsize > 2:
        assert_solve_equals_the_definition(rows, alpha)


DEFINED = [
    *((alpha, torch.float32) for alpha in ALPHAS),
    *((alpha, torch.float64) for alpha in ALPHAS[1::2]),  # near 1 the definition has few digits
    (1.5, torch.bfloat16),
    (1.5, torch.float16),
    (2.0, torch.float16),
]


equals = pytest.mark.parametrize(("alpha", "dtype"), DEFINED, ids=str)


@equals
def test_random_rows_equal_the_definition(alpha: float, dtype: torch.dtype, device: str) -> None:
    for length in LENGTHS:
        spread = torch.tensor([[0.05], [1.0], [5.0]], dtype=torch.float64)
        rows = torch.randn(3, length, dtype=torch.float64) * spread
        assert_equals_the_definition(rows.to(device, dtype), alpha)


def special_rows(length: int) -> Tensor:
    """Return ROWS ``(rows, length)``, filled up with -inf."""
    rows = torch.full((len(ROWS), length), -INF, dtype=torch.float64)
    for row, scores in zip(rows, ROWS.values(), strict=True):
        row[: len(scores)] = torch.tensor(scores, dtype=torch.float64)
    return rows


@equals
@pytest.mark.parametrize("length", [200] if INTERPRETED else [200, 5200])
def test_special_rows_equal_the_definition(
    alpha: float, dtype: torch.dtype, length: int, device: str
) -> None:
    if dtype == torch.float16:
        pytest.skip("float16 has no such numbers")
    assert_equals_the_definition(special_rows(length).to(device, dtype), alpha)


@pytest.mark.parametrize(
    ("alpha", "dtype"),
    zip([1.0001, 1.1, 1.37, 1.5, 2.0, 2.25, 1.5, 2.0, 9.0], cycle(TYPES[:2])),
    ids=str,
)
def test_equals_fifty_digits(alpha: float, dtype: torch.dtype, device: str) -> None:
    """Also next to the threshold, and equal scores at a large alpha."""
    edge = 1 / (alpha - 1)
    rows = [[0.0, -edge * near] for near in (0.3, 0.99, 0.9999, 1.01)]
    rows += [*(torch.rand(3, 5, dtype=torch.float64) * 1.2 * edge).tolist(), [0.25] * 7]
    for scores in rows[:: 3 if INTERPRETED else 1]:
        row = torch.tensor([scores], dtype=dtype)
        digits = entmax_of_decimals(tuple(row[0].tolist()), alpha)
        exact = torch.tensor(digits, dtype=torch.float64)
        eps = torch.finfo(dtype).eps
        for form in forms_of_alpha(alpha, row.to(device)):
            with torch.no_grad():
                p = entmax(row.to(device), form)[0].cpu().double()
            # Kernels take powers of 1 / (alpha - 1), which multiply the rounding of their base.
            assert ((p - exact).abs() <= 8 * eps * max(1, 0.5 / (alpha - 1))).all()
            # The last digit of a score changes several digits of a small probability.
            close = 16 * eps + 1e-13 * alpha / exact.clamp_min(1e-30)
            if alpha > 1.01 and (dtype == torch.float64 or alpha > 2):
                assert ((p / exact - 1).abs() <= close)[exact > 1e-6].all()


@pytest.mark.parametrize("length", [1, 2, 13, 200])
def test_equals_algorithm_2(length: int, device: str) -> None:
    for row in torch.randn(4, length, dtype=torch.float64, device=device) * 2:
        expected = entmax15_by_sorting(row)
        torch.testing.assert_close(entmax(row, 1.5), expected, rtol=0, atol=2e-15)


@pytest.mark.parametrize("length", [1, 2, 13, 200])
@pytest.mark.parametrize(
    ("alpha", "peer_mapping"), [(1.5, peer.entmax15), (2.0, peer.sparsemax)], ids=["1.5", "2.0"]
)
def test_gradients_equal_those_of_entmax_1_3(
    alpha: float, peer_mapping: Callable[..., Tensor], length: int, device: str
) -> None:
    scores, upstream = torch.randn(2, 4, length, dtype=torch.float64, device=device) * 2
    ours, theirs = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    entmax(ours, alpha).backward(upstream)
    peer_mapping(theirs, dim=-1).backward(upstream)
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=1e-12)


def on_the_threshold(alpha: float, length: int, dtype: torch.dtype) -> Tensor:
    """Rows whose last three scores are the threshold of the others, and its neighbours."""
    scores = torch.randint(-480, 33, (4 if INTERPRETED else 100, length)).double() / 32
    scores[:, -3:] = -INF
    inside = entmax_oracle(scores, alpha)
    best = scores.argmax(1, keepdim=True)
    tau = scores.gather(1, best) - inside.gather(1, best) ** (alpha - 1) / (alpha - 1)
    tau = tau.to(dtype)
    scores[:, -1:] = tau.double()
    if dtype.itemsize > 2:
        for column, toward in ((-2, -INF), (-3, INF)):
            scores[:, [column]] = tau.nextafter(torch.tensor(toward, dtype=dtype)).double()
    return scores.to(dtype)


@pytest.mark.parametrize(("alpha", "dtype"), zip(ALPHAS[1:] * 2, cycle(TYPES[:3])), ids=str)
def test_one_support(alpha: float, dtype: torch.dtype, device: str) -> None:
    """Positive probability, finite logarithm, gradient and loss agree on it."""
    for length in (9, 40):
        rows = on_the_threshold(alpha, length, dtype).to(device)
        for form in forms_of_alpha(alpha, rows):
            p, logs = entmax(rows, form), log_entmax(rows, form)
            assert torch.equal(p > 0, logs > -INF)
            for mapping in (entmax, log_entmax):
                z = rows.clone().requires_grad_()
                (gradient,) = torch.autograd.grad(mapping(z, form), z, torch.randn_like(rows))
                assert not gradient[p == 0].any()
            z, target = rows.clone().requires_grad_(), torch.zeros(len(rows), device=device).long()
            loss = entmax_loss(z, target, form, reduction="sum")
            (gradient,) = torch.autograd.grad(loss, z)
            if dtype.itemsize > 2:
                assert torch.equal((gradient != 0)[:, 1:], (p > 0)[:, 1:])


def test_a_score_on_the_threshold_is_outside(device: str) -> None:
    """Dyadic scores have a dyadic threshold at alpha 2; in float64 its neighbour is a digit off."""
    for shift in (0.0, 3.0, -2.0, 0.125):
        row = torch.tensor([1.0, 0.75, 0.375, -4.0], dtype=torch.float64, device=device) + shift
        assert (entmax(row, 2.0) > 0).tolist() == [True, True, False, False]
        row[2] += 1e-12
        assert (entmax(row, 2.0) > 0).tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("dtype", "near"), [(torch.float32, -9.99999), (torch.float16, -9.9375)], ids=str
)
def test_members_next_to_the_threshold_stay_positive(
    dtype: torch.dtype, near: float, device: str
) -> None:
    row = torch.tensor([0.0, -9.5, near, -11.0], dtype=dtype, device=device)
    assert (entmax(row, 1.1) > 0).tolist() == [True, True, True, False]
    assert (log_entmax(row, 1.1) > -INF).tolist() == [True, True, True, False]


def test_probabilities_too_small_for_normal_numbers_stay_positive(device: str) -> None:
    scores = torch.tensor([0.0, -800.0], device=device)
    assert 0 < entmax(scores, 1.001)[1] < 1e-44
    assert float(log_entmax(scores, 1.001)[1]) == pytest.approx(1000 * math.log(0.2), 1e-6)


broken_rows = pytest.mark.parametrize(
    ("alpha", "length"), [(1.0, 7), (1.2, 700), (1.5, 7), (2.0, 700), (2.5, 7)]
)


@broken_rows
def test_nan_and_infinity_stay_in_their_rows(alpha: float, length: int, device: str) -> None:
    scores = torch.randn(5, length, device=device) * 3
    clean = entmax(scores, alpha)
    scores[1, 3], scores[2, 3] = math.nan, INF
    p, logs = entmax(scores, alpha), log_entmax(scores, alpha)
    for result in (p, logs):
        assert result[1:3].isnan().any(1).all()
        assert not result[[0, 3, 4]].isnan().any()
    assert torch.equal(p[[0, 3, 4]], clean[[0, 3, 4]])


@broken_rows
def test_losses_of_nan_and_infinity_are_nan(alpha: float, length: int, device: str) -> None:
    scores = torch.randn(4, length, device=device) * 3
    scores[1, 3], scores[2, 3] = math.nan, INF
    target = torch.zeros(4, device=device).long()
    losses = entmax_loss(scores, target, alpha, reduction="none")
    assert losses.isnan().tolist() == [False, True, True, False]


def shifted_conjugates(z: Tensor, alpha: float) -> Tensor:
    return solve(z, alpha, z.clone())[0]


@broken_rows
@pytest.mark.parametrize("function", [entmax, log_entmax, shifted_conjugates])
def test_a_row_of_minus_infinity_is_refused_on_a_cpu_and_nan_on_a_gpu(
    function: Callable[[Tensor, float], Tensor], alpha: float, length: int, device: str
) -> None:
    """A GPU would have to be waited for to know of it."""
    scores = torch.randn(5, length, device=device)
    scores[3] = -INF
    if device == "cpu" and not INTERPRETED:
        with pytest.raises(ValueError, match="-inf everywhere"):
            function(scores, alpha)
    elif 1 < alpha <= 2:
        assert function(scores, alpha)[3].isnan().any()


@broken_rows
@pytest.mark.parametrize("mapping", [entmax, log_entmax])
def test_a_row_of_minus_infinity_with_its_own_alpha(
    mapping: Callable[[Tensor, Tensor], Tensor], alpha: float, length: int, device: str
) -> None:
    scores, alphas = torch.randn(5, length, device=device), torch.full((5, 1), alpha, device=device)
    scores[3] = -INF
    if device == "cpu" and not INTERPRETED:
        with pytest.raises(ValueError, match="-inf everywhere"):
            mapping(scores, alphas)
    elif 1 < alpha <= 2:
        assert mapping(scores, alphas)[3].isnan().any()


class TestAlphaOfEachHead:
    """On both sides of 2."""

    ALPHAS = (1.0, 1.2, 1.5, 2.0, 2.5)

    @pytest.fixture
    def alpha(self, device: str) -> Tensor:
        return torch.tensor(self.ALPHAS, device=device).view(5, 1, 1).requires_grad_()

    @pytest.fixture
    def scores(self, device: str) -> Tensor:
        return torch.randn(2, 5, 3, 7, device=device)

    def test_gives_what_the_head_has_alone(self, scores: Tensor, alpha: Tensor) -> None:
        p = entmax(scores, alpha)
        for head, number in enumerate(self.ALPHAS):
            torch.testing.assert_close(p[:, head], entmax(scores[:, head], number))

    def test_has_a_gradient_of_its_shape(self, scores: Tensor, alpha: Tensor) -> None:
        (gradient,) = torch.autograd.grad(entmax(scores, alpha).square().sum(), alpha)
        assert gradient.shape == alpha.shape
        assert gradient.isfinite().all()


@pytest.mark.parametrize("dim", [0, 1, -2])
@pytest.mark.parametrize("function", [entmax, lambda z, alpha, dim: Entmax(alpha, dim)(z)])
def test_any_dimension_is_like_the_last(
    function: Callable[[Tensor, float, int], Tensor], dim: int, device: str
) -> None:
    scores = torch.randn(2, 5, 3, 7, device=device)
    moved = entmax(scores.movedim(dim, -1).contiguous(), 1.5).movedim(-1, dim)
    torch.testing.assert_close(function(scores, 1.5, dim), moved)


def test_the_scores_are_not_changed(device: str) -> None:
    scores = torch.randn(2, 5, 3, 7, device=device)
    before = scores.clone()
    entmax(scores, 1.5)
    assert torch.equal(scores, before)


def test_threads_change_nothing() -> None:
    scores, outcomes = torch.randn(64, 3000) * torch.logspace(-2, 1, 64).unsqueeze(1), []
    for threads in (3, 1):
        torch.set_num_threads(threads)
        z = scores.clone().requires_grad_()
        losses, p = entmax_loss(z, torch.arange(64), reduction="none"), entmax(z, 1.33)
        outcomes.append([losses, p, *torch.autograd.grad((losses, p), z, (losses, p))])
    assert all(map(torch.equal, *outcomes))


def test_the_module_is_there_where_it_can_be_built() -> None:
    assert_built(cpu.module)
