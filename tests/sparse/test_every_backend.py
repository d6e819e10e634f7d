"""What each backend must do: decide once what is in the support, and give no loss below 0.

One decision means that p > 0 exactly where log p > -inf, and that log p is log(p).
"""

import math
import os
from collections.abc import Callable

import pytest
import torch
from onmt_entmax.sparse.autograd import RowLossFunction
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from onmt_entmax.nn.output import OutputLayer, PreparedOutput
from onmt_entmax.nn.support import Support
from onmt_entmax.sparse import entmax, entmax_loss, log_entmax
from onmt_entmax.sparse.backends import cpu, has_kernels
from tests.oracles import entmax_oracle

INF = float("inf")
TYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# The interpreter needs seconds for what a kernel does in microseconds.
ROWS = 4 if INTERPRETED else 200
# A GPU compiles kernels for each alpha, length and type.
ON_GPU = torch.cuda.is_available()
LENGTHS = (12,) if INTERPRETED else (9, 700) if ON_GPU else (5, 9, 40, 700)
FEW, MANY = (1.05, 1.5, 2.0, 3.0), (1.05, 1.1, 1.2, 1.33, 1.5, 1.75, 2.0, 2.25, 3.0)
ALPHAS = FEW if INTERPRETED or ON_GPU else MANY


@pytest.fixture(params=["C++", "PyTorch", "Triton"], autouse=True)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The device on which a backend works; test_kernels.py runs this file for Triton, too."""
    device = "cuda" if request.param == "Triton" and torch.cuda.is_available() else "cpu"
    if has_kernels(torch.zeros(1, 2, device=device)) != (request.param == "Triton"):
        pytest.skip("another backend computes this here")
    if request.param == "PyTorch":
        monkeypatch.setattr(cpu, "module", None)
    elif request.param == "C++" and cpu.module is None:
        pytest.skip("not built")
    return device


def rows_on_the_threshold(count: int, length: int, alpha: float, seed: int) -> Tensor:
    """Return random rows ``(count, length)`` with scores on the threshold and next to it.

    The leading scores are dyadic numbers. The last three are the threshold of the others, which at
    alpha 2 is nearly a dyadic number too, and its neighbours in float32.
    """
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(-480, 33, (count, length), generator=generator).double() / 32
    scores += torch.randint(-3, 4, (count, 1), generator=generator)
    scores[:, -3:] = -INF
    beta = alpha - 1
    low = scores.amax(1, keepdim=True) - 1 / beta
    high = scores.amax(1, keepdim=True)
    for _ in range(200):
        middle = (low + high) / 2
        total = (beta * (scores - middle).clamp_min(0)).pow(1 / beta).sum(1, keepdim=True)
        low, high = torch.where(total >= 1, middle, low), torch.where(total >= 1, high, middle)
    threshold = low.float()
    for place, toward in enumerate((-INF, INF, None), start=-3):
        neighbour = threshold if toward is None else threshold.nextafter(torch.tensor(toward))
        scores[:, place] = neighbour.squeeze(1).double()
    return scores


def assert_one_support(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Check that both mappings have one support, and return it."""
    probability, logs = entmax(scores, alpha), log_entmax(scores, alpha)
    support = probability > 0
    assert torch.equal(support, logs > -INF)
    p, log_p = probability.double().cpu(), logs.double().cpu()
    # Below this, digits are missing or p is the smallest number.
    least = 2 * torch.finfo(scores.dtype).smallest_normal
    assert (log_p[support.cpu() & (p <= least)] <= math.log(2 * least)).all()
    alphas = torch.as_tensor(alpha, dtype=torch.float64, device="cpu").expand(*scores.shape[:-1], 1)
    eps = max(torch.finfo(scores.dtype).eps, 1.2e-7 if scores.dtype != torch.float64 else 0)
    # Of a margin, rounding takes away a number of eps, whatever is left of it.
    beta = (alphas - 1).clamp_min(0)
    allowed = eps * (40 * (1 + log_p.abs()) + 8 / p ** beta.clamp_max(1))
    right = (p.log() - log_p).abs() <= allowed
    assert right[support.cpu() & (p > least)].all()
    return support


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_entmax_and_its_logarithm_have_one_support(
    alpha: float, dtype: torch.dtype, device: str
) -> None:
    for length in LENGTHS:
        rows = rows_on_the_threshold(ROWS, length, alpha, length)
        assert_one_support(rows.to(device, dtype), alpha)
    assert_one_support(torch.randn(3, 30, dtype=dtype, device=device) * 1e-6, alpha)
    if not INTERPRETED:  # long enough for a search
        assert_one_support(torch.randn(100, 700, dtype=dtype, device=device), alpha)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_so_have_tensors_of_alphas(dtype: torch.dtype, device: str) -> None:
    for alpha in ALPHAS:
        rows = rows_on_the_threshold(ROWS, 9, alpha, 1).to(device, dtype)
        learned = torch.tensor(alpha, requires_grad=True, device=device)
        with torch.no_grad():
            assert_one_support(rows, learned)
            assert_one_support(rows, torch.full((ROWS, 1), alpha, device=device))
    mixed = torch.linspace(1, 3, ROWS, device=device).unsqueeze(1)
    whole = torch.randint(-9, 10, (ROWS, 12), device=device)
    assert_one_support(whole.to(dtype) / 4, mixed)


@pytest.mark.parametrize("length", [6, 60] if INTERPRETED else [6, 60, 900])
def test_a_score_on_the_threshold_is_outside(length: int, device: str) -> None:
    """At alpha 2, where dyadic scores have a dyadic threshold; its neighbour above is inside.

    For Triton, which solves float32 scores in float32, the neighbour may be outside.
    """
    generator = torch.Generator().manual_seed(length)
    for shift in (0.0, 3.0, -2.0, 0.125):
        row = torch.full((length,), shift - 5) - torch.rand(length, generator=generator)
        row[:3] = torch.tensor([1.0, 0.75, 0.375]) + shift  # the threshold of two is 0.375
        for toward, members in ((None, 2), (INF, 3), (-INF, 2)):
            moved = row.clone()
            if toward is not None:
                moved[2] = row[2].nextafter(torch.tensor(toward))
            support = assert_one_support(moved.unsqueeze(0).to(device), 2.0)
            assert int(support.sum()) in (
                (members, 2) if has_kernels(row.to(device)) else (members,)
            )


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 2.25])
def test_gradients_losses_and_the_search_have_it_too(alpha: float, device: str) -> None:
    count, length = (4, 40) if INTERPRETED else (120, 700)
    rows = rows_on_the_threshold(count, length, alpha, 7).float().to(device)
    support = assert_one_support(rows, alpha)
    incoming = torch.randn_like(rows)
    for mapping in (entmax, log_entmax):
        z = rows.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(mapping(z, alpha), z, incoming)
        assert not gradient[~support].any()
    z, target = rows.clone().requires_grad_(), torch.zeros(count, dtype=torch.int64, device=device)
    losses, _entries = RowLossFunction.apply(z, alpha, None)
    (gradient,) = torch.autograd.grad(losses.sum(), z)
    assert torch.equal(gradient > 0, support)
    z = rows.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(entmax_loss(z, target, alpha, reduction="sum"), z)
    assert torch.equal((gradient != 0)[:, 1:], support[:, 1:])


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0])
def test_output_layers_have_one_support(alpha: float, device: str) -> None:
    """The layer gives the scores themselves: its weights are the identity."""
    count, length = (4, 40) if INTERPRETED else (120, 700)
    layer = OutputLayer(length, length, alpha).to(device)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(length))
        layer.bias.zero_()
    rows = rows_on_the_threshold(count, length, alpha, 8).float().clamp_min(-1e4).to(device)
    support = assert_one_support(layer.scores(rows), alpha)
    assert torch.equal(layer.log_probs(rows) > -INF, support)
    prepared = PreparedOutput(layer.weight, layer.bias, alpha)(rows)
    whole = prepared.dense() if isinstance(prepared, Support) else prepared
    assert torch.equal(whole > -INF, support)
    target = torch.zeros(count, dtype=torch.int64, device=device)
    assert int(layer.loss(rows, target, -1).support) == int(support.sum())


def test_a_member_whose_probability_is_too_small_for_its_type(device: str) -> None:
    for dtype, near in ((torch.float32, -9.99999), (torch.float16, -9.9375)):
        row = torch.tensor([0.0, -9.5, near, -11.0], dtype=dtype, device=device, requires_grad=True)
        assert assert_one_support(row.detach(), 1.1).tolist() == [True, True, True, False]
        (gradient,) = torch.autograd.grad(entmax(row, 1.1)[1], row)
        assert gradient.isfinite().all()


def rows_at_zero_loss(count: int, length: int, alpha: float, dtype: torch.dtype) -> Tensor:
    """Return rows whose first score is above the others by about the margin where the loss is 0.

    It is a little less in the first half of the rows, and a little more in the other.
    """
    distance = torch.logspace(-1, -16, count // 2, dtype=torch.float64)
    part = torch.cat([1 - distance, 1 + distance.flip(0)])
    scores = torch.rand(count, length, dtype=torch.float64) * -3
    scores[:, 0] = scores[:, 1:].amax(1) + part / (alpha - 1)
    return scores.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_loss_of_zero_is_not_below_it_and_keeps_its_gradient(
    alpha: float, dtype: torch.dtype, device: str
) -> None:
    count, length = (4, 12) if INTERPRETED else (200, 20)
    rows = rows_at_zero_loss(count, length, alpha, dtype).to(device)
    target, one_hot = torch.zeros(count, dtype=torch.int64, device=device), torch.zeros_like(rows)
    one_hot[:, 0] = 1
    layer = OutputLayer(length, length, alpha).to(device, dtype)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(length))
        layer.bias.zero_()

    def row_by_row(loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        return lambda z: torch.stack([loss(row[None], target[:1]) for row in z])

    losses: dict[str, Callable[[Tensor], Tensor]] = {
        "classes": lambda z: entmax_loss(z, target, alpha, reduction="none"),
        "distributions": lambda z: entmax_loss(z, one_hot, alpha, reduction="none"),
        "each alpha": lambda z: entmax_loss(
            z,
            target,
            torch.full((count, 1), alpha, dtype=torch.float64, device=device),
            reduction="none",
        ),
        "linear": row_by_row(lambda row, label: layer.loss(row, label, -1).loss),
    }
    eps = 16 * torch.finfo(dtype).eps
    expected = (entmax_oracle(rows, alpha) - one_hot).cpu()
    for name, loss in losses.items():
        z = rows.clone().requires_grad_()
        values = loss(z)
        assert (values >= 0).all(), name
        assert (values[count * 3 // 4 :] <= eps / (alpha - 1)).all(), name
        (gradient,) = torch.autograd.grad(values.sum(), z)
        most = eps / (alpha - 1) if alpha <= 2 else eps ** (1 / (alpha - 1))
        assert ((gradient.cpu() - expected).abs() <= most).all(), name


@pytest.mark.parametrize("alpha", [1.2, 1.5])
def test_derivatives_at_the_margin_of_zero_loss(alpha: float, device: str) -> None:
    """The gradient is smooth there; a clamp that autograd saw would change it."""
    scores = torch.tensor([[0.0, -0.7, -5.0]] * 3, dtype=torch.float64)
    scores[:, 0] = scores[:, 1] + torch.tensor([1 - 1e-3, 1.0, 1 + 1e-3]) / (alpha - 1)
    target = torch.zeros(3, dtype=torch.int64, device=device)

    def loss(z: Tensor) -> Tensor:
        return entmax_loss(z, target, alpha, reduction="none")

    assert gradcheck(loss, scores.to(device).requires_grad_(), eps=1e-4, atol=1e-6)
    assert gradgradcheck(loss, scores.to(device).requires_grad_(), eps=1e-5, atol=1e-4)
