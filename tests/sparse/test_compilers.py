"""Compilers, recorders and modes of PyTorch: what they make of entmax equals what it computes."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

from onmt_entmax.sparse import (
    entmax,
    entmax_attention,
    entmax_loss,
    log_entmax,
    reference,
)

TARGET = torch.tensor([0, 3])
alpha_forms = pytest.mark.parametrize(
    "alpha",
    [
        pytest.param(1.0, id="softmax"),
        pytest.param(1.5, id="1.5"),
        pytest.param(torch.tensor([[1.0], [1.4], [2.3]]), id="an alpha for each row"),
    ],
)


def all_functions(z: Tensor, alpha: float | Tensor) -> Tensor:
    """Return a sum of all functions of scores ``(3, 10)``, on all of which it depends."""
    p, logs = entmax(z * 2, alpha), log_entmax(z.t(), 1.5, 0).t().clamp_min(-30.0)
    smoothed = entmax_loss(z, z.argmin(1), alpha, label_smoothing=0.1)
    of_attention = 1.3 if isinstance(alpha, Tensor) else alpha
    attended = entmax_attention(z, z, z, alpha=of_attention).sum()
    return (p * logs).sum() + smoothed + entmax_loss(z, p, alpha) + attended


def value_and_gradients(
    function: Callable[[Tensor, float | Tensor], Tensor], alpha: float | Tensor
) -> list[Tensor]:
    """Return a function's value, and its gradients in scores and, if it is a tensor, alpha."""
    z = torch.linspace(-2, 2, 30).sin().view(3, 10).requires_grad_()
    form = alpha.clone().requires_grad_() if isinstance(alpha, Tensor) else alpha
    value = function(z, form)
    inputs = (z, form) if isinstance(form, Tensor) else (z,)
    return [value.detach(), *torch.autograd.grad(value, inputs)]


@alpha_forms
def test_a_compiled_graph_gives_the_same(alpha: float | Tensor) -> None:
    compiled = torch.compile(all_functions, fullgraph=True, backend="aot_eager")
    expected = value_and_gradients(all_functions, alpha)
    torch.testing.assert_close(value_and_gradients(compiled, alpha), expected, rtol=1e-4, atol=1e-5)


@alpha_forms
def test_an_exported_program_gives_the_same(alpha: float | Tensor) -> None:
    class Module(torch.nn.Module):
        def forward(self, z: Tensor, alphas: Tensor) -> Tensor:
            return all_functions(z, alphas if isinstance(alpha, Tensor) else alpha)

    first, second = torch.randn(2, 3, 10)
    alphas = alpha if isinstance(alpha, Tensor) else torch.ones(3, 1)
    exported = torch.export.export(Module(), (first, alphas)).module()
    for z in (first, second):
        torch.testing.assert_close(exported(z, alphas), all_functions(z, alpha))


@alpha_forms
def test_a_graph_of_operations_gives_the_same(alpha: float | Tensor) -> None:
    first, second = torch.randn(2, 3, 10)
    graph = make_fx(lambda z: all_functions(z, alpha), tracing_mode="real")(first)
    torch.testing.assert_close(graph(second), all_functions(second, alpha))


@pytest.mark.parametrize("each_row", [False, True], ids=["an alpha", "an alpha for each row"])
def test_the_operator_obeys_the_rules_of_pytorch(each_row: bool) -> None:
    z = torch.rand(3, 5, dtype=torch.float64, requires_grad=True)
    alphas = None
    if each_row:
        alphas = torch.full((3, 1), 1.4, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(torch.ops.onmt_entmax.mapping.default, (z, 1.5, alphas, False))


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
@pytest.mark.slow
def test_code_of_inductor_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize(
    ("alpha", "is_nan"),
    [
        pytest.param(torch.tensor(0.5), True, id="below 1"),
        pytest.param(torch.tensor([1.5]), False, id="in range"),
    ],
)
def test_a_wrong_alpha_is_nan_where_values_cannot_be_read(alpha: Tensor, is_nan: bool) -> None:
    """This is so under PyTorch's modes, such as its counter of operations."""
    with FlopCounterMode(display=False):
        p = entmax(torch.randn(2, 5), alpha)
    assert p.isnan().tolist() == [[is_nan] * 5] * 2


def test_a_default_device_without_memory_does_not_matter() -> None:
    z = torch.randn(2, 5, requires_grad=True)
    with torch.device("meta"):
        loss = entmax_loss(z, TARGET)
        loss.backward()
    assert torch.equal(loss, entmax_loss(z, TARGET))


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize(
    "alpha",
    [
        pytest.param(3.0, id="an alpha"),
        pytest.param(torch.tensor([[1.5], [3.0], [1.0], [2.25]]), id="an alpha for each row"),
    ],
)
def test_a_recorded_graph_above_alpha_2_takes_rows_of_any_length(alpha: float | Tensor) -> None:
    traced = torch.jit.trace(
        lambda z: reference.mapping(z, alpha, logs=False), torch.randn(4, 9), check_trace=False
    )
    with torch.jit.optimized_execution(False):  # optimising the graph takes seconds
        for length in (1, 9, 300):
            scores = torch.randn(4, length)
            torch.testing.assert_close(traced(scores), reference.mapping(scores, alpha, logs=False))
