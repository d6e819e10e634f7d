"""What every implementation of entmax must do, beside slow definitions."""

import math
from itertools import cycle

import entmax as peer
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onmt_entmax.sparse import Entmax, entmax, entmax_loss, log_entmax, tsallis_entropy
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


def of_each_row(alpha: float, rows: Tensor) -> tuple[float | Tensor, ...]:
    """Alpha as a number, and as a tensor."""
    alphas = torch.full((len(rows), 1), alpha, dtype=torch.float64, device=rows.device)
    return alpha, alphas.requires_grad_()


def check(rows: Tensor, alpha: float) -> None:
    """Compare both mappings and `solve` with the definition, in units of the last place."""
    exact = entmax_oracle(rows, alpha)
    eps = torch.finfo(rows.dtype).eps
    few = (16 + (exact > 0).sum(-1, keepdim=True)) * max(eps, 4e-16) * exact.amax(-1, keepdim=True)
    if rows.dtype == torch.float64:  # of which the definition itself has not all digits
        few = few / min(alpha - 1, 1)
    if alpha > 2:
        few = few + 8 * 2.0 ** (-52 / (alpha - 1))
    for each in of_each_row(alpha, rows):
        with torch.no_grad():
            p, logs = entmax(rows, each), log_entmax(rows, each)
        assert p.dtype == logs.dtype == rows.dtype
        assert ((p.double() - exact).abs() <= few).all()
        assert torch.equal(p > 0, logs > -INF)
        assert ((logs.double().exp() - exact).abs() <= few * 8).all() or eps > 1e-4
        assert (p[exact > 1e-5] > 0).all()
        if rows.dtype.itemsize > 2:
            # Of the probabilities, the last digits of scores far apart decide little.
            inside = p > 1e-30
            wrong = (p.double().log() - logs.double()).abs()
            power = p.double().clamp_min(1e-300) ** min(alpha - 1, 1)
            assert (wrong <= eps * (40 * (1 + logs.double().abs()) + 8 / power))[inside].all()
    if rows.dtype.itemsize > 2:
        scores = rows.clone()
        shifted, maxima = solve(scores, alpha, scores)
        assert ((scores.double() - exact).abs() <= few).all()
        assert torch.equal(maxima, rows.amax(-1))
        assert (shifted >= 0).all()
        below = torch.where(exact > 0, rows.double() - maxima.double().unsqueeze(1), 0.0)
        conjugate = (exact * below).sum(1) + entropy_oracle(exact, alpha)
        many = max(eps, 1e-15) * 64 * (1 if alpha > 1.01 else 1e6)
        assert ((shifted.double() - conjugate).abs() <= many * (1 + conjugate)).all()


DEFINED = [
    *((alpha, torch.float32) for alpha in ALPHAS),
    *((alpha, torch.float64) for alpha in ALPHAS[1::2]),  # near 1 the definition has few digits
    (1.5, torch.bfloat16),
    (1.5, torch.float16),
    (2.0, torch.float16),
]


@pytest.mark.parametrize(("alpha", "dtype"), DEFINED, ids=str)
def test_equals_the_definition(alpha: float, dtype: torch.dtype, device: str) -> None:
    for length in LENGTHS:
        spread = torch.tensor([[0.05], [1.0], [5.0]], dtype=torch.float64)
        check((torch.randn(3, length, dtype=torch.float64) * spread).to(device, dtype), alpha)
    together = torch.full((len(ROWS), 200), -INF, dtype=torch.float64)
    for row, scores in zip(together, ROWS.values(), strict=True):
        row[: len(scores)] = torch.tensor(scores, dtype=torch.float64)
    if dtype != torch.float16:  # which has no such numbers
        check(together.to(device, dtype), alpha)
        if not INTERPRETED:
            long = torch.cat([together, torch.full((len(ROWS), 5000), -INF)], 1)
            check(long.to(device, dtype), alpha)


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
        row = torch.tensor(scores, dtype=dtype)
        exact = torch.tensor(entmax_of_decimals(tuple(row.tolist()), alpha), dtype=torch.float64)
        eps = torch.finfo(dtype).eps
        for each in of_each_row(alpha, row.unsqueeze(0)):
            with torch.no_grad():
                moved = each.to(device) if isinstance(each, Tensor) else each
                p = entmax(row.unsqueeze(0).to(device), moved)[0].cpu().double()
            # Kernels take powers of 1 / (alpha - 1), which multiply the rounding of their base.
            assert ((p - exact).abs() <= 8 * eps * max(1, 0.5 / (alpha - 1))).all()
            # The last digit of a score changes several digits of a small probability.
            few = (16 * eps + 1e-13 * alpha / exact.clamp_min(1e-30)).double()
            if alpha > 1.01 and (dtype == torch.float64 or alpha > 2):
                assert ((p / exact - 1).abs() <= few)[exact > 1e-6].all()


@pytest.mark.parametrize("length", [1, 2, 13, 200])
def test_equals_algorithm_2_and_entmax_1_3(length: int, device: str) -> None:
    scores, gradient = torch.randn(2, 4, length, dtype=torch.float64, device=device) * 2
    for row in scores:
        expected = entmax15_by_sorting(row)
        torch.testing.assert_close(entmax(row, 1.5), expected, rtol=0, atol=2e-15)
    for alpha, other in ((1.5, peer.entmax15), (2.0, peer.sparsemax)):
        ours, theirs = scores.clone().requires_grad_(), scores.clone().requires_grad_()
        entmax(ours, alpha).backward(gradient)
        other(theirs, dim=-1).backward(gradient)
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
        for place, toward in ((-2, -INF), (-3, INF)):
            scores[:, [place]] = tau.nextafter(torch.tensor(toward, dtype=dtype)).double()
    return scores.to(dtype)


@pytest.mark.parametrize(("alpha", "dtype"), zip(ALPHAS[1:] * 2, cycle(TYPES[:3])), ids=str)
def test_one_support(alpha: float, dtype: torch.dtype, device: str) -> None:
    """Positive probability, finite logarithm, gradient and loss agree on it."""
    for length in (9, 40):
        rows = on_the_threshold(alpha, length, dtype).to(device)
        for each in of_each_row(alpha, rows):
            p, logs = entmax(rows, each), log_entmax(rows, each)
            assert torch.equal(p > 0, logs > -INF)
            for mapping in (entmax, log_entmax):
                z = rows.clone().requires_grad_()
                (gradient,) = torch.autograd.grad(mapping(z, each), z, torch.randn_like(rows))
                assert not gradient[p == 0].any()
            z, target = rows.clone().requires_grad_(), torch.zeros(len(rows), device=device).long()
            loss = entmax_loss(z, target, each, reduction="sum")
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


def test_small_members_of_the_support_stay_positive(device: str) -> None:
    for dtype, near in ((torch.float32, -9.99999), (torch.float16, -9.9375)):
        row = torch.tensor([0.0, -9.5, near, -11.0], dtype=dtype, device=device)
        assert (entmax(row, 1.1) > 0).tolist() == [True, True, True, False]
        assert (log_entmax(row, 1.1) > -INF).tolist() == [True, True, True, False]
    scores = torch.tensor([0.0, -800.0], device=device)
    assert 0 < entmax(scores, 1.001)[1] < 1e-44
    assert float(log_entmax(scores, 1.001)[1]) == pytest.approx(1000 * math.log(0.2), 1e-6)


@pytest.mark.parametrize(
    ("alpha", "length"), [(1.0, 7), (1.2, 700), (1.5, 7), (2.0, 700), (2.5, 7)]
)
def test_what_is_not_finite_stays_in_its_row(length: int, alpha: float, device: str) -> None:
    scores = torch.randn(5, length, device=device) * 3
    clean = entmax(scores, alpha)
    scores[1, 3], scores[2, 3] = math.nan, INF
    p, logs = entmax(scores, alpha), log_entmax(scores, alpha)
    loss = entmax_loss(scores, torch.zeros(5, device=device).long(), alpha, reduction="none")
    for result in (p, logs):
        assert result[1:3].isnan().any(1).all()
        assert not result[[0, 3, 4]].isnan().any()
    assert torch.equal(p[[0, 3, 4]], clean[[0, 3, 4]])
    assert loss.isnan().tolist() == [False, True, True, False, False]
    scores[3] = -INF
    for mapping in (entmax, log_entmax, lambda z, alpha: solve(z, alpha, z.clone())[0]):
        for each in (alpha, torch.full((5, 1), alpha, device=device)):
            if mapping not in (entmax, log_entmax) and isinstance(each, Tensor):
                continue
            if device == "cpu" and not INTERPRETED:
                with pytest.raises(ValueError, match="-inf everywhere"):
                    mapping(scores, each)
            elif 1 < alpha <= 2:
                assert mapping(scores, each)[3].isnan().any()


def test_rows_keep_their_alpha_dimension_and_memory(device: str) -> None:
    """Heads with an alpha each, on both sides of 2; other dimensions; strides; the input."""
    numbers = (1.0, 1.2, 1.5, 2.0, 2.5)
    alpha = torch.tensor(numbers, device=device).view(5, 1, 1).requires_grad_()
    scores = torch.randn(2, 5, 3, 7, device=device)
    before = scores.clone()
    p = entmax(scores, alpha)
    for head, number in enumerate(numbers):
        torch.testing.assert_close(p[:, head], entmax(scores[:, head], number))
    (gradient,) = torch.autograd.grad(p.square().sum(), alpha)
    assert gradient.shape == alpha.shape
    assert gradient.isfinite().all()
    for dim in (0, 1, -2):
        moved = entmax(scores.movedim(dim, -1).contiguous(), 1.5).movedim(-1, dim)
        torch.testing.assert_close(entmax(scores, 1.5, dim), moved)
        torch.testing.assert_close(Entmax(1.5, dim)(scores), moved)
    assert torch.equal(scores, before)


def test_threads_change_nothing() -> None:
    scores, outcomes = torch.randn(64, 3000) * torch.logspace(-2, 1, 64).unsqueeze(1), []
    for threads in (3, 1):
        torch.set_num_threads(threads)
        z = scores.clone().requires_grad_()
        losses, p = entmax_loss(z, torch.arange(64), reduction="none"), entmax(z, 1.33)
        outcomes.append([losses, p, *torch.autograd.grad((losses, p), z, (losses, p))])
    assert all(map(torch.equal, *outcomes))


@pytest.mark.parametrize("alpha", [1.0, 1.01, 1.5, 2.2])
def test_empty_single_and_scalar(alpha: float) -> None:
    assert entmax(torch.empty(0, 5), alpha).shape == (0, 5)
    assert entmax(torch.empty(5, 0), alpha).shape == (5, 0)
    assert entmax(torch.tensor(-3.0), alpha) == 1
    assert log_entmax(torch.tensor(-3.0), alpha) == 0
    assert log_entmax(torch.tensor([65504.0, -65504.0]).half(), 1.0)[1] == -65504
    half = torch.randn(3, 5).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert entmax(half, alpha).dtype == entmax(half[:0], alpha).dtype == torch.float32


@pytest.mark.parametrize("wrong", [0.99, -1.0, math.nan, INF])
def test_wrong_arguments_are_refused(wrong: float) -> None:
    for alpha in (wrong, torch.tensor([[1.5], [wrong]])):
        for function in (entmax, log_entmax):
            with pytest.raises(ValueError, match="alpha must be a number from 1"):
                function(torch.zeros(2, 3), alpha)
    with pytest.raises(ValueError, match="alpha"):
        Entmax(wrong)
    with pytest.raises(ValueError, match="floating point"):
        entmax(torch.tensor([1, 2]))
    with pytest.raises(ValueError, match="broadcast"):
        entmax(torch.randn(2, 3), torch.tensor([1.5, 1.5, 1.2], requires_grad=True))
    with pytest.raises(IndexError, match="dim must be from -2 to 1, got 2"):
        entmax(torch.zeros(4, 5), 1.5, 2)


@given(
    st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=40).map(torch.tensor),
    st.floats(1, 4),
    st.floats(1, 4),
    st.floats(-1000, 1000, width=32),
)
def test_properties(scores: Tensor, alpha: float, other: float, shift: float) -> None:
    """Sum, shift, order, permutation, margin, and smaller supports at larger alphas."""
    scores = scores.double()
    p = entmax(scores, alpha)
    assert float(p.sum()) == pytest.approx(1, abs=1e-12)
    # Above 2 the slope at the threshold is infinite: the rounding of the shift is magnified.
    tolerance = 1e-9 if alpha <= 2 else 1e-3
    assert torch.allclose(entmax(scores + shift, alpha), p, rtol=0, atol=tolerance)
    order = scores.argsort()
    assert (p[order].diff() >= -1e-12).all()
    assert torch.allclose(entmax(scores[order], alpha), p[order], atol=1e-12)
    low, high = sorted((alpha, other))
    assert ((log_entmax(scores, low) > -INF) | (entmax(scores, high) <= 1e-9)).all()
    if alpha > 1.01:
        scores[0] = scores.max() + 1.000001 / (alpha - 1)
        assert float(entmax(scores, alpha)[0]) == pytest.approx(1, abs=1e-12)
        assert int((log_entmax(scores, alpha) > -INF).sum()) == 1


@pytest.mark.parametrize("alpha", [1.0, 1 + 2.4e-7, 1.001, 1.5, 2.0, 3.0])
def test_entropy(alpha: float) -> None:
    """By definition; entmax is where score plus entropy is largest; its gradient in alpha."""
    scores = torch.randn(8, dtype=torch.float64)
    best = entmax(scores, alpha)
    others = torch.distributions.Dirichlet(torch.ones(8, dtype=torch.float64)).sample((300,))
    assert torch.allclose(tsallis_entropy(others, alpha), entropy_oracle(others, alpha), 1e-7)
    top = best @ scores + tsallis_entropy(best, alpha)
    assert (others @ scores + tsallis_entropy(others, alpha) <= top + 1e-12).all()
    each = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    series = tsallis_entropy(others, each)  # computed otherwise where alpha has a gradient
    assert torch.allclose(series, tsallis_entropy(others, alpha), rtol=1e-13, atol=0)
    p = others[0]
    tsallis_entropy(p, each).backward()
    near = [entropy_oracle(p, max(alpha, 1.001) + step) for step in (1e-6, -1e-6)]
    expected = float(near[0] - near[1]) / 2e-6
    if alpha < 1.001:
        expected = float(-(p * p.log() ** 2).sum() / 2 + (p * p.log()).sum())
    assert float(each.grad) == pytest.approx(expected, rel=2e-5)
    if alpha >= 1.5:  # from the right
        p = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64, requires_grad=True)
        tsallis_entropy(p, alpha).backward()
        assert float(p.grad[2]) == pytest.approx(1 / (alpha * (alpha - 1)))
    half = each.detach().half().requires_grad_()
    tsallis_entropy(torch.tensor([0.5, 0.5, 0.0]).half(), half).backward()
    assert half.grad.isfinite()
    for wrong in (0.5, math.nan, torch.tensor([0.5])):
        with pytest.raises(ValueError, match="alpha"):
            tsallis_entropy(best, wrong)


def test_the_module_is_there_where_it_can_be_built() -> None:
    assert_built(cpu.module)
