"""Gradients and second derivatives of entmax and log_entmax, with respect to scores and alpha."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from onmt_entmax.sparse import entmax, entmax_loss, log_entmax
from onmt_entmax.sparse.mapping import mapping_gradients

ALPHAS = (1.0, 1.0001, 1.2, 1.5, 2.0, 2.5)
INDEX = torch.tensor([0, 3, 9])


def random_scores(*shape: int) -> Tensor:
    """Return scores in float64, in a leaf."""
    return (torch.randn(*shape, dtype=torch.float64) * 2).requires_grad_()


def finite_logs(scores: Tensor, alpha: float | Tensor, dim: int = -1) -> Tensor:
    """Return log-probabilities with 0 for -inf, which finite differences can be taken of."""
    return log_entmax(scores, alpha, dim).nan_to_num(neginf=0.0)


Mapping = Callable[..., Tensor]
mappings = pytest.mark.parametrize("mapping", [entmax, finite_logs])
# The lowest of three alphas: near softmax; in the middle; just below 2, so that the others may be
# above 2, where another algorithm solves; and above 2.
lows = pytest.mark.parametrize("low", [1.001, 1.5, 1.89, 2.4])
some_alphas = pytest.mark.parametrize("alpha", [1.0, 1.3, 2.0, 2.5])
number_or_learned = pytest.mark.parametrize("learned", [False, True], ids=["number", "learned"])


# --- against finite differences, by PyTorch's gradcheck with its default tolerances ----------


# Each alpha has one of two dimensions: what a dimension changes is the same for every alpha.
@mappings
@pytest.mark.parametrize(
    ("alpha", "dim"), [(1.0, -1), (1.0001, 0), (1.2, -1), (1.5, 0), (2.0, -1), (2.5, 0)]
)
def test_gradients_with_respect_to_scores_equal_finite_differences(
    mapping: Mapping, alpha: float, dim: int, device: str
) -> None:
    inputs = random_scores(2, 3, 4).to(device)
    assert gradcheck(lambda scores: mapping(scores, alpha, dim), inputs)


def test_a_logarithm_far_below_the_smallest_float_has_its_gradient() -> None:
    """The logarithm is -1060, so that the probability and its Jacobian weight round to 0."""
    scores = torch.tensor([0.0, -199.0], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda scores: log_entmax(scores, 1.005), scores)


@mappings
@pytest.mark.parametrize("alpha", ALPHAS)
def test_second_derivatives_with_respect_to_scores_equal_finite_differences(
    mapping: Mapping, alpha: float, device: str
) -> None:
    inputs = random_scores(3, 4).to(device)
    assert gradgradcheck(lambda scores: mapping(scores, alpha), inputs)


def alphas_from(low: float, device: str) -> Tensor:
    """Return alphas ``(3, 1)`` from a number to 0.1 above, in a leaf."""
    return (low + 0.1 * torch.rand(3, 1, dtype=torch.float64, device=device)).requires_grad_()


@mappings
@lows
def test_gradients_with_respect_to_alpha_equal_finite_differences(
    mapping: Mapping, low: float, device: str
) -> None:
    assert gradcheck(mapping, (random_scores(2, 3, 4).to(device), alphas_from(low, device)))


@lows
def test_second_derivatives_with_respect_to_scores_and_alpha_equal_finite_differences(
    low: float, device: str
) -> None:
    assert gradgradcheck(entmax, (random_scores(3, 4).to(device), alphas_from(low, device)))


# --- against formulas ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("above", "tolerance"),
    [
        pytest.param(0.0, 1e-10, id="at 1"),
        pytest.param(1e-8, 1e-6, id="close to 1"),
        pytest.param(1e-4, 1e-2, id="near 1"),
    ],
)
def test_the_gradient_with_respect_to_alpha_near_1_is_the_limit_of_the_formula(
    above: float, tolerance: float, device: str
) -> None:
    """The derivative of Proposition 1 of Correia et al. (2019) has a limit at alpha 1.

    It is continuous there: its difference to the limit is about a hundred times alpha - 1 at most.
    """
    z, weights = torch.randn(2, 4, 6, dtype=torch.float64, device=device)
    p = torch.softmax(z, -1)
    halved = p * p.log() ** 2 / 2
    derivative = p * halved.sum(-1, keepdim=True) - halved
    expected = float((derivative * weights).sum())
    alpha = torch.tensor(1 + above, dtype=torch.float64, device=device, requires_grad=True)
    (entmax(z, alpha) * weights).sum().backward()
    assert float(alpha.grad) == pytest.approx(expected, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("alpha", "length"), [(1.1, 140), (1.5, 7), (2.0, 140), (10.0, 140), (50.0, 7)]
)
def test_gradients_with_respect_to_scores_equal_the_formula(
    alpha: float, length: int, dtype: torch.dtype, device: str
) -> None:
    """This is Proposition 1 of Peters et al. (2019); gradients are finite even if s is infinite."""
    z = (torch.randn(8, length, dtype=dtype, device=device) / alpha).requires_grad_()
    upstream = torch.randn(8, length, dtype=dtype, device=device)
    result = entmax(z, alpha)
    p = result.detach().double()
    (gradient,) = torch.autograd.grad(result, z, upstream)
    assert gradient.isfinite().all()
    weights = torch.where(p > 0, p, 1.0) ** (2 - alpha) * (p > 0)
    mean = (weights * upstream).sum(1, keepdim=True) / weights.sum(1, keepdim=True)
    expected = weights * (upstream - mean)
    scale = expected.abs().amax(1, keepdim=True)
    # With larger weights, the gradients of small probabilities are differences of huge numbers.
    comparable = weights.amax(1) < 1e8
    tolerance = 1e-4 if dtype == torch.float32 else 1e-7  # about the root of the machine epsilon
    assert ((gradient - expected).abs() <= tolerance * scale)[comparable].all()


# --- outside the support ---------------------------------------------------------------------


def scores_of_zeros(device: str) -> Tensor:
    """Return scores ``(1, 4)``; columns 1 and 3, with -inf and a very low score, are outside."""
    return torch.tensor([[0.1, -torch.inf, 0.4, -1e18]], device=device, requires_grad=True)


def alpha_argument(alpha: float, learned: bool, device: str) -> float | Tensor:
    """Return alpha as a number, or if it is learned as a tensor with a gradient."""
    return torch.full((1, 1), alpha, device=device, requires_grad=True) if learned else alpha


@some_alphas
@number_or_learned
def test_the_gradient_is_0_outside_the_support(alpha: float, learned: bool, device: str) -> None:
    z = scores_of_zeros(device)
    p = entmax(z, alpha_argument(alpha, learned, device))
    (gradient,) = torch.autograd.grad(p, z, torch.randn_like(z))
    assert gradient.isfinite().all()
    # At a learned alpha of 1, the very low score gets the smallest positive float32, 1.4e-45, and
    # so a gradient of that order.
    assert not (gradient[0, 1::2].abs() > 1e-40).any()


@some_alphas
@number_or_learned
def test_an_upstream_gradient_outside_the_support_is_not_used(
    alpha: float, learned: bool, device: str
) -> None:
    z, alpha_or_leaf = scores_of_zeros(device), alpha_argument(alpha, learned, device)
    leaves = (z, alpha_or_leaf) if isinstance(alpha_or_leaf, Tensor) else (z,)

    def gradients(outside: float) -> tuple[Tensor, ...]:
        upstream = torch.tensor([[1.0, outside, 2.0, 0]], device=device)
        return torch.autograd.grad(log_entmax(z, alpha_or_leaf), leaves, upstream)

    torch.testing.assert_close(gradients(torch.nan), gradients(0.0), rtol=0, atol=0)


# --- how gradients are taken -----------------------------------------------------------------


def losses_of_rows(z: Tensor, alpha: float) -> Tensor:
    """Return losses ``(3,)`` of scores ``(3, 10)``."""
    return entmax_loss(z, INDEX, alpha, label_smoothing=0.1, reduction="none")


@pytest.mark.parametrize("alpha", [1.0, 1.05, 1.5, 2.5])
@pytest.mark.parametrize("function", [entmax, losses_of_rows])
def test_several_gradients_taken_at_once_are_those_taken_one_by_one(
    function: Callable[[Tensor, float], Tensor], alpha: float
) -> None:
    z = random_scores(3, 10)
    result = function(z, alpha)
    upstream = torch.randn(4, *result.shape, dtype=torch.float64)
    (gradients,) = torch.autograd.grad(
        result, z, upstream, retain_graph=True, is_grads_batched=True
    )
    for gradient, of_one in zip(gradients, upstream, strict=True):
        (alone,) = torch.autograd.grad(result, z, of_one, retain_graph=True)
        torch.testing.assert_close(gradient, alone)


def test_gradients_without_a_graph_equal_those_with_one(device: str) -> None:
    """Each implementation computes the former; autograd can differentiate the latter again."""
    alpha = torch.tensor([1.0, 1.001, 1.3, 1.5, 2.0], dtype=torch.float64, device=device).view(5, 1)
    z, upstream = torch.randn(2, 5, 140, dtype=torch.float64, device=device)
    p = entmax(z, alpha)
    expected = mapping_gradients(p, alpha, upstream, wants_alpha=True)
    with torch.no_grad():
        gradients = mapping_gradients(p, alpha, upstream, wants_alpha=True)
    for gradient, exact in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient.double(), exact, rtol=1e-7, atol=1e-9)
