"""Gradients for alphas above 2, whose Jacobian weights p ** (2 - alpha) have no bound."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from onmt_entmax.sparse import entmax, entmax_loss
from onmt_entmax.sparse.mapping import mapping_gradients
from tests.oracles import entmax_of_decimals

TARGET = torch.tensor([0, 1, 2])

# The Triton kernels take alphas up to 2 only.
on_each_implementation = pytest.mark.usefixtures("cpu_implementation")
above_two = pytest.mark.parametrize("alpha", [2.25, 3.0, 10.0])


def scores_for(alpha: float) -> Tensor:
    """Return scores ``(3, 5)`` with several in each row's support, in a leaf.

    Entmax multiplies scores by alpha - 1; divided by it, they are as far apart for every alpha.
    """
    return (torch.randn(3, 5, dtype=torch.float64) / (alpha - 1)).requires_grad_()


def alphas_from(alpha: float) -> Tensor:
    """Return three different alphas ``(3, 1)``, in a leaf."""
    return (alpha + torch.tensor([[0.0], [0.1], [0.2]], dtype=torch.float64)).requires_grad_()


def losses(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Return losses ``(3,)`` of scores ``(3, 5)``."""
    return entmax_loss(scores, TARGET, alpha, reduction="none")


# --- against finite differences, by PyTorch's gradcheck with its default tolerances ----------

Differentiated = Callable[[Tensor, float | Tensor], Tensor]
mapping_and_loss = pytest.mark.parametrize("function", [entmax, losses])


@on_each_implementation
@above_two
@mapping_and_loss
def test_gradients_with_respect_to_scores_equal_finite_differences(
    function: Differentiated, alpha: float
) -> None:
    assert gradcheck(lambda scores: function(scores, alpha), scores_for(alpha))


@on_each_implementation
@above_two
def test_second_derivatives_with_respect_to_scores_equal_finite_differences(alpha: float) -> None:
    assert gradgradcheck(lambda scores: entmax(scores, alpha), scores_for(alpha))


@on_each_implementation
@above_two
@mapping_and_loss
def test_gradients_with_respect_to_scores_and_alphas_equal_finite_differences(
    function: Differentiated, alpha: float
) -> None:
    assert gradcheck(function, (scores_for(alpha), alphas_from(alpha)))


@on_each_implementation
@above_two
def test_second_derivatives_with_respect_to_scores_and_alphas_equal_finite_differences(
    alpha: float,
) -> None:
    assert gradgradcheck(entmax, (scores_for(alpha), alphas_from(alpha)))


@on_each_implementation
@above_two
def test_gradients_of_a_loss_with_a_small_support_equal_finite_differences(
    alpha: float,
) -> None:
    """The loss keeps the support alone for the backward pass."""
    outside = torch.full((3, 200), -5.0, dtype=torch.float64)
    columns = torch.arange(5) * 17

    def loss(scores: Tensor) -> Tensor:
        return entmax_loss(outside.index_copy(1, columns, scores), TARGET * 17, alpha)

    assert gradcheck(loss, scores_for(alpha))


# --- against formulas ------------------------------------------------------------------------


def gradients_by_formula(p: Tensor, alpha: float, upstream: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients with respect to scores and alpha in float64.

    With Jacobian weights s = p ** (2 - alpha) and their shares q = s / sum(s), Proposition 1 of
    Peters, Niculae and Martins (2019) gives the gradient ``sum_j s_i q_j (g_i - g_j)`` with respect
    to the score i. Proposition 1 of Correia, Niculae and Martins (2019) gives the derivatives with
    respect to alpha.

    Args:
        p: probabilities ``(rows, n)``.
        alpha: alpha of all rows.
        upstream: g, the gradient with respect to the probabilities, ``(rows, n)``.

    Returns:
        ``(rows, n)`` and ``(rows, 1)``.
    """
    p, upstream = p.double(), upstream.double()
    log_s = torch.where(p > 0, (2 - alpha) * p.log(), -math.inf)
    log_q = log_s.log_softmax(1)
    # As logarithms, since s may be infinite; (rows, n, n).
    products = (log_s.unsqueeze(2) + log_q.unsqueeze(1)).exp()
    differences = upstream.unsqueeze(2) - upstream.unsqueeze(1)
    # On the diagonal, 0 times a product that may be infinite.
    grad_scores = torch.where(differences == 0, 0.0, products * differences).sum(2)
    q, entropies = log_q.exp(), -torch.xlogy(p, p)
    beta, of_entropies = alpha - 1, entropies - q * entropies.sum(1, keepdim=True)
    derivatives = (p - q) / beta**2 + of_entropies / beta
    return grad_scores, (derivatives * upstream).sum(1, keepdim=True)


@on_each_implementation
@pytest.mark.parametrize(
    ("alpha", "dtype"),
    [(2.25, torch.float32), (3.0, torch.float64), (10.0, torch.float32), (50.0, torch.float64)],
)
def test_gradients_equal_the_formulas(alpha: float, dtype: torch.dtype) -> None:
    """The first row has a probability of 1e-12, and so a Jacobian weight of 1e12 ** (alpha - 2)."""
    z, upstream = torch.randn(2, 8, 140, dtype=dtype)
    p = entmax(z / alpha, alpha)
    p[0] = 0
    p[0, :9] = torch.tensor([1e-12, 1e-6, *([(1 - 1e-6) / 7] * 7)], dtype=dtype)
    alphas = torch.full((8, 1), alpha, dtype=torch.float64)
    with torch.no_grad():  # else the gradients would be the differentiable ones, of PyTorch
        gradients = mapping_gradients(p, alphas, upstream, wants_alpha=True)
    for gradient, exact in zip(gradients, gradients_by_formula(p, alpha, upstream), strict=True):
        # Errors are relative to the largest gradient of the row, which may overflow float32. The
        # tolerances are eight machine epsilons in float32; in float64 they are thousands, since the
        # shares of weights are exponentials of logarithms of up to a thousand.
        largest = exact.abs().amax(-1, keepdim=True).clamp_min(1e-3)
        tolerance = 1e-6 if dtype == torch.float32 else 1e-12
        close = (gradient.double() - exact).abs() <= tolerance * largest
        in_range = largest < torch.finfo(gradient.dtype).max
        assert close[in_range.expand_as(gradient)].all()


@on_each_implementation
def test_the_gradient_with_respect_to_alpha_where_one_weight_is_1e30_times_another() -> None:
    """The expected gradient is a finite difference of probabilities with fifty digits."""
    scores, upstream = (0.0, -0.33333333, -0.05), torch.tensor([[0.7, -1.0, 0.2]]).double()
    alpha = torch.tensor([[4.0]], dtype=torch.float64, requires_grad=True)
    row = torch.tensor([scores], dtype=torch.float64)
    (gradient,) = torch.autograd.grad(entmax(row, alpha), alpha, upstream)
    step = 1e-5  # the error of the difference is about its square times the third derivative
    above = torch.tensor(entmax_of_decimals(scores, 4.0 + step), dtype=torch.float64)
    below = torch.tensor(entmax_of_decimals(scores, 4.0 - step), dtype=torch.float64)
    expected = float(((above - below) * upstream).sum() / (2 * step))
    assert float(gradient) == pytest.approx(expected, rel=1e-5)


# --- rows that are not finite ----------------------------------------------------------------


@pytest.fixture
def broken_scores() -> Tensor:
    """Scores ``(4, 30)``, in a leaf; row 1 has a nan, and row 2 an infinity."""
    scores = torch.randn(4, 30)
    scores[1, 3], scores[2, 3] = math.nan, math.inf
    return scores.requires_grad_()


@on_each_implementation
def test_nan_and_infinity_stay_in_their_row(broken_scores: Tensor) -> None:
    p = entmax(broken_scores, torch.full((4, 1), 3.0))
    assert p.isnan().all(1).tolist() == [False, True, True, False]
    assert p.isnan().any(1).tolist() == [False, True, True, False]


@on_each_implementation
def test_an_upstream_nan_in_the_support_stays_in_its_row(broken_scores: Tensor) -> None:
    p = entmax(broken_scores, torch.full((4, 1), 3.0))
    upstream = torch.randn(4, 30)
    upstream[3, int(broken_scores[3].argmax())] = math.nan
    (gradient,) = torch.autograd.grad(p, broken_scores, upstream)
    assert gradient.isnan().any(1).tolist() == [False, True, True, True]
