"""Modules as ONNX files, as graphs of TensorBoard, and as programs of `torch.export`.

Each file or program is made with one example, and must be right for other scores and more rows.
"""

import importlib.util
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax import Entmax, EntmaxLoss, entmax, entmax_attention, log_entmax

pytestmark = pytest.mark.usefixtures("no_tracer_warnings")


class EveryLayer(nn.Module):
    """A network with a layer of each kind; the attention has a learned alpha for each head."""

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
    """A layer that rounds scores to float16."""

    def forward(self, z: Tensor) -> Tensor:
        """Return the scores in float16."""
        return z.half()


def test_tensorboard_draws_the_graph(tmp_path: Path) -> None:
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
        # ONNX Runtime multiplies and sums in another order: some 20 to 100 machine epsilons.
        torch.testing.assert_close(torch.from_numpy(output), expected, rtol=1e-5, atol=2e-6)


# Each version of PyTorch and its exporters warns of other deprecated parts of its own.
any_warnings = pytest.mark.filterwarnings("ignore")
# Exporting a network takes seconds, so only one alpha is always tried.
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
def test_an_onnx_file_of_a_traced_mapping_in_float16_takes_more_rows(
    alpha: float, tmp_path: Path
) -> None:
    module = nn.Sequential(ToFloat16(), Entmax(alpha))
    export_trace(module, tmp_path / "model.onnx")
    check_onnx(module, tmp_path / "model.onnx")


@needs_onnx
@any_warnings
@pytest.mark.parametrize("alpha", OF_NETWORKS)
def test_an_onnx_file_of_a_traced_network_takes_more_rows(alpha: float, tmp_path: Path) -> None:
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
def test_an_onnx_file_of_an_exported_program_takes_more_rows(
    module: nn.Module, tmp_path: Path
) -> None:
    path, sizes = tmp_path / "model.onnx", ({1: torch.export.Dim.DYNAMIC},)
    example = (torch.randn(2, 3, 10),)
    torch.onnx.export(module, example, path, dynamo=True, dynamic_shapes=sizes, verbose=False)
    check_onnx(module, path)


def test_an_exported_program_has_one_operator_for_a_mapping() -> None:
    """The operations that stand in for it in ONNX files would be slower."""
    program = torch.export.export(FixedAlpha(1.5), (torch.randn(2, 3, 10),))
    modules = program.graph_module.modules()
    graphs = [module.graph for module in modules if hasattr(module, "graph")]
    names = [str(node.target) for graph in graphs for node in graph.nodes]
    assert sum("onmt_entmax.mapping" in name for name in names) == 2  # of mapping and attention
    assert len(names) < 60  # the operations of one mapping alone would be more


def test_an_exported_program_takes_more_rows() -> None:
    sizes = ({1: torch.export.Dim.DYNAMIC},)
    module = FixedAlpha(1.5)
    program = torch.export.export(module, (torch.randn(2, 3, 10),), dynamic_shapes=sizes).module()
    other = torch.randn(2, 7, 10)
    torch.testing.assert_close(program(other), module(other))
