"""Checks for `gpu.py`: kernels against float64 on the CPU, CUDA graphs against plain updates."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator

import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch, Shapes
from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.train.padded import pad_batch, padded_outputs, views
from tools.bench import batches as text
from tools.bench.gpu_steps import LEARNING_RATE, Device, Result, Size, StaticStep

PAD = 1  # a class that is ignored


def _distance(computed: Tensor, expected: Tensor, least: float = 1e-30) -> float:
    """Return the largest difference relative to the largest value, or `least`; infinite for nan."""
    expected = expected.detach()
    scale = float(expected.abs().max().clamp_min(least))
    distance = float((computed - expected).abs().max()) / scale
    return math.inf if math.isnan(distance) else distance


def check_loss(device: Device, quick: bool) -> Iterator[Result]:
    """Compare the loss with that in float64 on the CPU."""
    torch.manual_seed(0)
    sizes = [(300, 776, 24)] if not device.is_gpu else [(4096, 776, 300), (640, 18_000, 300)]
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
    """Compare padded models with unpadded ones in float64 on the CPU."""
    alphas = ("1.5", "1", "learned") if size.transformer else ("1.5", "1.33", "1", "mlp 1.5")
    for name in alphas:
        kind, _, alpha = name.rpartition(" ")
        vocabularies = size.vocabularies()
        model = size.model(alpha, 0.0)
        if kind == "mlp":
            model.decoder.attn = EntmaxGlobalAttention(size.hidden, kind, float(alpha))
        model = model.double()
        batch = next(text.batches(size.read(None), vocabularies, min(size.batch, 32), 512))
        hidden, target = model.hidden_states(batch)
        expected = model.generator.loss(hidden, target, vocabularies.target.pad).loss
        parameters = list(model.parameters())
        expected_grads = torch.autograd.grad(expected, parameters)
        # The biases of a Transformer's keys have no gradient but for rounding.
        least = 1e-3 * max(float(grad.abs().max()) for grad in expected_grads)
        # The attention kernels of Transformers take no float64.
        for dtype, bound in ((torch.float64, 1e-9), (torch.float32, 1e-3)):
            moved = model.to(device.device, dtype)
            pads = vocabularies.source.pad, vocabularies.target.pad
            padded, shape = pad_batch(batch, Shapes(len(batch)), *pads)
            ids, target, lengths = views(padded.to(device.device), shape)
            outputs = padded_outputs(moved, ids, target, lengths)
            states, classes = outputs.flatten(0, 1), target[1:].flatten()
            loss = moved.generator.loss(states, classes, vocabularies.target.pad).loss
            grads = torch.autograd.grad(loss, list(moved.parameters()))
            pairs = zip(grads, expected_grads, strict=True)
            worst = max(_distance(grad.cpu().double(), value, least) for grad, value in pairs)
            worst = max(worst, _distance(loss.detach().cpu().double(), expected.detach()))
            what = f"update {size.name} alpha {name} {dtype}"
            yield {"what": what, "error": worst, "ok": worst < bound}


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
