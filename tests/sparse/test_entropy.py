"""Tsallis entropy: its value, its part in what entmax maximises, and its gradients."""

import math

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax, tsallis_entropy
from tests.oracles import entropy_oracle

NEAR_1 = 1 + 2.4e-7  # two numbers of float32 above 1
all_alphas = pytest.mark.parametrize("alpha", [1.0, NEAR_1, 1.001, 1.5, 2.0, 3.0])


def random_distributions() -> Tensor:
    """Return distributions ``(300, 8)`` in float64."""
    return torch.distributions.Dirichlet(torch.ones(8, dtype=torch.float64)).sample((300,))


# --- the entropy ---


@all_alphas
def test_the_entropy_equals_its_definition(alpha: float) -> None:
    p = random_distributions()
    assert torch.allclose(tsallis_entropy(p, alpha), entropy_oracle(p, alpha), rtol=1e-7)


@all_alphas
def test_entmax_is_where_score_plus_entropy_is_largest(alpha: float) -> None:
    scores, others = torch.randn(8, dtype=torch.float64), random_distributions()
    best = entmax(scores, alpha)
    largest = best @ scores + tsallis_entropy(best, alpha)
    assert (others @ scores + tsallis_entropy(others, alpha) <= largest + 1e-12).all()


@all_alphas
def test_the_entropy_of_a_learned_alpha_is_the_same(alpha: float) -> None:
    """Another formula computes it, since alpha has a gradient."""
    p = random_distributions()
    learned = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    expected = tsallis_entropy(p, alpha)
    assert torch.allclose(tsallis_entropy(p, learned), expected, rtol=1e-13, atol=0)


# --- gradients ---


def alpha_gradient(p: Tensor, alpha: float) -> float:
    """Return the gradient of a distribution's entropy ``(8,)`` with respect to alpha."""
    learned = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    tsallis_entropy(p, learned).backward()
    return float(learned.grad)


@pytest.mark.parametrize("alpha", [1.001, 1.5, 2.0, 3.0])
def test_the_gradient_with_respect_to_alpha_equals_a_finite_difference(alpha: float) -> None:
    p = random_distributions()[0]
    step = 1e-6
    above, below = entropy_oracle(p, alpha + step), entropy_oracle(p, alpha - step)
    quotient = float(above - below) / (2 * step)
    # Of 16 digits, the difference of two entropies at alphas 2e-6 apart loses about six, and the
    # oracle's division by alpha - 1 = 0.001 up to three more.
    assert alpha_gradient(p, alpha) == pytest.approx(quotient, rel=1e-6)


@pytest.mark.parametrize("alpha", [1.0, NEAR_1])
def test_the_gradient_with_respect_to_alpha_near_1_is_its_limit(alpha: float) -> None:
    """Finite differences have no digits there."""
    p = random_distributions()[0]
    limit = -(p * p.log() ** 2).sum() / 2 + (p * p.log()).sum()
    # The gradients at NEAR_1 and 1 differ by about as much as the two alphas do, 2.4e-7.
    assert alpha_gradient(p, alpha) == pytest.approx(float(limit), rel=1e-5)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 3.0])
def test_the_gradient_at_probability_0_is_that_from_above(alpha: float) -> None:
    p = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64, requires_grad=True)
    tsallis_entropy(p, alpha).backward()
    assert float(p.grad[2]) == pytest.approx(1 / (alpha * (alpha - 1)))


# In float16, 1.001 is rounded to the next number above 1.
@pytest.mark.parametrize("alpha", [1.0, 1.001, 1.5, 2.0, 3.0])
def test_a_learned_alpha_in_float16_has_a_finite_gradient(alpha: float) -> None:
    learned = torch.tensor(alpha).half().requires_grad_()
    tsallis_entropy(torch.tensor([0.5, 0.5, 0.0]).half(), learned).backward()
    assert learned.grad.isfinite()


# --- refused ---


@pytest.mark.parametrize(
    "wrong", [0.5, math.nan, torch.tensor([0.5])], ids=["0.5", "nan", "a tensor"]
)
def test_an_alpha_below_1_is_refused(wrong: float | Tensor) -> None:
    with pytest.raises(ValueError, match="alpha must be at least 1"):
        tsallis_entropy(torch.tensor([0.5, 0.5]), wrong)
