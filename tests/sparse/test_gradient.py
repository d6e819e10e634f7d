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


def random_scores(*shape: int) -> Tensor:
    """Return scores in float64, in a leaf."""
    return (torch.randn(*shape, dtype=torch.float64) * 2).requires_grad_()


def finite_logs(z: Tensor, alpha: float | Tensor, dim: int = -1) -> Tensor:
    """Return log-probabilities with 0 for -inf, which finite differences can be taken of."""
    return log_entmax(z, alpha, dim).nan_to_num(neginf=0.0)


Mapping = Callable[..., Tensor]
mappings = pytest.mark.parametrize("mapping", [entmax, finite_logs])


@mappings
@pytest.mark.parametrize("dim", [-1, 0])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_in_scores(mapping: Mapping, alpha: float, dim: int, device: str) -> None:
    z = random_scores(2, 3, 4).to(device)
    assert gradcheck(lambda scores: mapping(scores, alpha, dim), z)


@mappings
@pytest.mark.parametrize("alpha", ALPHAS)
def test_second_derivatives_in_scores(mapping: Mapping, alpha: float, device: str) -> None:
    z = random_scores(3, 4).to(device)
    assert gradgradcheck(lambda scores: mapping(scores, alpha), z)


@pytest.mark.parametrize("low", [1.001, 1.5, 1.89, 2.4])
def test_in_alpha(low: float, device: str) -> None:
    z = random_scores(2, 3, 4).to(device)
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
    for number, tolerance in ((1.0, 1e-10), (1 + 1e-8, 1e-6), (1 + 1e-4, 1e-2)):
        alpha = torch.tensor(number, dtype=torch.float64, device=device, requires_grad=True)
        (entmax(z, alpha) * weights).sum().backward()
        assert float(alpha.grad) == pytest.approx(expected, rel=tolerance, abs=tolerance)


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
    weights = torch.where(p > 0, p, 1.0) ** (2 - alpha) * (p > 0)
    mean = (weights * upstream).sum(1, keepdim=True) / weights.sum(1, keepdim=True)
    expected = weights * (upstream - mean)
    scale = expected.abs().amax(1, keepdim=True)
    # With larger weights, the gradients of small probabilities are differences of huge numbers.
    comparable = weights.amax(1) < 1e8
    tolerance = 1e-4 if dtype == torch.float32 else 1e-7
    assert ((gradient - expected).abs() <= tolerance * scale)[comparable].all()


def scores_of_zeros(device: str) -> Tensor:
    """Return scores of which columns 1 and 3, -inf and a very low one, have no probability."""
    return torch.tensor([[0.1, -torch.inf, 0.4, -1e18]], device=device, requires_grad=True)


number_or_learned = pytest.mark.parametrize("learned", [False, True], ids=["number", "learned"])
some_alphas = pytest.mark.parametrize("alpha", [1.0, 1.3, 2.0, 2.5])


def form_of(alpha: float, learned: bool, device: str) -> float | Tensor:
    """Return alpha as a number, or as a tensor with a gradient."""
    return torch.full((1, 1), alpha, device=device, requires_grad=True) if learned else alpha


@some_alphas
@number_or_learned
def test_the_gradient_is_0_outside_the_support(alpha: float, learned: bool, device: str) -> None:
    z, form = scores_of_zeros(device), form_of(alpha, learned, device)
    (gradient,) = torch.autograd.grad(entmax(z, form), z, torch.randn_like(z))
    assert gradient.isfinite().all()
    assert not (gradient[0, 1::2].abs() > 1e-40).any()


@some_alphas
@number_or_learned
def test_an_upstream_gradient_outside_the_support_is_not_used(
    alpha: float, learned: bool, device: str
) -> None:
    z, form = scores_of_zeros(device), form_of(alpha, learned, device)
    inputs = (z, form) if isinstance(form, Tensor) else (z,)

    def gradients(outside: float) -> tuple[Tensor, ...]:
        upstream = torch.tensor([[1.0, outside, 2.0, 0]], device=device)
        return torch.autograd.grad(log_entmax(z, form), inputs, upstream)

    assert all(map(torch.equal, gradients(0.0), gradients(torch.nan)))


def losses_of_rows(z: Tensor, alpha: float) -> Tensor:
    """Return losses ``(3,)`` of scores ``(3, 10)``."""
    return entmax_loss(z, INDEX, alpha, label_smoothing=0.1, reduction="none")


@pytest.mark.parametrize("alpha", [1.0, 1.05, 1.5, 2.5])
@pytest.mark.parametrize("function", [entmax, losses_of_rows])
def test_several_gradients_at_once(
    function: Callable[[Tensor, float], Tensor], alpha: float
) -> None:
    z = random_scores(3, 10)
    result = function(z, alpha)
    upstream = torch.randn(4, *result.shape, dtype=torch.float64)
    (gradients,) = torch.autograd.grad(
        result, z, upstream, retain_graph=True, is_grads_batched=True
    )
    for gradient, of_one in zip(gradients, upstream, strict=True):
        (alone,) = torch.autograd.grad(result, z, of_one, retain_graph=True)
        torch.testing.assert_close(gradient, alone)


def test_the_gradients_of_each_implementation_in_alpha(device: str) -> None:
    """Beside that which autograd may differentiate again."""
    alpha = torch.tensor([1.0, 1.001, 1.3, 1.5, 2.0], dtype=torch.float64, device=device).view(5, 1)
    z, upstream = torch.randn(2, 5, 140, dtype=torch.float64, device=device)
    p = entmax(z, alpha)
    expected = mapping_gradients(p, alpha, upstream, True)
    with torch.no_grad():
        gradients = mapping_gradients(p, alpha, upstream, True)
    for gradient, exact in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient.double(), exact, rtol=1e-7, atol=1e-9)


ALPHA_FORMS = (1.0, 1.5, torch.tensor([[1.0], [1.4], [2.3]]))


def all_functions(z: Tensor, alpha: float | Tensor) -> Tensor:
    """Return a sum of all functions of scores ``(3, 10)``, on all of which it depends."""
    p, logs = entmax(z * 2, alpha), log_entmax(z.t(), 1.5, 0).t().clamp_min(-30.0)
    smoothed = entmax_loss(z, z.argmin(1), alpha, label_smoothing=0.1)
    of_attention = 1.3 if isinstance(alpha, Tensor) else alpha
    attended = entmax_attention(z, z, z, alpha=of_attention).sum()
    return (p * logs).sum() + smoothed + entmax_loss(z, p, alpha) + attended


@pytest.mark.parametrize("alpha", ALPHA_FORMS, ids=str)
def test_whole_graphs(alpha: float | Tensor) -> None:
    outcomes = []
    for function in (
        all_functions,
        torch.compile(all_functions, fullgraph=True, backend="aot_eager"),
    ):
        z = torch.linspace(-2, 2, 30).sin().view(3, 10).requires_grad_()
        form = alpha.clone().requires_grad_() if isinstance(alpha, Tensor) else alpha
        value = function(z, form)
        inputs = (z, form) if isinstance(form, Tensor) else (z,)
        outcomes.append([value.detach(), *torch.autograd.grad(value, inputs)])
    torch.testing.assert_close(*outcomes, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("alpha", ALPHA_FORMS, ids=str)
def test_exported_programs(alpha: float | Tensor) -> None:
    class Module(torch.nn.Module):
        def forward(self, z: Tensor, alphas: Tensor) -> Tensor:
            return all_functions(z, alphas if isinstance(alpha, Tensor) else alpha)

    first, second = torch.randn(2, 3, 10)
    alphas = alpha if isinstance(alpha, Tensor) else torch.ones(3, 1)
    exported = torch.export.export(Module(), (first, alphas)).module()
    for z in (first, second):
        torch.testing.assert_close(exported(z, alphas), all_functions(z, alpha))


@pytest.mark.parametrize("alpha", ALPHA_FORMS, ids=str)
def test_graphs_of_operations(alpha: float | Tensor) -> None:
    first, second = torch.randn(2, 3, 10)
    graph = make_fx(lambda z: all_functions(z, alpha), tracing_mode="real")(first)
    torch.testing.assert_close(graph(second), all_functions(second, alpha))


@pytest.mark.parametrize("each_row", [False, True])
def test_the_operator_obeys_pytorchs_rules(each_row: bool) -> None:
    z = torch.rand(3, 5, dtype=torch.float64, requires_grad=True)
    alphas = None
    if each_row:
        alphas = torch.full((3, 1), 1.4, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(torch.ops.onmt_entmax.mapping.default, (z, 1.5, alphas, False))


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
@pytest.mark.slow
def test_inductor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    z = torch.randn(3, 10)
    torch.testing.assert_close(
        torch.compile(all_functions, fullgraph=True)(z, 1.5), all_functions(z, 1.5)
    )


def loss_of_class_0(z: Tensor) -> Tensor:
    return entmax_loss(z, torch.tensor(0))


@pytest.mark.parametrize("function", [entmax, loss_of_class_0])
def test_transforms_of_torch_func_are_refused(function: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(RuntimeError, match="the transforms of"):
        torch.func.jacfwd(function)(torch.randn(5))


def test_a_wrong_alpha_is_nan_where_values_cannot_be_read() -> None:
    """Under PyTorch's modes, such as its counter of operations."""
    z = torch.randn(2, 5)
    with FlopCounterMode(display=False):
        assert entmax(z, torch.tensor(0.5)).isnan().all()
        assert entmax(z, torch.tensor([1.5])).isfinite().all()


def test_a_default_device_without_memory_does_not_matter() -> None:
    z = torch.randn(2, 5, requires_grad=True)
    with torch.device("meta"):
        loss = entmax_loss(z, INDEX[:2])
        loss.backward()
    assert torch.equal(loss, entmax_loss(z, INDEX[:2]))
