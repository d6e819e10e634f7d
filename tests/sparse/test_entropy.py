"""Tsallis entropy: its definition, what entmax maximises, and its gradients."""

import math

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax, tsallis_entropy
from tests.oracles import entropy_oracle


def random_distributions() -> Tensor:
    """Return distributions ``(300, 8)``."""
    return torch.distributions.Dirichlet(torch.ones(8, dtype=torch.float64)).sample((300,))


NEAR_1 = 1 + 2.4e-7  # two numbers of float32 above 1
# Of a difference quotient: differences of 1e-6 lose 9 of 16 digits, and alpha - 1 = 0.001 more.
ROUNDING = 2e-5
of_entropy = pytest.mark.parametrize("alpha", [1.0, NEAR_1, 1.001, 1.5, 2.0, 3.0])


@of_entropy
def test_the_entropy_equals_its_definition(alpha: float) -> None:
    p = random_distributions()
    assert torch.allclose(tsallis_entropy(p, alpha), entropy_oracle(p, alpha), rtol=1e-7)


@of_entropy
def test_entmax_is_where_score_plus_entropy_is_largest(alpha: float) -> None:
    scores, others = torch.randn(8, dtype=torch.float64), random_distributions()
    best = entmax(scores, alpha)
    largest = best @ scores + tsallis_entropy(best, alpha)
    assert (others @ scores + tsallis_entropy(others, alpha) <= largest + 1e-12).all()


@of_entropy
def test_the_entropy_of_a_learned_alpha_is_the_same(alpha: float) -> None:
    """Another formula computes it, since alpha has a gradient."""
    p = random_distributions()
    learned = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    expected = tsallis_entropy(p, alpha)
    assert torch.allclose(tsallis_entropy(p, learned), expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize("alpha", [1.001, 1.5, 2.0, 3.0])
def test_the_gradient_in_alpha_is_a_difference_quotient(alpha: float) -> None:
    p = random_distributions()[0]
    learned = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    tsallis_entropy(p, learned).backward()
    step = 1e-6
    above, below = entropy_oracle(p, alpha + step), entropy_oracle(p, alpha - step)
    assert float(learned.grad) == pytest.approx(float(above - below) / (2 * step), rel=ROUNDING)


@pytest.mark.parametrize("alpha", [1.0, NEAR_1])
def test_the_gradient_in_alpha_near_1_is_its_limit(alpha: float) -> None:
    """Difference quotients have no digits there."""
    p = random_distributions()[0]
    learned = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    tsallis_entropy(p, learned).backward()
    limit = -(p * p.log() ** 2).sum() / 2 + (p * p.log()).sum()
    assert float(learned.grad) == pytest.approx(float(limit), rel=ROUNDING)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 3.0])
def test_the_gradient_at_probability_0_is_that_from_above(alpha: float) -> None:
    p = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64, requires_grad=True)
    tsallis_entropy(p, alpha).backward()
    assert float(p.grad[2]) == pytest.approx(1 / (alpha * (alpha - 1)))


@of_entropy
def test_a_learned_alpha_in_float16_has_a_finite_gradient(alpha: float) -> None:
    learned = torch.tensor(alpha).half().requires_grad_()
    tsallis_entropy(torch.tensor([0.5, 0.5, 0.0]).half(), learned).backward()
    assert learned.grad.isfinite()


@pytest.mark.parametrize(
    "wrong", [0.5, math.nan, torch.tensor([0.5])], ids=["0.5", "nan", "a tensor"]
)
def test_an_alpha_below_1_is_refused(wrong: float | Tensor) -> None:
    with pytest.raises(ValueError, match="alpha must be at least 1"):
        tsallis_entropy(torch.tensor([0.5, 0.5]), wrong)
