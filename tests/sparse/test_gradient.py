"""Gradients of entmax and log_entmax, in the scores and in alpha, first and second; compilers."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

from onmt_entmax.sparse import entmax, entmax_attention, entmax_loss, log_entmax
from onmt_entmax.sparse.mapping import mapping_gradients

ALPHAS = (1.0, 1.0001, 1.2, 1.5, 2.0, 2.5)
INDEX = torch.tensor([0, 3, 9])


def scores(*shape: int) -> Tensor:
    return (torch.randn(*shape, dtype=torch.float64) * 2).requires_grad_()


def finite_logs(z: Tensor, alpha: float | Tensor, dim: int = -1) -> Tensor:
    """Log-probabilities with 0 for -inf, which finite differences can be taken of."""
    return log_entmax(z, alpha, dim).nan_to_num(neginf=0.0)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_in_scores(alpha: float, device: str) -> None:
    z = scores(2, 3, 4).to(device)
    for mapping in (entmax, finite_logs):
        for dim in (-1, 0):
            assert gradcheck(lambda x, dim=dim, m=mapping: m(x, alpha, dim), z)
        assert gradgradcheck(lambda x, m=mapping: m(x, alpha), z[0])


@pytest.mark.parametrize("low", [1.001, 1.5, 1.89, 2.4])
def test_in_alpha(low: float, device: str) -> None:
    z = scores(2, 3, 4).to(device)
    alpha = (low + 0.1 * torch.rand(3, 1, dtype=torch.float64, device=device)).requires_grad_()
    assert gradcheck(entmax, (z, alpha))
    assert gradcheck(finite_logs, (z, alpha))
    assert gradgradcheck(entmax, (z, alpha))


def test_in_alpha_at_one(device: str) -> None:
    """The limit of Proposition 1 of Correia et al. (2019), and it is continuous."""
    z, weights = torch.randn(2, 4, 6, dtype=torch.float64, device=device)
    p = torch.softmax(z, -1)
    bend = p * p.log() ** 2 / 2
    expected = float(((p * bend.sum(-1, keepdim=True) - bend) * weights).sum())
    for near, rel in ((1.0, 1e-10), (1 + 1e-8, 1e-6), (1 + 1e-4, 1e-2)):
        alpha = torch.tensor(near, dtype=torch.float64, device=device, requires_grad=True)
        (entmax(z, alpha) * weights).sum().backward()
        assert float(alpha.grad) == pytest.approx(expected, rel=rel, abs=rel)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("alpha", "length"), [(1.1, 140), (1.5, 7), (2.0, 140), (10.0, 140), (50.0, 7)]
)
def test_by_the_formula(alpha: float, length: int, dtype: torch.dtype, device: str) -> None:
    """Proposition 1 of Peters et al. (2019); finite where weights are infinite."""
    z = (torch.randn(8, length, dtype=dtype, device=device) / alpha).requires_grad_()
    upstream = torch.randn(8, length, dtype=dtype, device=device)
    result = entmax(z, alpha)
    p = result.detach().double()
    (gradient,) = torch.autograd.grad(result, z, upstream)
    assert gradient.isfinite().all()
    s = torch.where(p > 0, p, 1.0) ** (2 - alpha) * (p > 0)
    mean = (s * upstream).sum(1, keepdim=True) / s.sum(1, keepdim=True)
    expected = s * (upstream - mean)
    scale = expected.abs().amax(1, keepdim=True)
    # Above, the gradients of small probabilities are differences of huge numbers.
    fine = s.amax(1) < 1e8
    close = 1e-4 if dtype == torch.float32 else 1e-7
    assert ((gradient - expected).abs() <= close * scale)[fine].all()


@pytest.mark.parametrize("alpha", [1.0, 1.3, 2.0, 2.5])
def test_what_arrives_outside_the_support_is_not_used(alpha: float, device: str) -> None:
    z = torch.tensor([[0.1, -torch.inf, 0.4, -1e18]], device=device, requires_grad=True)
    alphas = torch.full((1, 1), alpha, device=device, requires_grad=True)
    for each in (alpha, alphas):
        (grad,) = torch.autograd.grad(entmax(z, each), z, torch.randn(1, 4, device=device))
        assert grad.isfinite().all()
        assert not (grad[0, 1::2].abs() > 1e-40).any()
        wanted = (z, alphas) if each is alphas else (z,)
        clean, broken = (
            torch.autograd.grad(
                log_entmax(z, each), wanted, torch.tensor([[1.0, bad, 2.0, 0]], device=device)
            )
            for bad in (0.0, torch.nan)
        )
        assert all(map(torch.equal, clean, broken))


@pytest.mark.parametrize("alpha", [1.0, 1.05, 1.5, 2.5])
def test_several_gradients_at_once(alpha: float) -> None:
    z, arriving = scores(3, 10), torch.randn(4, 3, 10, dtype=torch.float64)
    losses = entmax_loss(z, INDEX, alpha, label_smoothing=0.1, reduction="none")
    for result, given in ((entmax(z, alpha), arriving), (losses, arriving[..., 0])):
        batch = torch.autograd.grad(result, z, given, retain_graph=True, is_grads_batched=True)[0]
        for several, one in zip(batch, given, strict=True):
            alone = torch.autograd.grad(result, z, one, retain_graph=True)[0]
            torch.testing.assert_close(several, alone)


def test_the_gradients_of_each_implementation_in_alpha(device: str) -> None:
    """Beside that which autograd may differentiate again."""
    alpha = torch.tensor([1.0, 1.001, 1.3, 1.5, 2.0], dtype=torch.float64, device=device).view(5, 1)
    z, upstream = torch.randn(2, 5, 140, dtype=torch.float64, device=device)
    p = entmax(z, alpha)
    expected = mapping_gradients(p, alpha, upstream, True)
    with torch.no_grad():
        found = mapping_gradients(p, alpha, upstream, True)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-7, atol=1e-9)


ALPHA_FORMS = (1.0, 1.5, torch.tensor([[1.0], [1.4], [2.3]]))


def several(z: Tensor, alpha: float | Tensor) -> Tensor:
    """A sum of all functions."""
    result, logs = entmax(z * 2, alpha), log_entmax(z.t(), 1.5, 0).t().clamp_min(-30.0)
    smooth = entmax_loss(z, z.argmin(1), alpha, label_smoothing=0.1)
    own = 1.3 if isinstance(alpha, Tensor) else alpha
    attended = entmax_attention(z, z, z, alpha=own).sum()
    return (result * logs).sum() + smooth + entmax_loss(z, result, alpha) + attended


@pytest.mark.parametrize("alpha", ALPHA_FORMS, ids=str)
def test_whole_graphs(alpha: float | Tensor) -> None:
    outcomes = []
    for function in (several, torch.compile(several, fullgraph=True, backend="aot_eager")):
        z = torch.linspace(-2, 2, 30).sin().view(3, 10).requires_grad_()
        each = alpha.clone().requires_grad_() if isinstance(alpha, Tensor) else alpha
        value = function(z, each)
        wanted = (z, each) if isinstance(each, Tensor) else (z,)
        outcomes.append([value.detach(), *torch.autograd.grad(value, wanted)])
    torch.testing.assert_close(*outcomes, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("alpha", ALPHA_FORMS, ids=str)
def test_exports(alpha: float | Tensor) -> None:
    class Module(torch.nn.Module):
        def forward(self, z: Tensor, alphas: Tensor) -> Tensor:
            return several(z, alphas if isinstance(alpha, Tensor) else alpha)

    first, second = torch.randn(2, 3, 10)
    alphas = alpha if isinstance(alpha, Tensor) else torch.ones(3, 1)
    exported = torch.export.export(Module(), (first, alphas)).module()
    for z in (first, second):
        torch.testing.assert_close(exported(z, alphas), several(z, alpha))
    graph = make_fx(lambda z: several(z, alpha), tracing_mode="real")(first)
    torch.testing.assert_close(graph(second), several(second, alpha))


@pytest.mark.parametrize("each_row", [False, True])
def test_the_operator_obeys_pytorchs_rules(each_row: bool) -> None:
    z = torch.rand(3, 5, dtype=torch.float64, requires_grad=True)
    alphas = torch.full((3, 1), 1.4, dtype=torch.float64, requires_grad=True)
    alphas = alphas if each_row else None
    torch.library.opcheck(torch.ops.onmt_entmax.mapping.default, (z, 1.5, alphas, False))


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
@pytest.mark.slow
def test_inductor(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    z = torch.randn(3, 10)
    torch.testing.assert_close(torch.compile(several, fullgraph=True)(z, 1.5), several(z, 1.5))


@pytest.mark.parametrize("function", [entmax, lambda z: entmax_loss(z, torch.tensor(0))])
def test_transforms_of_torch_func_are_refused(function: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(RuntimeError, match="the transforms of"):
        torch.func.jacfwd(function)(torch.randn(5))


def test_nothing_is_looked_at_under_pytorchs_modes() -> None:
    z = torch.randn(2, 5)
    with FlopCounterMode(display=False):
        assert entmax(z, torch.tensor(0.5)).isnan().all()
        assert entmax(z, torch.tensor([1.5])).isfinite().all()
    with torch.device("meta"):
        loss = entmax_loss(z.requires_grad_(), INDEX[:2])
        loss.backward()
    assert torch.equal(loss, entmax_loss(z, INDEX[:2]))
