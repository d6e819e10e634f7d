"""Traces by `torch.jit.trace`, TensorBoard's graphs, and exports to ONNX.

Each is made with one example, and must be right for other values and other lengths.
"""

import importlib.util
import math
import warnings
from collections.abc import Callable
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

ALPHAS = (1.0, 1.2, 1.5, 2.0, 3.0)
INDEX = torch.tensor([0, 3, 9])


@pytest.fixture(autouse=True)
def _without_warnings() -> Any:
    """Fail if PyTorch warns that a trace may be wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", torch.jit.TracerWarning)
        yield


def steep(alpha: float) -> Tensor:
    """Return scores, also equal ones, far ones and -inf."""
    scales = torch.tensor([0.1, 1.0, 5.0, 100.0], dtype=torch.float64).repeat(10)
    z = torch.randn(40, 33, dtype=torch.float64) * scales.unsqueeze(1)
    z[0] = 1.0
    z[1, 3:] = -math.inf
    z[2, :2] = torch.tensor([0.0, 1 / (alpha - 1)])
    return z


@pytest.mark.parametrize("alpha", [1.01, 1.2, 1.5, 2.0, 2.5, 4.0, 10.0, 100.0])
def test_the_operations_equal_the_definition(alpha: float) -> None:
    """Supports are equal too, above alpha 2 with probabilities that no threshold determines."""
    z = steep(alpha)
    for logs in (False, True):
        expected = reference.mapping(z, alpha, logs)
        for form in (alpha, torch.full((40, 1), alpha, dtype=torch.float64)):
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


def check(
    function: Callable[..., Tensor], example: tuple[Tensor, ...], other: tuple[Tensor, ...]
) -> None:
    """Trace a function of tensors without gradients; compare values and gradients."""
    trace = torch.jit.trace(function, example)
    for inputs in (example, other):
        expected, *gradients = with_gradients(function, inputs)
        output, *ours = with_gradients(trace, inputs)
        torch.testing.assert_close(output, expected, rtol=2e-7, atol=2e-7)
        torch.testing.assert_close(ours, gradients, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_traced_mappings(alpha: float) -> None:
    example, other = (torch.randn(3, 10),), (torch.randn(7, 41),)
    check(lambda z: entmax(z, alpha), example, other)
    check(lambda z: entmax(z, alpha, 0), example, other)
    check(lambda z: log_entmax(z.double(), alpha), example, other)


def test_traced_entropies_of_learned_alphas() -> None:
    """An alpha is an input of the trace, not a constant of its example."""
    example = torch.rand(3, 10).softmax(-1), torch.tensor([[1.2], [1.5], [2.0]])
    check(tsallis_entropy, example, (torch.rand(3, 41).softmax(-1), torch.rand(3, 1) + 1.1))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_traced_attention(alpha: float) -> None:
    def inputs(batch: int, queries: int, keys: int, size: int) -> tuple[Tensor, ...]:
        query, key = torch.randn(batch, 4, queries, size), torch.randn(batch, 2, keys, size)
        return query.double(), key.double(), (torch.randn(queries, keys) > -1).double()

    example, other = inputs(1, 4, 5, 10), inputs(2, 9, 8, 12)

    def attention(query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
        options: Any = {"alpha": alpha, "enable_gqa": True}
        weights = entmax_attention_weights(query, key, **options, attn_mask=mask > 0)
        causal = entmax_attention(query, key, key, **options, is_causal=True)
        added = entmax_attention(query, key, key, **options, attn_mask=mask, dropout_p=0.0)
        return weights @ torch.ones_like(key).repeat_interleave(2, 1) + causal + added

    check(attention, example, other)


def test_traced_attention_as_reported() -> None:
    """It read memory that was not there."""
    query = torch.randn(1, 4, 10)
    trace = torch.jit.trace(lambda a: entmax_attention(a, a, a, alpha=1.5), (query,))
    for each in (query, torch.randn(2, 9, 10)):
        expected = entmax_attention(each, each, each, alpha=1.5)
        torch.testing.assert_close(trace(each), expected, rtol=2e-7, atol=4e-7)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 3.0])
def test_traced_losses(alpha: float) -> None:
    def loss(z: Tensor, target: Tensor) -> Tensor:
        even = entmax_loss(z, target, alpha, label_smoothing=0.1)
        heavy = entmax_loss(z, target, alpha, weight=z.detach()[0].abs(), reduction="none")
        return even + heavy.sum() + entmax_loss(z, z.detach().softmax(-1), alpha)

    other = torch.randn(5, 12).double(), torch.tensor([0, 3, 11, 2, -100])
    check(loss, (torch.randn(3, 10).double(), INDEX), other)


def test_traced_learned_alphas() -> None:
    """One trace for alphas of 1, up to 2, and above."""
    example = torch.randn(3, 10).double(), torch.tensor([[1.2], [1.5], [2.0]]).double()
    for function in (entmax, log_entmax, lambda z, a: entmax_loss(z, INDEX, a)):
        check(function, example, (example[0] * 2, torch.tensor([[1.0], [1.4], [3.0]]).double()))
    heads = torch.tensor([1.0, 1.3, 2.0, 3.0]).double()
    check(
        lambda z, alpha: entmax_attention(z, z, z, alpha=alpha),
        (torch.randn(1, 4, 4, 10).double(), heads),
        (torch.randn(2, 4, 9, 10).double(), heads.flip(0)),
    )


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


class Network(nn.Module):
    """A layer of each kind, with an alpha for each head that is learned."""

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.heads = nn.Parameter(torch.tensor([1.0, alpha]))
        self.mapping, self.criterion = Entmax(alpha), EntmaxLoss(alpha, label_smoothing=0.1)

    def forward(self, z: Tensor) -> Tensor:
        """Return a loss for each row of scores ``(2, rows, classes)``."""
        attended = entmax_attention(z, z, z, alpha=self.heads, is_causal=True)
        scores = self.mapping(z) + attended
        loss = self.criterion(scores.flatten(0, 1), scores.flatten(0, 1).argmax(1))
        return log_entmax(scores, self.mapping.alpha)[..., :1].clamp_min(-9) + loss


def test_the_graph_of_tensorboard(tmp_path: Path) -> None:
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        writer.add_graph(Network(1.5), (torch.randn(2, 3, 10),))
    assert any(file.stat().st_size > 1000 for file in tmp_path.iterdir())


needs_onnx = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxruntime", "onnxscript")),
    reason="needs onnx, onnxruntime and onnxscript",
)


def outputs(path: Path, inputs: list[Tensor]) -> list[Tensor]:
    """Return the outputs of a file in ONNX Runtime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))
    (name,) = (each.name for each in session.get_inputs())
    return [torch.from_numpy(session.run(None, {name: each.numpy()})[0]) for each in inputs]


@needs_onnx
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("alpha", "half"),
    [(1.5, True), (1.5, False), (2.0, True), (1.3, True), (3.0, True)]
    + [pytest.param(alpha, False, marks=pytest.mark.slow) for alpha in (1.3, 2.0, 3.0)],
)
def test_onnx_of_traces(alpha: float, half: bool, tmp_path: Path) -> None:
    """It was a constant, without a word."""
    inner = nn.Sequential(Entmax(alpha)) if half else Network(alpha)
    module = nn.Sequential(Half(), inner) if half else inner
    example, other = torch.randn(2, 3, 10), torch.randn(2, 7, 10)
    path, axes = tmp_path / "model.onnx", {"z": {1: "rows"}}
    torch.onnx.export(module, (example,), path, dynamo=False, input_names=["z"], dynamic_axes=axes)
    for each, output in zip((example, other), outputs(path, [example, other]), strict=True):
        torch.testing.assert_close(output, module(each).detach(), rtol=1e-5, atol=2e-6)


class Half(nn.Module):
    """To float16."""

    def forward(self, z: Tensor) -> Tensor:
        """Return scores in float16."""
        return z.half()


@needs_onnx
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("alpha", [1.5, pytest.param(3.0, marks=pytest.mark.slow)])
def test_onnx_of_exported_programs(alpha: float, tmp_path: Path) -> None:
    module = Network(alpha) if alpha == 3 else Plain(alpha)
    example, other = torch.randn(2, 3, 10), torch.randn(2, 7, 10)
    path, sizes = tmp_path / "model.onnx", ({1: torch.export.Dim.DYNAMIC},)
    torch.onnx.export(module, (example,), path, dynamo=True, dynamic_shapes=sizes, verbose=False)
    for each, output in zip((example, other), outputs(path, [example, other]), strict=True):
        torch.testing.assert_close(output, module(each).detach(), rtol=1e-5, atol=2e-6)


class Plain(nn.Module):
    """A mapping and attention of a fixed alpha."""

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, z: Tensor) -> Tensor:
        """Return probabilities times attention."""
        return entmax(z, self.alpha) * entmax_attention(z, z, z, alpha=self.alpha, is_causal=True)


def test_compilers_see_one_operator() -> None:
    """The operations that stand in for it in ONNX files would be slower."""
    program = torch.export.export(Plain(1.5), (torch.randn(2, 3, 10),))
    graphs = [each.graph for each in program.graph_module.modules() if hasattr(each, "graph")]
    names = [str(node.target) for graph in graphs for node in graph.nodes]
    assert sum("onmt_entmax.mapping" in name for name in names) == 2
    assert len(names) < 60


def test_programs_of_any_length() -> None:
    sizes = ({1: torch.export.Dim.DYNAMIC},)
    module = Plain(1.5)
    program = torch.export.export(module, (torch.randn(2, 3, 10),), dynamic_shapes=sizes).module()
    other = torch.randn(2, 7, 10)
    torch.testing.assert_close(program(other), module(other))
