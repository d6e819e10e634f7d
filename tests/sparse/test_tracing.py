"""Traces by `torch.jit.trace`, TensorBoard's graphs, and exports to ONNX.

Each is made with one example, and must be right for other values and other lengths.
"""

import importlib.util
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax import (
    Entmax,
    EntmaxLoss,
    entmax,
    entmax_attention,
    entmax_attention_weights,
    entmax_loss,
    log_entmax,
    tsallis_entropy,
)
from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.sparse import reference, traced
from tests.sparse.conftest import forms_of_alpha

ALPHAS = (1.0, 1.2, 1.5, 2.0, 3.0)
INDEX = torch.tensor([0, 3, 9])


@pytest.fixture(autouse=True)
def no_tracer_warnings() -> Iterator[None]:
    """Fail if PyTorch warns that a trace may be wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", torch.jit.TracerWarning)
        yield


class EveryLayer(nn.Module):
    """A layer of each kind, with an alpha for each head that is learned."""

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.heads = nn.Parameter(torch.tensor([1.0, alpha]))
        self.mapping, self.criterion = Entmax(alpha), EntmaxLoss(alpha, label_smoothing=0.1)

    def forward(self, z: Tensor) -> Tensor:
        """Return a number ``(2, rows, 1)`` for each row of scores ``(2, rows, classes)``.

        It depends on every layer: a log-probability plus the mean loss.
        """
        attended = entmax_attention(z, z, z, alpha=self.heads, is_causal=True)
        scores = self.mapping(z) + attended
        loss = self.criterion(scores.flatten(0, 1), scores.flatten(0, 1).argmax(1))
        return log_entmax(scores, self.mapping.alpha)[..., :1].clamp_min(-9) + loss


class FixedAlpha(nn.Module):
    """A mapping and attention whose alpha is a constant of the program."""

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, z: Tensor) -> Tensor:
        """Return a tensor of the shape of the scores ``(2, rows, classes)``."""
        return entmax(z, self.alpha) * entmax_attention(z, z, z, alpha=self.alpha, is_causal=True)


class ToFloat16(nn.Module):
    def forward(self, z: Tensor) -> Tensor:
        """Return scores in float16."""
        return z.half()


def awkward_scores(alpha: float) -> Tensor:
    """Return scores ``(40, 33)``: ordinary, far apart, equal, -inf, on the support's edge."""
    scales = torch.tensor([0.1, 1.0, 5.0, 100.0], dtype=torch.float64).repeat(10)
    z = torch.randn(40, 33, dtype=torch.float64) * scales.unsqueeze(1)
    z[0] = 1.0
    z[1, 3:] = -math.inf
    z[2, :2] = torch.tensor([0.0, 1 / (alpha - 1)])  # the first has exactly no probability
    return z


@pytest.mark.parametrize("alpha", [1.01, 1.2, 1.5, 2.0, 2.5, 4.0, 10.0, 100.0])
def test_the_operations_equal_the_definition(alpha: float) -> None:
    """Supports are equal too, above alpha 2 with probabilities that no threshold determines."""
    z = awkward_scores(alpha)
    for logs in (False, True):
        expected = reference.mapping(z, alpha, logs)
        for form in forms_of_alpha(alpha, z):
            output = traced.mapping(z, form, logs)
            torch.testing.assert_close(output, expected, rtol=1e-9, atol=1e-12)
            empty = -math.inf if logs else 0
            assert torch.equal(output == empty, expected == empty)


def with_gradients(function: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """Return an output and the gradients of a sum of it, with -inf as 0."""
    inputs = tuple(x.clone().requires_grad_() if x.is_floating_point() else x for x in inputs)
    output = function(*inputs)
    finite = torch.where(output.isinf(), 0.0, output)
    factors = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view(output.shape).sin()
    wanted = [x for x in inputs if x.requires_grad]
    return [output.detach(), *torch.autograd.grad((finite * factors).sum(), wanted)]


def check_trace(
    function: Callable[..., Tensor], example: tuple[Tensor, ...], other: tuple[Tensor, ...]
) -> None:
    """Trace a function with one example; compare values and gradients for it and for another."""
    trace = torch.jit.trace(function, example)
    for inputs in (example, other):
        expected, *expected_gradients = with_gradients(function, inputs)
        output, *gradients = with_gradients(trace, inputs)
        torch.testing.assert_close(output, expected, rtol=2e-7, atol=2e-7)
        torch.testing.assert_close(gradients, expected_gradients, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_traced_mappings(alpha: float) -> None:
    example, other = (torch.randn(3, 10),), (torch.randn(7, 41),)
    check_trace(lambda z: entmax(z, alpha), example, other)
    check_trace(lambda z: entmax(z, alpha, 0), example, other)
    check_trace(lambda z: log_entmax(z.double(), alpha), example, other)


def test_traced_entropies_of_learned_alphas() -> None:
    """An alpha is an input of the trace, not a constant of its example."""
    example = torch.rand(3, 10).softmax(-1), torch.tensor([[1.2], [1.5], [2.0]])
    check_trace(tsallis_entropy, example, (torch.rand(3, 41).softmax(-1), torch.rand(3, 1) + 1.1))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_traced_attention(alpha: float) -> None:
    def inputs(*, batch: int, queries: int, keys: int, size: int) -> tuple[Tensor, ...]:
        query, key = torch.randn(batch, 4, queries, size), torch.randn(batch, 2, keys, size)
        return query.double(), key.double(), (torch.randn(queries, keys) > -1).double()

    example = inputs(batch=1, queries=4, keys=5, size=10)
    other = inputs(batch=2, queries=9, keys=8, size=12)

    def attention(query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
        options: Any = {"alpha": alpha, "enable_gqa": True}
        weights = entmax_attention_weights(query, key, **options, attn_mask=mask > 0)
        causal = entmax_attention(query, key, key, **options, is_causal=True)
        added = entmax_attention(query, key, key, **options, attn_mask=mask, dropout_p=0.0)
        return weights @ torch.ones_like(key).repeat_interleave(2, 1) + causal + added

    check_trace(attention, example, other)


@pytest.mark.parametrize("shape", [(1, 4, 10), (2, 9, 10)])
def test_a_trace_with_a_short_example_takes_longer_inputs(shape: tuple[int, ...]) -> None:
    """Here nothing needs a gradient, so attention reads and writes memory by itself."""
    example, inputs = torch.randn(1, 4, 10), torch.randn(shape)
    trace = torch.jit.trace(lambda z: entmax_attention(z, z, z, alpha=1.5), (example,))
    expected = entmax_attention(inputs, inputs, inputs, alpha=1.5)
    torch.testing.assert_close(trace(inputs), expected, rtol=2e-7, atol=4e-7)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 3.0])
def test_traced_losses(alpha: float) -> None:
    def loss(z: Tensor, target: Tensor) -> Tensor:
        even = entmax_loss(z, target, alpha, label_smoothing=0.1)
        heavy = entmax_loss(z, target, alpha, weight=z.detach()[0].abs(), reduction="none")
        return even + heavy.sum() + entmax_loss(z, z.detach().softmax(-1), alpha)

    other = torch.randn(5, 12).double(), torch.tensor([0, 3, 11, 2, -100])
    check_trace(loss, (torch.randn(3, 10).double(), INDEX), other)


def loss_of_index(z: Tensor, alpha: Tensor) -> Tensor:
    return entmax_loss(z, INDEX, alpha)


@pytest.mark.parametrize("function", [entmax, log_entmax, loss_of_index])
def test_traced_learned_alphas(function: Callable[..., Tensor]) -> None:
    """One trace for alphas of 1, up to 2, and above."""
    z = torch.randn(3, 10).double()
    example = torch.tensor([[1.2], [1.5], [2.0]]).double()
    other = torch.tensor([[1.0], [1.4], [3.0]]).double()
    check_trace(function, (z, example), (z * 2, other))


def test_traced_learned_alphas_of_heads() -> None:
    def attention(z: Tensor, alpha: Tensor) -> Tensor:
        return entmax_attention(z, z, z, alpha=alpha)

    alphas = torch.tensor([1.0, 1.3, 2.0, 3.0]).double()
    example, other = torch.randn(1, 4, 4, 10).double(), torch.randn(2, 4, 9, 10).double()
    check_trace(attention, (example, alphas), (other, alphas.flip(0)))


@pytest.mark.parametrize("attn_type", ["dot", "general", "mlp"])
def test_traced_attention_of_lstms(attn_type: str) -> None:
    module = EntmaxGlobalAttention(8, attn_type, 1.5)
    with warnings.catch_warnings():
        # OpenNMT-py compares the shapes of the example.
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        example = torch.randn(2, 3, 8), torch.randn(2, 5, 8), torch.tensor([5, 3])
        trace = torch.jit.trace(module, example)
    inputs = torch.randn(4, 6, 8), torch.randn(4, 9, 8), torch.tensor([9, 1, 2, 4])
    torch.testing.assert_close(trace(*inputs), module(*inputs), rtol=2e-7, atol=2e-7)


def test_the_graph_of_tensorboard(tmp_path: Path) -> None:
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        writer.add_graph(EveryLayer(1.5), (torch.randn(2, 3, 10),))
    assert any(file.stat().st_size > 1000 for file in tmp_path.iterdir())


needs_onnx = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxruntime", "onnxscript")),
    reason="needs onnx, onnxruntime and onnxscript",
)


def check_onnx(module: nn.Module, path: Path) -> None:
    """Compare a file's outputs in ONNX Runtime with the module's, for two numbers of rows."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))
    (name,) = (source.name for source in session.get_inputs())
    for rows in (3, 7):
        z = torch.randn(2, rows, 10)
        (output,) = session.run(None, {name: z.numpy()})
        expected = module(z).detach()
        torch.testing.assert_close(torch.from_numpy(output), expected, rtol=1e-5, atol=2e-6)


# PyTorch and its exporters warn of their own deprecated parts, in each version of others.
any_warnings = pytest.mark.filterwarnings("ignore")
OF_NETWORKS = [1.5, *(pytest.param(alpha, marks=pytest.mark.slow) for alpha in (1.3, 2.0, 3.0))]


def export_trace(module: nn.Module, path: Path) -> None:
    """Write a trace as an ONNX file for any number of rows."""
    torch.onnx.export(
        module,
        (torch.randn(2, 3, 10),),
        path,
        dynamo=False,
        input_names=["z"],
        dynamic_axes={"z": {1: "rows"}},
    )


@needs_onnx
@any_warnings
@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0, 3.0])
def test_onnx_of_traced_mappings_in_float16(alpha: float, tmp_path: Path) -> None:
    module = nn.Sequential(ToFloat16(), Entmax(alpha))
    export_trace(module, tmp_path / "model.onnx")
    check_onnx(module, tmp_path / "model.onnx")


@needs_onnx
@any_warnings
@pytest.mark.parametrize("alpha", OF_NETWORKS)
def test_onnx_of_a_traced_network(alpha: float, tmp_path: Path) -> None:
    module = EveryLayer(alpha)
    export_trace(module, tmp_path / "model.onnx")
    check_onnx(module, tmp_path / "model.onnx")


@needs_onnx
@any_warnings
@pytest.mark.parametrize(
    "module",
    [
        pytest.param(FixedAlpha(1.5), id="a fixed alpha"),
        pytest.param(EveryLayer(3.0), id="every layer", marks=pytest.mark.slow),
    ],
)
def test_onnx_of_exported_programs(module: nn.Module, tmp_path: Path) -> None:
    path, sizes = tmp_path / "model.onnx", ({1: torch.export.Dim.DYNAMIC},)
    example = (torch.randn(2, 3, 10),)
    torch.onnx.export(module, example, path, dynamo=True, dynamic_shapes=sizes, verbose=False)
    check_onnx(module, path)


def test_compilers_see_one_operator() -> None:
    """The operations that stand in for it in ONNX files would be slower."""
    program = torch.export.export(FixedAlpha(1.5), (torch.randn(2, 3, 10),))
    modules = program.graph_module.modules()
    graphs = [module.graph for module in modules if hasattr(module, "graph")]
    names = [str(node.target) for graph in graphs for node in graph.nodes]
    assert sum("onmt_entmax.mapping" in name for name in names) == 2  # of mapping and attention
    assert len(names) < 60  # the operations of one mapping alone would be more


def test_programs_of_any_length() -> None:
    sizes = ({1: torch.export.Dim.DYNAMIC},)
    module = FixedAlpha(1.5)
    program = torch.export.export(module, (torch.randn(2, 3, 10),), dynamic_shapes=sizes).module()
    other = torch.randn(2, 7, 10)
    torch.testing.assert_close(program(other), module(other))
