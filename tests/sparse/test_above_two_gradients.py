"""Gradients for alphas above 2, whose Jacobian weights p ** (2 - alpha) have no bound."""

import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from onmt_entmax.sparse import entmax, entmax_loss
from onmt_entmax.sparse.mapping import mapping_gradients
from tests.oracles import entmax_of_decimals
from tests.sparse.conftest import INTERPRETED

TARGET = torch.tensor([0, 1, 2])

pytestmark = pytest.mark.skipif(INTERPRETED, reason="the Triton kernels take alphas up to 2 only")
# By the fixture `device`, which chooses what works on rows on a CPU: PyTorch, or C++ with each
# instruction set.
on_each_implementation = pytest.mark.usefixtures("device")
above_two = pytest.mark.parametrize("alpha", [2.25, 2.5, 3.0, 4.0, 10.0])


def scores_for(alpha: float) -> Tensor:
    """Return scores ``(3, 5)`` of which several are in the support, in a leaf.

    Entmax multiplies scores by alpha - 1; divided by it, they are as far apart for every alpha.
    """
    return (torch.randn(3, 5, dtype=torch.float64) / (alpha - 1)).requires_grad_()


@on_each_implementation
@above_two
def test_gradients_in_scores(alpha: float) -> None:
    z = scores_for(alpha)
    assert gradcheck(lambda scores: entmax(scores, alpha), z)
    assert gradcheck(lambda scores: entmax_loss(scores, TARGET, alpha), z)
    assert gradgradcheck(lambda scores: entmax(scores, alpha), z)


@on_each_implementation
@above_two
def test_gradients_in_scores_and_alphas(alpha: float) -> None:
    z = scores_for(alpha)
    alphas = (alpha + torch.tensor([[0.0], [0.1], [0.2]], dtype=torch.float64)).requires_grad_()
    assert gradcheck(lambda scores: entmax(scores, alphas), z)
    assert gradcheck(entmax, (z, alphas))
    assert gradcheck(lambda scores, alpha: entmax_loss(scores, TARGET, alpha), (z, alphas))
    assert gradgradcheck(entmax, (z, alphas))


@on_each_implementation
@above_two
def test_gradients_of_a_loss_that_keeps_the_support_alone(alpha: float) -> None:
    """The support is a small part of the row."""
    outside = torch.full((3, 200), -5.0, dtype=torch.float64)
    columns = torch.arange(5) * 17

    def loss(scores: Tensor) -> Tensor:
        return entmax_loss(outside.index_copy(1, columns, scores), TARGET * 17, alpha)

    assert gradcheck(loss, scores_for(alpha))


@on_each_implementation
@pytest.mark.parametrize(
    ("alpha", "dtype"),
    [(2.25, torch.float32), (3.0, torch.float64), (10.0, torch.float32), (50.0, torch.float64)],
)
def test_gradients_equal_the_definition(alpha: float, dtype: torch.dtype) -> None:
    """Those in alpha do, too, although Jacobian weights reach 1e12 ** (alpha - 2)."""
    z, upstream = torch.randn(2, 8, 140, dtype=dtype)
    alphas = torch.full((8, 1), alpha, dtype=torch.float64)
    p = entmax(z / alpha, alphas)
    p[0, :9] = torch.tensor([1e-12, 1e-6, *([1 / 7] * 7)])
    # While autograd records, the definition is differentiated; else the implementation works.
    expected = mapping_gradients(p, alphas, upstream, of_alpha=True)
    with torch.no_grad():
        gradients = mapping_gradients(p, alphas, upstream, of_alpha=True)
    for gradient, exact in zip(gradients, expected, strict=True):
        # Errors are relative to the largest gradient of the row, which may overflow float32.
        largest = exact.abs().amax(-1, keepdim=True).clamp_min(1e-3)
        tolerance = 1e-6 if gradient.dtype == torch.float32 else 1e-12
        close = (gradient.double() - exact).abs() <= tolerance * largest
        in_range = largest < torch.finfo(gradient.dtype).max
        assert close[in_range.expand_as(gradient)].all()


@on_each_implementation
def test_the_gradient_in_alpha_of_small_probabilities() -> None:
    """It equals differences of decimals, where one Jacobian weight is 1e30 times another."""
    scores, upstream = (0.0, -0.33333333, -0.05), torch.tensor([[0.7, -1.0, 0.2]]).double()
    alpha = torch.tensor([[4.0]], dtype=torch.float64, requires_grad=True)
    row = torch.tensor([scores], dtype=torch.float64)
    (gradient,) = torch.autograd.grad(entmax(row, alpha), alpha, upstream)
    step = 1e-5
    above = torch.tensor(entmax_of_decimals(scores, 4.0 + step), dtype=torch.float64)
    below = torch.tensor(entmax_of_decimals(scores, 4.0 - step), dtype=torch.float64)
    expected = float(((above - below) * upstream).sum() / (2 * step))
    assert float(gradient) == pytest.approx(expected, rel=1e-5)


@on_each_implementation
def test_nan_and_infinity_stay_in_their_row() -> None:
    """In the gradient, too, where a nan of the support's upstream gradient is one of the row."""
    scores, upstream = torch.randn(2, 4, 30)
    scores[1, 3], scores[2, 3] = math.nan, math.inf
    upstream[3, int(scores[3].argmax())] = math.nan
    z = scores.requires_grad_()
    alphas = torch.full((4, 1), 3.0)
    p = entmax(z, alphas)
    assert p.isnan().all(1).tolist() == [False, True, True, False]
    (gradient,) = torch.autograd.grad(p, z, upstream)
    assert gradient.isnan().any(1).tolist() == [False, True, True, True]
