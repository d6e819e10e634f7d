"""Entmax under PyTorch's compilers, recorders and modes gives its ordinary results."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

from onmt_entmax.sparse import entmax, entmax_attention, entmax_loss, log_entmax

INDEX = torch.tensor([0, 3, 9])  # a class for each of three rows
DISTRIBUTIONS = torch.linspace(-1, 1, 30).view(3, 10).softmax(1)

Results = dict[str, Tensor]
Function = Callable[[Tensor, float | Tensor], Results]

some_alphas = pytest.mark.parametrize(
    "alpha",
    [
        pytest.param(1.0, id="softmax"),
        pytest.param(1.5, id="1.5"),
        pytest.param(torch.tensor([[1.0], [1.4], [2.3]]), id="an alpha for each row"),
    ],
)


def all_functions(scores: Tensor, alpha: float | Tensor) -> Results:
    """Return what each function computes, by a name that a failure shows.

    Args:
        scores: ``(3, 10)``.
        alpha: a number, or an alpha for each row ``(3, 1)``.
    """
    # Attention takes an alpha for each head, and these scores have no heads.
    attention_alpha = 1.3 if isinstance(alpha, Tensor) else alpha
    return {
        "entmax": entmax(scores, alpha),
        "log_entmax": log_entmax(scores, alpha),
        "log_entmax of columns": log_entmax(scores, 1.5, 0),
        "loss of classes": entmax_loss(scores, INDEX, alpha, label_smoothing=0.1),
        "loss of distributions": entmax_loss(scores, DISTRIBUTIONS, alpha),
        "attention": entmax_attention(scores, scores, scores, alpha=attention_alpha),
    }


COMPILED: Function = torch.compile(all_functions, fullgraph=True, backend="aot_eager")


# --- compilers and recorders -----------------------------------------------------------------


def gradients_of(function: Function, alpha: float | Tensor) -> dict[str, tuple[Tensor, ...]]:
    """Return the gradients of each result in the scores and, if it is a tensor, in alpha."""
    scores = torch.linspace(-2, 2, 30).sin().view(3, 10).requires_grad_()
    leaves = [scores]
    if isinstance(alpha, Tensor):
        alpha = alpha.clone().requires_grad_()
        leaves.append(alpha)

    def gradients(name: str) -> tuple[Tensor, ...]:
        result = function(scores, alpha)[name]
        upstream = torch.linspace(-1, 1, result.numel()).view_as(result)
        # A result that does not depend on alpha has the gradient 0.
        return torch.autograd.grad(result, leaves, upstream, materialize_grads=True)

    return {name: gradients(name) for name in all_functions(scores, alpha)}


@some_alphas
def test_a_compiled_graph_gives_the_same_values(alpha: float | Tensor) -> None:
    scores = torch.randn(3, 10)
    torch.testing.assert_close(COMPILED(scores, alpha), all_functions(scores, alpha))


@some_alphas
def test_a_compiled_graph_gives_the_same_gradients(alpha: float | Tensor) -> None:
    gradients, expected = gradients_of(COMPILED, alpha), gradients_of(all_functions, alpha)
    # In graphs, PyTorch's operations compute gradients; otherwise, C++ does.
    torch.testing.assert_close(gradients, expected, rtol=1e-4, atol=1e-5)


@some_alphas
def test_an_exported_program_gives_the_same_values(alpha: float | Tensor) -> None:
    class Module(torch.nn.Module):
        def forward(self, scores: Tensor, alphas: Tensor) -> Results:
            return all_functions(scores, alphas if isinstance(alpha, Tensor) else alpha)

    example, other = torch.randn(2, 3, 10)
    alphas = alpha if isinstance(alpha, Tensor) else torch.ones(3, 1)
    program = torch.export.export(Module(), (example, alphas)).module()
    torch.testing.assert_close(program(other, alphas), all_functions(other, alpha))


@some_alphas
def test_a_graph_of_operations_gives_the_same_values(alpha: float | Tensor) -> None:
    example, other = torch.randn(2, 3, 10)
    graph = make_fx(lambda scores: all_functions(scores, alpha), tracing_mode="real")(example)
    torch.testing.assert_close(graph(other), all_functions(other, alpha))


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
@pytest.mark.slow
def test_code_of_inductor_gives_the_same_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    compiled: Function = torch.compile(all_functions, fullgraph=True)
    scores = torch.randn(3, 10)
    torch.testing.assert_close(compiled(scores, 1.5), all_functions(scores, 1.5))


@pytest.mark.parametrize("each_row", [False, True], ids=["an alpha", "an alpha for each row"])
def test_the_operator_obeys_the_rules_of_pytorch(each_row: bool) -> None:
    scores = torch.rand(3, 5, dtype=torch.float64, requires_grad=True)
    alphas = None
    if each_row:
        alphas = torch.full((3, 1), 1.4, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(torch.ops.onmt_entmax.mapping.default, (scores, 1.5, alphas, False))


# --- modes and transforms --------------------------------------------------------------------


def loss_of_class_0(scores: Tensor) -> Tensor:
    return entmax_loss(scores, torch.tensor(0))


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
def test_a_wrong_alpha_gives_nan_where_values_cannot_be_read(alpha: Tensor, is_nan: bool) -> None:
    """No values can be read under PyTorch's modes, such as its counter of operations."""
    with FlopCounterMode(display=False):
        p = entmax(torch.randn(2, 5), alpha)
    assert p.isnan().tolist() == [[is_nan] * 5] * 2


def test_a_default_device_without_memory_does_not_matter() -> None:
    scores, target = torch.randn(2, 5, requires_grad=True), torch.tensor([0, 3])
    with torch.device("meta"):
        loss = entmax_loss(scores, target)
        loss.backward()
    assert torch.equal(loss, entmax_loss(scores, target))
