"""Theorems in the appendices of Peters, Niculae and Martins (2019), checked on random scores."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax, entmax_loss, tsallis_entropy

INF = float("inf")

spreads = pytest.mark.parametrize("spread", [0.0, 0.2, 2.0, 6.0])
some_alphas = pytest.mark.parametrize("alpha", [1.0, 1.5, 2.5])
temperatures = pytest.mark.parametrize("t", [0.3, 4.0])


def random_scores(*shape: int) -> Tensor:
    """Return normal scores with a standard deviation of 2, in float64."""
    return torch.randn(*shape, dtype=torch.float64) * 2


@pytest.mark.parametrize("alpha", [1.0, 1.2, 1.5, 2.0, 2.5])
def test_the_jacobian_is_that_of_proposition_2(alpha: float) -> None:
    """It follows from the regulariser's Hessian on the support (equations 29 and 30)."""
    for _ in range(5):
        z = random_scores(6)
        p = entmax(z, alpha)
        inside = (p > 0).nonzero().squeeze(1)
        hessian = -torch.autograd.functional.hessian(lambda p: tsallis_entropy(p, alpha), p[inside])
        inverse = hessian.inverse()
        s = inverse.sum(1)
        jacobian = torch.autograd.functional.jacobian(lambda z: entmax(z, alpha), z)
        expected = torch.zeros_like(jacobian)
        expected[inside.unsqueeze(1), inside] = inverse - torch.outer(s, s) / s.sum()
        # Inverting the Hessian multiplies rounding by its condition, up to some millions.
        torch.testing.assert_close(jacobian, expected, rtol=1e-6, atol=1e-9)


def thresholds_of_the_largest(z: Tensor) -> list[float]:
    """Return the threshold tau(rho) of the rho largest scores, for each rho from 1 on.

    The scores are in descending order. For 1.5-entmax, the threshold is the mean of their halves
    less the root of ``1 / rho - variance``; it is infinite if the variance is larger.
    """
    thresholds = []
    for rho in range(1, len(z) + 1):
        largest = z[:rho] / 2
        left = 1 / rho - float(largest.var(correction=0))
        thresholds.append(float(largest.mean()) - left**0.5 if left >= 0 else INF)
    return thresholds


def ordered_rows(spread: float) -> list[Tensor]:
    """Return rows ``(12,)`` in descending order, with ties."""
    rows = ((random_scores(12) * spread).round() / 4 for _ in range(20))
    return [row.sort(descending=True).values for row in rows]


@spreads
def test_thresholds_never_fall_with_the_size_of_the_support(spread: float) -> None:
    """Proposition 3: the threshold of the rho largest scores rises with rho, or stays."""
    for z in ordered_rows(spread):
        thresholds = thresholds_of_the_largest(z)
        for threshold, following in pairwise(thresholds):
            assert threshold <= following + 1e-12


@spreads
def test_a_threshold_that_divides_the_scores_is_that_of_the_row(spread: float) -> None:
    """Lemma 3: if exactly the rho largest scores are above tau(rho), it is the row's threshold."""
    for z in ordered_rows(spread):
        ordered = torch.cat([z / 2, torch.tensor([-INF])])
        rows = enumerate(thresholds_of_the_largest(z), 1)
        consistent = [tau for rho, tau in rows if ordered[rho] <= tau <= ordered[rho - 1]]
        assert consistent
        for threshold in consistent:
            p = (z / 2 - threshold).clamp_min(0) ** 2
            torch.testing.assert_close(entmax(z, 1.5), p, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("alpha", "least"), [(1.0, 0.0), (1.5, 0.0), (2.0, 0.51)])
def test_the_loss_is_smooth_up_to_alpha_2(alpha: float, least: float) -> None:
    """Property 5: the gradients of two rows are at most as far apart as the rows.

    At alpha 2, some are more than half as far apart.
    """
    z, others = random_scores(2, 2000, 5)
    changes = (entmax(others, alpha) - entmax(z, alpha)).norm(dim=1)
    most = (changes / (others - z).norm(dim=1)).max()
    assert least < most <= 1 + 1e-9


def test_the_loss_is_not_smooth_above_alpha_2() -> None:
    """Two probabilities of 1e-3 / 2 move apart 2 / 1e-3 times as far as their scores."""
    step = 1e-7
    z = torch.tensor([0, -0.499 + step, -0.499 - step], dtype=torch.float64)
    apart = -entmax(z, 3.0)[1:].diff()
    assert apart > 1000 * (2 * step)


def score_plus_entropy(p: Tensor, z: Tensor, alpha: float, t: float) -> Tensor:
    """Return the function of p whose maximum is the conjugate, with t times the entropy."""
    return p @ z + t * tsallis_entropy(p, alpha)


@some_alphas
@temperatures
def test_a_temperature_scales_scores_and_loss(alpha: float, t: float) -> None:
    """Property 6: the loss with t times the entropy is t times that of z / t (definitions 1, 2)."""
    z, y = random_scores(5), torch.tensor([0.5, 0.5, 0, 0, 0], dtype=torch.float64)
    best = entmax(z / t, alpha)
    expected = score_plus_entropy(best, z, alpha, t) - score_plus_entropy(y, z, alpha, t)
    loss = t * (entmax_loss(z / t, y, alpha) - tsallis_entropy(y, alpha))
    torch.testing.assert_close(loss, expected)


@some_alphas
@temperatures
def test_no_distribution_exceeds_the_maximum_under_a_temperature(alpha: float, t: float) -> None:
    z, concentration = random_scores(5), torch.full((5,), 0.5, dtype=torch.float64)
    others = torch.distributions.Dirichlet(concentration).sample((2000,))
    largest = score_plus_entropy(entmax(z / t, alpha), z, alpha, t)
    assert (score_plus_entropy(others, z, alpha, t) <= largest + 1e-9).all()
