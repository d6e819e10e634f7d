"""entmax and log_entmax: values, corners, properties."""

import math

import entmax as peer
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from onmt_entmax.sparse.solvers import solve_log, solve_power
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from onmt_entmax.sparse import entmax, entmax_loss, log_entmax
from onmt_entmax.sparse.arguments import checked_alpha
from onmt_entmax.sparse.entropy import tsallis_entropy
from tests.oracles import entmax_oracle, entropy_oracle

ALPHAS = (1.0, 1 + 1e-6, 1 + 1e-4, 1.05, 1.1, 1.2, 1.33, 1.5, 1.7, 2.0, 2.5, 4.0)
INF = float("inf")


def close_to_oracle(scores: torch.Tensor, alpha: float) -> None:
    """Float64's values, within a few units in the last place times the support; its support."""
    result, oracle = entmax(scores, alpha), entmax_oracle(scores, alpha)
    epsilon = torch.finfo(scores.dtype).eps
    size = (oracle > 0).sum(-1, keepdim=True)
    error = (result.double() - oracle).abs() / oracle.amax(-1, keepdim=True)
    assert (error <= epsilon * (16 + size)).all(), error.max()
    assert ((result.double().sum(-1, keepdim=True) - 1).abs() <= epsilon * (16 + size)).all()
    assert (result >= 0).all()
    assert (result[oracle > 1e-5] > 0).all()
    if alpha > 1:
        beyond = scores < scores.amax(-1, keepdim=True) - 1.001 / (alpha - 1)
        assert (result[beyond] == 0).all()


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("spread", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("length", [1, 2, 13, 50, 776, 3001, 5000, 6400])
def test_equals_the_float64_oracle(alpha: float, spread: float, length: int) -> None:
    close_to_oracle(torch.randn(12, length) * spread, alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("offset", [1e5, -1e5, 3e-39, 1e30])
def test_offsets_do_not_matter(alpha: float, offset: float) -> None:
    # The sum is rounded first: what is compared is entmax of exactly these scores.
    close_to_oracle(torch.randn(20, 30) + offset, alpha)
    close_to_oracle(torch.randn(20, 5000) + offset, alpha)


ROWS = {
    "equal": torch.zeros(40),
    "equal long": torch.full((5000,), 3.0),
    "one huge": torch.tensor([0.0, 1e30, 0.0, 5.0]),
    "ties at the threshold": torch.tensor([1.0, 1.0, 0.0, 0.0, -1.0, -1.0]),
    "tied leaders": torch.tensor([2.0, 2.0, 2.0, -5.0]),
    "subnormal": torch.tensor([1e-40, -1e-40, 0.0, 3e-42]),
    "-inf": torch.tensor([-INF, 0.3, -INF, 0.1]),
    "one finite": torch.tensor([-INF, 7.0, -INF]),
    "masked": torch.full((9,), -1e18),
    "partly masked": torch.tensor([0.5, -1e18, 0.2, -1e18]),
    "descending": -torch.arange(5000).float() / 100,
    "outlier": torch.cat([torch.zeros(4999), torch.tensor([1.5])]),
    "close to zero": torch.logspace(-7, 0, 64).neg(),
}


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("name", ROWS)
def test_adversarial_rows(alpha: float, name: str) -> None:
    row = ROWS[name]
    close_to_oracle(row.unsqueeze(0), alpha)
    # The same beside ordinary rows, where the search for candidates sees all of them together.
    close_to_oracle(torch.cat([row.unsqueeze(0), torch.randn(30, len(row)) * 3]), alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("length", [4, 600, 5000])
def test_rows_of_minus_infinity_are_refused(alpha: float, length: int) -> None:
    scores = torch.randn(3, length)
    scores[1] = -INF
    for mapping in (entmax, log_entmax):
        with pytest.raises(ValueError, match="-inf everywhere"):
            mapping(scores, alpha)


@pytest.mark.parametrize("length", [1, 2, 13, 50])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sorting_and_newton_agree(length: int, dtype: torch.dtype) -> None:
    """Few scores are sorted; the same rows among many are solved by Newton's method."""
    few = torch.randn(20, length, dtype=dtype) * 2
    few[3], few[4, 0] = 1.0, 1e5
    few[5, 1:] = -INF
    many = few.repeat(4096 // few.numel() + 1, 1)
    close = 32 * torch.finfo(dtype).eps
    assert torch.allclose(entmax(few, 1.5), entmax(many, 1.5)[:20], rtol=0, atol=close)
    assert torch.equal(entmax(few, 1.5) > 0, entmax(many, 1.5)[:20] > 0)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("length", [6, 700, 5000])
def test_nan_stays_in_its_row(alpha: float, length: int) -> None:
    scores = torch.randn(20, length) * 3
    clean = entmax(scores, alpha)
    scores[4, 2] = float("nan")
    result = entmax(scores, alpha)
    assert result[4].isnan().any()
    kept = torch.arange(20) != 4
    assert torch.allclose(result[kept], clean[kept], atol=1e-6)


def test_the_slides_example() -> None:
    """Martins and Astudillo's five-dimensional example, to its four decimals."""
    scores = torch.tensor(
        [[0.9549, 0.4015, 1.3101, 0.5750, -1.9022], [-1.7090, -0.5747, -0.1654, 0.1718, 0.1057]]
    )
    softmax = torch.tensor(
        [[0.2672, 0.1536, 0.3811, 0.1827, 0.0153], [0.0465, 0.1447, 0.2179, 0.3052, 0.2857]]
    )
    sparsemax = torch.tensor([[0.3224, 0, 0.6776, 0, 0], [0, 0, 0.1305, 0.4678, 0.4017]])
    assert (entmax(scores, 1.0) - softmax).abs().max() <= 1.01e-4
    assert (entmax(scores, 2.0) - sparsemax).abs().max() <= 1.01e-4
    assert ((entmax(scores, 2.0) == 0) == (sparsemax == 0)).all()


@pytest.mark.parametrize("shape", [(7, 13), (30, 776), (30, 5000)])
def test_equals_entmax_1_3(shape: tuple[int, int]) -> None:
    scores = torch.randn(shape) * 2
    gradient = torch.randn(shape)
    for alpha, other in ((1.5, peer.entmax15), (2.0, peer.sparsemax)):
        ours, theirs = scores.clone().requires_grad_(), scores.clone().requires_grad_()
        result, expected = entmax(ours, alpha), other(theirs, dim=-1)
        assert torch.allclose(result, expected, atol=2e-6)
        result.backward(gradient)
        expected.backward(gradient)
        assert torch.allclose(ours.grad, theirs.grad, atol=2e-5)


@pytest.mark.parametrize("alpha", [1.0, 1.001, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_any_dimension(alpha: float, dim: int) -> None:
    scores = torch.randn(3, 4, 5)
    expected = entmax(scores.movedim(dim, -1).contiguous(), alpha).movedim(-1, dim)
    assert torch.allclose(entmax(scores, alpha, dim), expected, atol=1e-7)
    assert torch.allclose(log_entmax(scores, alpha, dim).exp(), expected, atol=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 1.01, 1.5, 2.0, 2.2])
def test_empty_single_and_scalar(alpha: float) -> None:
    assert entmax(torch.empty(0, 5), alpha).shape == (0, 5)
    assert entmax(torch.empty(5, 0), alpha).shape == (5, 0)
    assert torch.equal(entmax(torch.randn(4, 1), alpha), torch.ones(4, 1))
    assert torch.equal(log_entmax(torch.randn(4, 1), alpha), torch.zeros(4, 1))
    assert entmax(torch.tensor(-3.0), alpha) == 1
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert entmax(torch.empty(0, 5, dtype=torch.bfloat16), alpha).dtype == torch.float32


@pytest.mark.parametrize("alpha", [1.0, 1.5, torch.full((4, 1), 1.5)])
@pytest.mark.parametrize("length", [0, 5])
def test_a_dimension_that_is_not_there(alpha: float | Tensor, length: int) -> None:
    for dim in (2, -3):
        with pytest.raises(IndexError, match=f"dim must be from -2 to 1, got {dim}"):
            entmax(torch.zeros(4, length), alpha, dim)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("alpha", [1.0, 1.05, 1.5, 2.0])
def test_half_types_are_computed_in_float32(dtype: torch.dtype, alpha: float) -> None:
    scores = (torch.randn(6, 40) * 3).to(dtype)
    exact, result = entmax(scores.float(), alpha), entmax(scores, alpha)
    assert torch.equal(result, exact.to(dtype).where((exact == 0) | (exact.to(dtype) > 0), result))
    assert alpha == 1 or torch.equal(result > 0, exact > 0)
    masked = scores.masked_fill(torch.arange(40) > 5, -INF)
    assert not entmax(masked, alpha).isnan().any()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert entmax(scores, alpha).dtype == torch.float32


@pytest.mark.parametrize("alpha", [1.0, 1.0001, 1.2, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("length", [20, 5000])
def test_logarithms(alpha: float, length: int) -> None:
    scores = torch.randn(5, length, dtype=torch.float64) * 3
    logs, result = log_entmax(scores, alpha), entmax(scores, alpha)
    assert torch.allclose(logs.exp(), result, rtol=1e-9, atol=1e-15)
    assert ((logs > -INF) | (result == 0)).all()


def test_logarithm_survives_underflow() -> None:
    """A member of the support whose probability underflows keeps its logarithm."""
    scores = torch.tensor([0.0, -800.0])
    assert 0 < entmax(scores, 1.001)[1] < 1e-44
    assert float(log_entmax(scores, 1.001)[1]) == pytest.approx(1000 * math.log(0.2), 1e-6)


@pytest.mark.parametrize("wrong", [0.99, 0.0, -1.0, float("nan"), INF, torch.tensor([0.5, 1.5])])
def test_wrong_alpha_is_refused(wrong: float | torch.Tensor) -> None:
    with pytest.raises(ValueError, match="alpha"):
        entmax(torch.randn(2, 3), wrong if isinstance(wrong, float) else wrong.unsqueeze(1))


def test_wrong_scores_and_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="floating point"):
        entmax(torch.tensor([1, 2]))
    with pytest.raises(ValueError, match="broadcast"):
        entmax(torch.randn(2, 3), torch.tensor([1.5, 1.5, 1.2], requires_grad=True))


def test_input_is_left_alone() -> None:
    for length in (10, 5000):
        scores = torch.randn(20, length)
        before = scores.clone()
        for alpha in ALPHAS:
            entmax(scores, alpha)
            log_entmax(scores, alpha)
        assert torch.equal(scores, before)


@pytest.mark.parametrize("alpha", [1.0, 1.001, 1.4, 1.5, 2.0, 3.0])
def test_entropy_and_its_maximiser(alpha: float) -> None:
    """The entropy is its definition; entmax maximises score plus entropy over the simplex."""
    scores = torch.randn(8, dtype=torch.float64)
    best = entmax(scores, alpha)
    others = torch.distributions.Dirichlet(torch.ones(8, dtype=torch.float64)).sample((500,))
    assert torch.allclose(tsallis_entropy(others, alpha), entropy_oracle(others, alpha))
    top = best @ scores + tsallis_entropy(best, alpha)
    assert (others @ scores + tsallis_entropy(others, alpha) <= top + 1e-12).all()
    for wrong in (0.5, math.nan, torch.tensor([0.5])):
        with pytest.raises(ValueError, match="alpha"):
            tsallis_entropy(best, wrong)


vectors = st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=40).map(torch.tensor)
alphas = st.floats(1, 4)


@given(vectors, alphas, st.floats(-1000, 1000, width=32), st.randoms(use_true_random=False))
def test_sum_shift_permutation_order(scores, alpha, shift, random) -> None:
    scores = scores.double()
    result = entmax(scores, alpha)
    assert result.sum() == pytest.approx(1, abs=1e-9)
    # Above 2 the slope at the threshold is infinite: the rounding of the shift is magnified.
    tolerance = 1e-9 if alpha <= 2 else 1e-3
    assert torch.allclose(entmax(scores + shift, alpha), result, atol=tolerance)
    order = torch.tensor(random.sample(range(len(scores)), len(scores)))
    assert torch.allclose(entmax(scores[order], alpha), result[order], atol=1e-12)
    ascending = result[scores.argsort()]
    assert (ascending.diff() >= -1e-12).all()


@given(vectors, alphas, alphas)
def test_support_shrinks_as_alpha_grows(scores, one, other) -> None:
    low, high = sorted((one, other))
    scores = scores.double()
    smaller, larger = entmax(scores, high) > 1e-9, log_entmax(scores, low) > -INF
    assert (larger | ~smaller).all()


@given(vectors, st.floats(1.01, 4))
def test_a_lead_takes_everything(scores, alpha) -> None:
    scores = scores.double()
    scores[0] = scores.max() + 1.000001 / (alpha - 1)
    expected = torch.zeros_like(scores)
    expected[0] = 1
    assert torch.allclose(entmax(scores, alpha), expected, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [0.0, 0.01, 0.1, 0.3, 1.0, 6.0])
def test_start_from_mean_and_deviation(dtype: torch.dtype, spread: float) -> None:
    """Rows of 776: nearly equal, with one huge score, far from 0, and half of them -inf."""
    torch.manual_seed(3)
    scores = torch.randn(6, 776, dtype=dtype) * spread
    scores[1, 5] = 50.0
    scores[2] += 1e4
    scores[3, ::2] = -torch.inf
    scores[4, 1:] = -1e30
    solved = solve_power(scores, 1.5)
    total = (solved.margin.double() / 2).square().sum(1)
    torch.testing.assert_close(
        total, torch.ones_like(total), rtol=0, atol=60 * torch.finfo(dtype).eps
    )
    reference = solve_log(scores, 1.5)
    inside = reference.log_probabilities.exp() > 1e-5
    assert bool((solved.margin > 0)[inside].all())
    shift = reference.shift - 2
    torch.testing.assert_close(
        solved.threshold.double(), shift, rtol=0, atol=30 * torch.finfo(dtype).eps
    )


def test_all_rows_of_minus_infinity_are_refused_at_medium_length() -> None:
    scores = torch.zeros(3, 776)
    scores[1] = -torch.inf
    with pytest.raises(ValueError, match="-inf everywhere"):
        solve_power(scores, 1.5)


@pytest.mark.parametrize(("alpha", "length"), [(5.0, 18_000), (8.0, 1000), (20.0, 10), (50.0, 3)])
def test_equal_scores_share_evenly_at_a_large_alpha(alpha: float, length: int) -> None:
    """The threshold is next to the scores; it must not be rounded onto them."""
    scores = torch.zeros(2, length, requires_grad=True)
    assert torch.allclose(entmax(scores, alpha), torch.tensor(1 / length))
    entmax_loss(scores, torch.tensor([0, 1]), alpha, reduction="sum").backward()
    expected = torch.full((2, length), 1 / length)
    expected[[0, 1], [0, 1]] -= 1
    assert torch.allclose(scores.grad, expected, atol=1e-6)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 3.0])
def test_the_entropys_gradient_at_zero_is_that_from_the_right(alpha: float) -> None:
    p = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64, requires_grad=True)
    tsallis_entropy(p, alpha).backward()
    step = 1e-9
    moved = torch.tensor([0.5, 0.5, step], dtype=torch.float64)
    slope = (tsallis_entropy(moved, alpha) - tsallis_entropy(p.detach(), alpha)) / step
    assert float(p.grad[2]) == pytest.approx(float(slope), rel=1e-3)
    assert float(p.grad[2]) == pytest.approx(1 / (alpha * (alpha - 1)))


@pytest.mark.filterwarnings("error")
def test_every_alpha_of_a_tensor_must_be_a_number() -> None:
    for wrong in (0.5, float("nan"), float("inf")):
        alpha = torch.tensor([[1.5], [wrong]], requires_grad=True)
        with pytest.raises(ValueError, match="every alpha must be a number from 1"):
            entmax(torch.zeros(2, 3), alpha)


@pytest.mark.parametrize("alpha", [1.0, 1.5, torch.tensor([1.0]).requires_grad_()])
def test_what_arrives_outside_the_support_is_not_used(alpha: float | Tensor) -> None:
    scores = torch.tensor([0.0, 1.0, -INF], requires_grad=True)
    logs = log_entmax(scores, alpha)
    clean, broken = (
        torch.autograd.grad(logs, scores, torch.tensor([1.0, 0.0, last]), retain_graph=True)[0]
        for last in (0.0, torch.nan)
    )
    assert torch.equal(clean, broken)
    assert clean[2] == 0


def test_an_alpha_below_1_is_not_a_number_where_it_cannot_be_looked_at() -> None:
    scores = torch.randn(2, 5)
    with FlopCounterMode(display=False):  # one of PyTorch's modes, under which nothing is looked at
        assert entmax(scores, torch.tensor(0.5)).isnan().all()
        assert entmax(scores, torch.tensor([1.5])).isfinite().all()


def test_an_alpha_of_no_dimensions_goes_to_the_scores() -> None:
    scores = torch.randn(2, 5, device="meta")
    assert checked_alpha(torch.nn.Parameter(torch.tensor(1.5)), scores, -1).device == scores.device


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("alpha", [1.0, 1 + 2.4e-7, 1.000002, 1.2, 1.5])
def test_the_entropys_gradient_in_alpha(alpha: float, dtype: torch.dtype) -> None:
    """Near Shannon's, too: half of sum p log(p)^2 from the power, and H from the factor."""
    p = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    given = torch.tensor(alpha, dtype=dtype).requires_grad_()
    tsallis_entropy(p.to(dtype), given).backward()
    near = [entropy_oracle(p, max(alpha, 1.001) + step) for step in (1e-6, -1e-6)]
    expected = float(near[0] - near[1]) / 2e-6
    if alpha < 1.001:
        expected = float(-(p * p.log() ** 2).sum() / 2 + (p * p.log()).sum())
    assert given.grad is not None
    assert float(given.grad) == pytest.approx(expected, rel=2e-5)
