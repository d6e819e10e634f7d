"""Entmax with alphas above 2 of random rows, short and long, equals its definition."""

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax, entmax_loss, reference
from tests.oracles import loss_oracle

ALPHAS = (2.0, 2.0000001, 2.25, 2.5, 3.0, 4.0, 10.0)

# In machine epsilons of the type: a few operations have 4, in the definition and in what is tested.
EPSILONS = 8
# The definition and what is tested may err by some 1e-16 in the threshold and in each score, whose
# sizes differ: up to this, a probability may be 0 in one of them.
RESOLVED = 1e-12
# Eight epsilons in float32. In float64, sums over 2,500 scores lose up to three of its 16 digits.
LOSS_TOLERANCES = {torch.float32: 1e-6, torch.float64: 1e-13}

# The Triton kernels take alphas up to 2 only.
on_each_implementation = pytest.mark.usefixtures("cpu_implementation")
types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
# Of 2,500 scores, the support then has all to about 120 (from alpha 2 to 3), 120 to 10, and 6 to 2.
spreads = pytest.mark.parametrize("spread", [1e-4, 0.02, 1.0])
# C++ computes with vectors of 16 scores in float32, of 8 in float64, and finds the support of rows
# of 512 scores or more by blocks.
lengths = pytest.mark.parametrize("length", [1, 3, 16, 17, 130, 700, 2500])


def rows_of(length: int, spread: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return scores ``(rows, length)`` with a tie in each row, and alphas ``(rows, 1)``."""
    alphas = torch.tensor(ALPHAS, dtype=torch.float64).unsqueeze(1)
    scores = (torch.randn(len(alphas), length, dtype=torch.float64) * spread).to(dtype)
    scores[:, length // 2] = scores[:, 0]
    return scores, alphas


@on_each_implementation
@types
@spreads
@lengths
def test_probabilities_equal_the_definition(length: int, spread: float, dtype: torch.dtype) -> None:
    scores, alphas = rows_of(length, spread, dtype)
    exact = reference.mapping(scores.double(), alphas, logs=False)
    error = (entmax(scores, alphas).double() - exact).abs().max()
    assert error <= EPSILONS * torch.finfo(dtype).eps


@on_each_implementation
@types
@spreads
@lengths
def test_the_support_has_the_scores_that_it_has_by_definition(
    length: int, spread: float, dtype: torch.dtype
) -> None:
    scores, alphas = rows_of(length, spread, dtype)
    exact = reference.mapping(scores.double(), alphas, logs=False)
    assert (entmax(scores, alphas) > 0)[exact >= RESOLVED].all()


@on_each_implementation
@types
@spreads
@lengths
def test_an_alpha_gives_the_same_as_a_number_and_in_a_tensor(
    length: int, spread: float, dtype: torch.dtype
) -> None:
    scores, alphas = rows_of(length, spread, dtype)
    by_tensor = entmax(scores, alphas)
    by_number = torch.stack([entmax(z, float(a)) for z, a in zip(scores, alphas, strict=True)])
    torch.testing.assert_close(by_number, by_tensor, rtol=1e-6, atol=1e-7)  # float32's rounding


@on_each_implementation
@types
@spreads
@lengths
def test_losses_equal_the_definition(length: int, spread: float, dtype: torch.dtype) -> None:
    scores, alphas = rows_of(length, spread, dtype)
    target = torch.zeros(len(scores)).long()
    one_hot = torch.nn.functional.one_hot(target, length)
    losses = entmax_loss(scores, target, alphas, reduction="none").double()
    expected = [
        float(loss_oracle(z.unsqueeze(0), y.unsqueeze(0), float(alpha)))
        for z, y, alpha in zip(scores, one_hot, alphas, strict=True)
    ]
    tolerance = LOSS_TOLERANCES[dtype]
    assert losses.tolist() == pytest.approx(expected, rel=tolerance, abs=tolerance)
