"""What Peters, Niculae and Martins (2019) prove in their appendices, of these functions."""

import pytest
import torch

from onmt_entmax.sparse import entmax, entmax_loss, tsallis_entropy

INF = float("inf")


def random_scores(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64) * 2


@pytest.mark.parametrize("alpha", [1.0, 1.2, 1.5, 2.0, 2.5])
def test_proposition_2(alpha: float) -> None:
    """The Jacobian from the regulariser's Hessian on the support (equations 29 and 30)."""
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
        torch.testing.assert_close(jacobian, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("spread", [0.0, 0.2, 2.0, 6.0])
def test_proposition_3_and_lemma_3(spread: float) -> None:
    """The threshold of the rho largest scores never falls; each consistent one is the row's."""
    for _ in range(20):
        z = (random_scores(12) * spread).round().sort(descending=True).values / 4  # with ties
        ordered, thresholds = torch.cat([z / 2, torch.tensor([-INF])]), [-INF]
        for rho in range(1, 13):
            left = 1 / rho - ordered[:rho].var(correction=0)
            thresholds.append(ordered[:rho].mean() - left.sqrt() if left >= 0 else INF)
            assert thresholds[-2] <= thresholds[-1] + 1e-12
            if ordered[rho] <= thresholds[-1] <= ordered[rho - 1]:
                p = (z / 2 - thresholds[-1]).clamp_min(0) ** 2
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
    """Two probabilities of about 1e-3 / 2 move 4 / 1e-3 times as far apart as their scores."""
    z = torch.tensor([0, -0.499 + 1e-7, -0.499 - 1e-7], dtype=torch.float64)
    assert -entmax(z, 3.0)[1:].diff() > 1000 * 2e-7


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.5])
@pytest.mark.parametrize("t", [0.3, 4.0])
def test_temperature_scaling(alpha: float, t: float) -> None:
    """Property 6: the loss with t times the entropy is t times that of z / t (definitions 1, 2).

    No distribution exceeds the maximum that it takes.
    """
    z, y = random_scores(5), torch.tensor([0.5, 0.5, 0, 0, 0], dtype=torch.float64)
    others = torch.distributions.Dirichlet(torch.full_like(y, 0.5)).sample((2000,))
    p = torch.cat([entmax(z / t, alpha).unsqueeze(0), y.unsqueeze(0), others])
    values = p @ z + t * tsallis_entropy(p, alpha)
    loss = t * (entmax_loss(z / t, y, alpha) - tsallis_entropy(y, alpha))
    torch.testing.assert_close(loss, values[0] - values[1])
    assert (values <= values[0] + 1e-9).all()
