"""Checks for `gpu.py`: kernels against float64 on the CPU, CUDA graphs against plain updates.

A check is a row of results with a text `what`, an `error` and `ok`. Errors are relative: the
largest difference of a tensor, over its largest value. On a CPU they try the checks themselves.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.errors import UserError
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
LOSS_SIZES = ((4096, 776, 300), (640, 18_000, 300))  # rows, classes and hidden size
SMALL_LOSS_SIZES = ((300, 776, 24),)
LOSS_ALPHAS = (1.0, 1.05, 1.33, 1.5, 2.0)
SPREADS = (1.0, 8.0)  # of hidden states; with the larger, few classes have a probability
# Errors that are no faults: sums of rounded products. Those of an update add up over many layers.
MOST_LOSS_ERROR = 1e-4
MOST_UPDATE_ERROR = {torch.float64: 1e-9, torch.float32: 1e-3}
# Gradients are compared relative to no less than this share of the largest one: the biases of a
# Transformer's keys have none but for rounding.
LEAST_GRADIENT = 1e-3
LEAST_SCALE = 1e-30  # of other values, so that nothing is divided by zero
ROUNDS_OF_GRAPHS = 3  # over all batches: plain, recorded, replayed


def _distance(computed: Tensor, expected: Tensor, least: float = LEAST_SCALE) -> float:
    """Return the largest difference relative to the largest value, or `least`; infinite for nan."""
    expected = expected.detach()
    scale = float(expected.abs().max().clamp_min(least))
    distance = float((computed - expected).abs().max()) / scale
    return math.inf if math.isnan(distance) else distance


def check_loss(device: Device, quick: bool) -> Iterator[Result]:
    """Compare the loss with that in float64 on the CPU, for narrow and wide scores."""
    torch.manual_seed(0)
    sizes = LOSS_SIZES if device.is_gpu else SMALL_LOSS_SIZES
    for (rows, classes, hidden), alpha in product(sizes, LOSS_ALPHAS):
        if alpha == 1.05 and classes > 10_000 and quick:
            continue  # to save time, alphas near 1 are checked with few classes alone
        for spread in SPREADS:
            layer = OutputLayer(hidden, classes, alpha)
            torch.nn.init.normal_(layer.weight, 0, hidden**-0.5)
            states = torch.randn(rows, hidden) * spread
            target = torch.randint(classes, (rows,))
            target[::5] = PAD
            what = f"loss {rows}x{classes} alpha {alpha} spread {spread:g}"
            yield {"what": what, **_compare_losses(device, layer, states, target)}


def _compare_losses(device: Device, layer: OutputLayer, states: Tensor, target: Tensor) -> Result:
    """Compare the loss on the device with that in float64: loss, gradients and support.

    Args:
        device: to check.
        layer: in float32 on the CPU.
        states: `(rows, hidden)`, float32 on the CPU.
        target: `(rows,)`, classes, some of which are `PAD`.
    """
    computed = _loss_of(copy.deepcopy(layer), states, target, device.device, torch.float32)
    expected = _loss_of(copy.deepcopy(layer), states, target, torch.device("cpu"), torch.float64)
    pairs = zip(computed.values, expected.values, strict=True)
    worst = max(_distance(value, exact) for value, exact in pairs)
    support = abs(computed.support / expected.support - 1)
    return {"error": worst, "support": support, "ok": worst < MOST_LOSS_ERROR}


class _Loss(NamedTuple):
    """A loss, as it was computed somewhere.

    Attributes:
        values: the loss, and its gradients in states, weight and bias; on the CPU in float64.
        support: classes with a probability, over all rows.
    """

    values: list[Tensor]
    support: float


def _loss_of(
    layer: OutputLayer, states: Tensor, target: Tensor, device: torch.device, dtype: torch.dtype
) -> _Loss:
    """Return the loss of states `(rows, hidden)` and targets `(rows,)`; the layer is moved."""
    layer.to(device, dtype)
    moved = states.to(device, dtype).requires_grad_()
    result = layer.loss(moved, target.to(device), PAD)
    gradients = torch.autograd.grad(result.loss, [moved, layer.weight, layer.bias])
    values = [value.detach().cpu().double() for value in (result.loss, *gradients)]
    return _Loss(values, float(result.support))


def check_updates(device: Device, size: Size) -> Iterator[Result]:
    """Compare updates of padded models with unpadded ones in float64 on the CPU.

    In float64 a Transformer's attention is PyTorch's arithmetic; float32 is what checks its
    kernels, which take no float64.
    """
    alphas = ("1.5", "1", "learned") if size.transformer else ("1.5", "1.33", "1", "mlp 1.5")
    vocabularies = size.vocabularies()
    batch = next(text.batches(size.read(None), vocabularies, min(size.batch, 32), 512))
    pads = vocabularies.source.pad, vocabularies.target.pad
    for name in alphas:
        model = _model_of(size, name).double()
        # Copies run, since a decoder that has run keeps its state, which cannot be copied.
        expected_loss, *expected = _unpadded(copy.deepcopy(model), batch, pads)
        least = LEAST_GRADIENT * max(float(gradient.abs().max()) for gradient in expected)
        for dtype, bound in MOST_UPDATE_ERROR.items():
            moved = copy.deepcopy(model).to(device.device, dtype)
            loss, *computed = _padded(moved, batch, pads, device)
            pairs = zip(computed, expected, strict=True)
            errors = [_distance(gradient, exact, least) for gradient, exact in pairs]
            worst = max(_distance(loss, expected_loss), *errors)
            what = f"update {size.name} alpha {name} {dtype}"
            yield {"what": what, "error": worst, "ok": worst < bound}


def _model_of(size: Size, name: str) -> SparseNMTModel:
    """Return a model without dropout.

    Args:
        size: of the model.
        name: its alpha as `Size.model` takes it, or behind a kind of attention, as in "mlp 1.5".
    """
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
    """Return what `_unpadded` does, computed on the device from a batch padded as for CUDA graphs.

    Args:
        model: on the device.
        batch: as batches are read.
        pads: ids of padding in source and target.
        device: to check.

    Returns:
        The loss and its gradients, on the CPU in float64.
    """
    padded, shape = pad_batch(batch, Shapes(len(batch)), *pads)
    ids, target, lengths = views(padded.to(device.device), shape)
    states = padded_outputs(model, ids, target, lengths).flatten(0, 1)
    loss = model.generator.loss(states, target[1:].flatten(), pads[1]).loss
    grads = torch.autograd.grad(loss, list(model.parameters()))
    return [tensor.detach().cpu().double() for tensor in (loss, *grads)]


def check_graphs(device: Device, size: Size, data: list[Batch]) -> Result:
    """Compare the first replay of every graph with a plain update, with dropout.

    `train.graphs.Recorder` compares, in its mode "check". The first time, a shape of batches is
    computed plainly, the second time its graph is recorded and replayed.
    """
    torch.manual_seed(3)
    model = size.model("learned" if size.transformer else "1.5", dropout=0.3).to(device.device)
    step = StaticStep(model, size.vocabularies(), Shapes(size.batch), LEARNING_RATE, "check")
    what = f"graphs {size.name} {size.batch} pairs"
    try:
        for _ in range(ROUNDS_OF_GRAPHS):
            for batch in data:
                step.take(batch)
    except (UserError, RuntimeError) as error:  # they differ, or a graph cannot be recorded
        return {"what": what, "error": str(error), "ok": False}
    graphs = step.updates.recorder.captured
    is_finite = step.report is not None and bool(step.report.isfinite().all())
    return {"what": what, "error": 0.0, "graphs": graphs, "ok": is_finite and graphs > 0}
