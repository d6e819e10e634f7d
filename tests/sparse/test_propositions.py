"""What Peters, Niculae and Martins (2019) prove in their appendices, of these functions."""

from itertools import pairwise

import pytest
import torch

from onmt_entmax.sparse import entmax, entmax_loss, tsallis_entropy

INF = float("inf")


def some_scores(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64) * 2


@pytest.mark.parametrize("alpha", [1.0, 1.2, 1.5, 2.0, 2.5])
def test_proposition_2(alpha: float) -> None:
    """The Jacobian from the regulariser's Hessian on the support (equations 29 and 30)."""
    for _ in range(5):
        z = some_scores(6)
        p = entmax(z, alpha)
        inside = (p > 0).nonzero().squeeze(1)
        hessian = -torch.autograd.functional.hessian(lambda p: tsallis_entropy(p, alpha), p[inside])
        inverse = hessian.inverse()
        s = inverse.sum(1)
        expected = torch.zeros(6, 6, dtype=torch.float64)
        expected[inside.unsqueeze(1), inside] = inverse - torch.outer(s, s) / s.sum()
        found = torch.autograd.functional.jacobian(lambda z: entmax(z, alpha), z)
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("spread", [0.0, 0.1, 1.0, 3.0])
def test_proposition_3_and_lemma_3(spread: float) -> None:
    """The threshold of the rho largest scores never falls; each consistent one is the row's."""
    for _ in range(20):
        z = ((some_scores(12) * spread).mul(4).round() / 4).sort(descending=True).values  # ties
        ordered = torch.cat([z / 2, torch.tensor([-INF])])
        thresholds, consistent = [], 0
        for rho in range(1, 13):
            top = ordered[:rho]
            left = 1 - top.var(correction=0) * rho
            thresholds.append(top.mean() - (left / rho).sqrt() if left >= 0 else torch.tensor(INF))
            if ordered[rho] <= thresholds[-1] <= ordered[rho - 1]:
                consistent += 1
                expected = (z / 2 - thresholds[-1]).clamp_min(0) ** 2
                torch.testing.assert_close(entmax(z, 1.5), expected, rtol=0, atol=1e-12)
        assert consistent >= 1
        assert all(low <= high + 1e-12 for low, high in pairwise(thresholds))


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_the_loss_is_smooth_up_to_alpha_2(alpha: float) -> None:
    """Property 5: the gradients of two rows are at most as far apart as the rows."""
    for distance in (1e-3, 1.0, 10.0):
        z, direction = some_scores(2, 500, 5)
        near = z + direction / direction.norm(dim=1, keepdim=True) * distance
        change = (entmax(near, alpha) - entmax(z, alpha)).norm(dim=1).max() / distance
        assert change <= 1 + 1e-9
        assert change > 0.6 or alpha < 2 or distance > 1


def test_the_loss_is_not_smooth_above_alpha_2() -> None:
    """Two probabilities of about 1e-3 / 2 move 4 / 1e-3 times as far apart as their scores."""
    z = torch.tensor([0, -0.499 + 1e-7, -0.499 - 1e-7], dtype=torch.float64)
    assert -entmax(z, 3.0)[1:].diff() > 1000 * 2e-7


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.5])
@pytest.mark.parametrize("t", [0.3, 4.0])
def test_temperature_scaling(alpha: float, t: float) -> None:
    """Property 6: the loss with t times the entropy is t times that of z / t (definitions 1, 2).

    No distribution exceeds the maximum that it takes.
    """
    z, y = some_scores(5), torch.tensor([0.5, 0.5, 0, 0, 0], dtype=torch.float64)
    others = torch.distributions.Dirichlet(torch.full((5,), 0.5).double()).sample((2000,))
    best, of_y, *of_others = (
        p @ z + t * tsallis_entropy(p, alpha) for p in (entmax(z / t, alpha), y, *others)
    )
    loss = t * (entmax_loss(z / t, y, alpha) - tsallis_entropy(y, alpha))
    torch.testing.assert_close(loss, best - of_y)
    assert max(of_others) <= best + 1e-9
