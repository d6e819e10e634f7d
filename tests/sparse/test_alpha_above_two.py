"""Alpha above 2, where the slope of a probability is infinite at the threshold."""

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax, entmax_loss, log_entmax
from onmt_entmax.sparse.backends import cpu
from tests.oracles import entmax_of_decimals

ALPHAS = (2.25, 3.0, 5.0, 9.0)


def rows_near_the_threshold(alpha: float, dtype: torch.dtype) -> list[Tensor]:
    """Return rows with scores near the threshold, some of them equal."""
    torch.manual_seed(int(4 * alpha))
    rows = [torch.rand(n, dtype=torch.float64) * 1.2 / (alpha - 1) for n in (2, 3, 3, 5)]
    rows[2][-1] = rows[2][0]
    # The smaller of two scores just inside the support, and just outside.
    edge = 1 / (alpha - 1)
    rows += [
        torch.tensor([0.0, -edge * near], dtype=torch.float64) for near in (0.99, 0.9999, 1.01)
    ]
    return [row.to(dtype) for row in rows]


@pytest.mark.parametrize("way", ["number", "each row", "long", "without C++"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_probabilities(
    alpha: float, dtype: torch.dtype, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal those of decimals with many digits, for the smallest of a support too."""
    if way == "without C++":
        monkeypatch.setattr(cpu, "module", None)
    for row in rows_near_the_threshold(alpha, dtype):
        expected = torch.tensor(entmax_of_decimals(tuple(row.tolist()), alpha), dtype=torch.float64)
        given = torch.tensor([alpha], dtype=torch.float64).requires_grad_()
        scores = torch.cat([row, row.new_full((700,), -9.0)]) if way == "long" else row
        found = entmax(scores, given if way == "each row" else alpha).detach()[: len(row)]
        eps = torch.finfo(dtype).eps
        assert (found.double() - expected).abs().max() <= 8 * eps
        # The last digit of a score changes several digits of a small probability.
        few = 16 * eps + 1e-13 * alpha / expected.clamp_min(1e-30)
        inside = expected > 1e-6
        assert ((found.double() / expected - 1).abs()[inside] <= few[inside]).all()
        logs = log_entmax(scores, given if way == "each row" else alpha).detach()[: len(row)]
        assert torch.allclose(logs.exp(), found, rtol=1e-5)


@pytest.mark.parametrize("p", [1e-6, 1e-3, 0.1, 0.4999])
@pytest.mark.parametrize("alpha", [4.0, 12.0, 20.0])
def test_two_scores(alpha: float, p: float) -> None:
    """A gap of ``((1 - p) ** beta - p ** beta) / beta`` leaves the smaller one p."""
    beta = alpha - 1
    gap = ((1 - p) ** beta - p**beta) / beta
    scores = torch.tensor([0.0, -gap], dtype=torch.float64)
    # What the rounding of the gap alone makes of p.
    few = 1e-13 + min(1e-17 / p ** (beta - 1), (beta * 1e-16) ** (1 / beta))
    for given in (alpha, torch.tensor([alpha], dtype=torch.float64).requires_grad_()):
        assert float(entmax(scores, given)[1].detach()) == pytest.approx(p, abs=few)


@pytest.mark.parametrize("each_row", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_losses_are_never_negative(alpha: float, each_row: bool) -> None:
    torch.manual_seed(0)
    scores = torch.rand(500, 2, dtype=torch.float64) / (alpha - 1)
    given = torch.full((500, 1), alpha, dtype=torch.float64) if each_row else alpha
    losses = entmax_loss(scores, scores.argmax(1), given, reduction="none")
    assert losses.min() >= -1e-15
    z = scores[:5].clone().requires_grad_()
    torch.autograd.gradcheck(
        lambda z: entmax_loss(z, z.argmax(1), alpha, reduction="none"), z, eps=1e-8, atol=1e-5
    )


@pytest.mark.parametrize("module", ["cpu", None])
def test_rows_that_are_not_numbers_stay_so(
    module: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if module is None:
        monkeypatch.setattr(cpu, "module", None)
    rows = torch.tensor([[0.0, torch.nan], [torch.inf, 0.0], [0.0, -torch.inf]])
    found = entmax(rows, 6.0)
    assert found[:2].isnan().all()
    assert found[2].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("module", ["cpu", None])
@pytest.mark.parametrize("alpha", [3.0, 10.0, 20.0, 100.0])
def test_gradients(alpha: float, module: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loss: probabilities minus targets. Mapping: finite where Jacobian weights are infinite."""
    if module is None:
        monkeypatch.setattr(cpu, "module", None)
    torch.manual_seed(0)
    scores = (torch.randn(3000, 10) / alpha).requires_grad_()
    target = torch.randint(10, (3000,))
    probabilities = entmax(scores, alpha)
    loss = entmax_loss(scores, target, alpha, reduction="sum")
    difference = probabilities.detach() - torch.nn.functional.one_hot(target, 10)
    assert torch.allclose(torch.autograd.grad(loss, scores)[0], difference, atol=1e-6)
    smallest = probabilities.detach().masked_fill(probabilities.detach() == 0, 1).amin(1)
    arriving = torch.randn(3000, 10)
    ours = torch.autograd.grad(probabilities, scores, arriving, retain_graph=True)[0]
    assert ours.isfinite().all()
    assert (ours.sum(1).abs() <= 1e-4 * ours.abs().sum(1)).all()
    logs = log_entmax(scores, alpha)
    ours_of_logs = torch.autograd.grad(logs, scores, arriving)[0]
    assert not ours_of_logs.isnan().any()
    # By the formula, in float64 and where no weight is too large for it.
    p = probabilities.detach().double()
    fine = smallest ** (2 - alpha) < 1e8
    weights = torch.where(p > 0, p, 1.0) ** (2 - alpha) * (p > 0)
    mean = (weights * arriving).sum(1, True) / weights.sum(1, True)
    expected = (weights * (arriving - mean)).float()
    scale = expected.abs().amax(1, True)
    assert ((ours - expected).abs() <= 1e-4 * alpha * scale)[fine].all()
    over = torch.where(p > 0, arriving / torch.where(p > 0, p, 1.0), 0.0)
    mean = (weights * over).sum(1, True) / weights.sum(1, True)
    expected = (weights * (over - mean)).float()
    scale = expected.abs().amax(1, True)
    assert ((ours_of_logs - expected).abs() <= 1e-4 * alpha * scale)[fine].all()
    assert fine.sum() > 100


@pytest.mark.parametrize("alpha", [2.5, 4.0, 10.0, 20.0])
def test_long_rows_have_the_gradients_of_short_ones(alpha: float) -> None:
    """The supports, and so the gradients of mapping and loss, are the same."""
    torch.manual_seed(0)
    short = torch.randn(128, 10) / alpha
    short[0] = torch.tensor([0.0, -0.9999 / (alpha - 1), *[-50.0] * 8])
    long = torch.cat([short, torch.full((128, 590), -50.0)], 1)
    weights, target = torch.randn(128, 600), torch.randint(10, (128,))
    found = []
    for scores in (short.requires_grad_(), long.requires_grad_()):
        arriving = weights[:, : scores.shape[1]]
        (first,) = torch.autograd.grad(entmax(scores, alpha), scores, arriving)
        loss = entmax_loss(scores, target, alpha, reduction="sum")
        (grad,) = torch.autograd.grad(loss, scores, create_graph=True)
        (second,) = torch.autograd.grad(grad, scores, arriving)
        found.append(torch.stack([first[:, :10], second[:, :10]]))
    assert found[0].isfinite().all()
    scale = found[0].abs().amax(-1, keepdim=True)
    assert ((found[1] - found[0]).abs() <= 1e-3 * scale).all()
