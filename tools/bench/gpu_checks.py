"""Checks for `gpu.py`: kernels against float64 on the CPU, CUDA graphs against plain updates."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator

import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch, Shapes
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.train.padded import pad_batch, padded_outputs, views
from tools.bench import batches as text
from tools.bench.gpu_contenders import StaticStep
from tools.bench.gpu_device import Device
from tools.bench.gpu_sizes import Size
from tools.bench.gpu_steps import LEARNING_RATE, Result

PAD = 1  # a class that is ignored


def _distance(computed: Tensor, expected: Tensor, least: float = 1e-30) -> float:
    """Return the largest difference relative to the largest value, or `least`; infinite for nan."""
    expected = expected.detach()
    scale = float(expected.abs().max().clamp_min(least))
    distance = float((computed - expected).abs().max()) / scale
    return math.inf if math.isnan(distance) else distance


def check_loss(device: Device, quick: bool) -> Iterator[Result]:
    """Compare the loss with that in float64 on the CPU, for narrow and wide scores."""
    torch.manual_seed(0)
    sizes = [(4096, 776, 300), (640, 18_000, 300)] if device.is_gpu else [(300, 776, 24)]
    for rows, vocabulary, hidden in sizes:
        for alpha in (1.0, 1.05, 1.33, 1.5, 2.0):
            if alpha == 1.05 and vocabulary > 10_000 and quick:
                continue
            for spread in (1.0, 8.0):
                exact = OutputLayer(hidden, vocabulary, alpha).double()
                torch.nn.init.normal_(exact.weight, 0, hidden**-0.5)
                states = torch.randn(rows, hidden, dtype=torch.float64) * spread
                target = torch.randint(vocabulary, (rows,))
                target[::5] = PAD
                what = f"loss {rows}x{vocabulary} alpha {alpha} spread {spread:g}"
                yield {"what": what, **_compare_losses(device, exact, states, target)}


def _compare_losses(device: Device, exact: OutputLayer, states: Tensor, target: Tensor) -> Result:
    """Compare an output layer on the device with one in float64: loss, gradients and support."""
    layer = copy.deepcopy(exact).float().to(device.device)
    states_on_device = states.float().to(device.device).requires_grad_()
    loss = layer.loss(states_on_device, target.to(device.device), PAD)
    grads = torch.autograd.grad(loss.loss, [states_on_device, layer.weight, layer.bias])
    # Weights and states as they were rounded.
    exact.load_state_dict(layer.state_dict())
    exact_states = states_on_device.detach().cpu().double().requires_grad_()
    expected = exact.loss(exact_states, target, PAD)
    expected_grads = torch.autograd.grad(expected.loss, [exact_states, exact.weight, exact.bias])
    pairs = [(loss.loss.detach(), expected.loss), *zip(grads, expected_grads, strict=True)]
    worst = max(_distance(computed.cpu().double(), value) for computed, value in pairs)
    support = abs(float(loss.support) / float(expected.support) - 1)
    return {"error": worst, "support": support, "ok": worst < 1e-4}


def check_updates(device: Device, size: Size) -> Iterator[Result]:
    """Compare updates of padded models with unpadded ones in float64 on the CPU."""
    alphas = ("1.5", "1", "learned") if size.transformer else ("1.5", "1.33", "1", "mlp 1.5")
    vocabularies = size.vocabularies()
    batch = next(text.batches(size.read(None), vocabularies, min(size.batch, 32), 512))
    pads = vocabularies.source.pad, vocabularies.target.pad
    for name in alphas:
        model = _model_of(size, name).double()
        expected = _unpadded(model, batch, pads)
        # The biases of a Transformer's keys have no gradient but for rounding.
        least = 1e-3 * max(float(grad.abs().max()) for grad in expected[1:])
        # The attention kernels of Transformers take no float64.
        for dtype, bound in ((torch.float64, 1e-9), (torch.float32, 1e-3)):
            computed = _padded(model.to(device.device, dtype), batch, pads, device)
            pairs = list(zip(computed, expected, strict=True))
            worst = _distance(*pairs[0])
            worst = max(worst, *(_distance(grad, value, least) for grad, value in pairs[1:]))
            what = f"update {size.name} alpha {name} {dtype}"
            yield {"what": what, "error": worst, "ok": worst < bound}


def _model_of(size: Size, name: str) -> SparseNMTModel:
    """Return a model without dropout; its alpha may stand behind a kind of attention."""
    kind, _, alpha = name.rpartition(" ")
    model = size.model(alpha, dropout=0.0)
    if kind:
        model.decoder.attn = EntmaxGlobalAttention(size.hidden, kind, float(alpha))
    return model


def _unpadded(model: SparseNMTModel, batch: Batch, pads: tuple[int, int]) -> list[Tensor]:
    """Return the loss of a model, and its gradient in each parameter.

    Args:
        model: on the CPU.
        batch: as batches are read.
        pads: ids of padding in source and target.
    """
    hidden, target = model.hidden_states(batch)
    loss = model.generator.loss(hidden, target, pads[1]).loss
    return [loss.detach(), *torch.autograd.grad(loss, list(model.parameters()))]


def _padded(
    model: SparseNMTModel, batch: Batch, pads: tuple[int, int], device: Device
) -> list[Tensor]:
    """Return the same of a batch that is padded as for CUDA graphs, on the CPU in float64."""
    padded, shape = pad_batch(batch, Shapes(len(batch)), *pads)
    ids, target, lengths = views(padded.to(device.device), shape)
    states = padded_outputs(model, ids, target, lengths).flatten(0, 1)
    loss = model.generator.loss(states, target[1:].flatten(), pads[1]).loss
    grads = torch.autograd.grad(loss, list(model.parameters()))
    return [tensor.detach().cpu().double() for tensor in (loss, *grads)]


def check_graphs(device: Device, size: Size, data: list[Batch]) -> Result:
    """Compare the first replay of every graph with a plain update, with dropout."""
    torch.manual_seed(3)
    model = size.model("learned" if size.transformer else "1.5", 0.3).to(device.device)
    step = StaticStep(model, size.vocabularies(), Shapes(size.batch), LEARNING_RATE, "check")
    what = f"graphs {size.name} {size.batch} pairs"
    try:
        for _ in range(3):
            for batch in data:
                step.take(batch)
    except Exception as error:
        return {"what": what, "error": str(error), "ok": False}
    graphs = step.updates.recorder.captured
    finite = step.report is not None and bool(step.report.isfinite().all())
    return {"what": what, "error": 0.0, "graphs": graphs, "ok": finite and graphs > 0}
