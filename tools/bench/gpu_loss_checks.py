"""Checks of the loss for `gpu.py`: its kernels against float64 on the CPU.

A check is a row of results: `what` was checked, the relative `error` of loss and gradients, that of
the `support`, and whether both are `ok`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.nn.output import OutputLayer
from tools.bench.gpu_device import Device, Result

PAD = 1  # the class of targets that are ignored
PAD_EVERY = 5  # every fifth target is ignored


class LossSize(NamedTuple):
    """Sizes of an output layer and its input.

    Attributes:
        rows: number of states.
        classes: size of the vocabulary.
        hidden: size of a state.
    """

    rows: int
    classes: int
    hidden: int


SIZES = (LossSize(4096, 776, 300), LossSize(640, 18_000, 300))
SMALL = (LossSize(300, 776, 24),)
NEAR_SOFTMAX = 1.05  # nearly all classes have a probability, so this takes the most time
ALPHAS = (1.0, NEAR_SOFTMAX, 1.33, 1.5, 2.0)
MANY_CLASSES = 10_000  # with more, a quick check leaves out `NEAR_SOFTMAX`
SPREADS = (1.0, 8.0)  # of hidden states; with the larger one, few classes have a probability
# Largest relative errors by which rounding explains a difference: those of sums of products, and of
# a support, in which a class at the threshold may be in or out.
LARGEST_ERROR = 1e-4
LARGEST_SUPPORT_ERROR = 1e-3
LEAST_SCALE = 1e-30  # to which an error is relative, so that nothing is divided by zero


def relative_error(computed: Tensor, exact: Tensor, least: float = LEAST_SCALE) -> float:
    """Return the largest difference relative to the largest exact value; infinite for nan.

    Args:
        computed: any tensor.
        exact: the exact values, of the same shape.
        least: the difference is relative to no less than this.
    """
    exact = exact.detach()
    scale = float(exact.abs().max().clamp_min(least))
    error = float((computed - exact).abs().max()) / scale
    return math.inf if math.isnan(error) else error


def check_loss(device: Device, quick: bool) -> Iterator[Result]:
    """Compare the loss with that in float64 on the CPU, for narrow and wide scores.

    Args:
        device: computes the loss to check.
        quick: whether to leave out the slowest alpha with many classes.
    """
    torch.manual_seed(0)
    for size, alpha in product(SIZES if device.is_gpu else SMALL, ALPHAS):
        if quick and alpha == NEAR_SOFTMAX and size.classes > MANY_CLASSES:
            continue  # it is checked with fewer classes
        for spread in SPREADS:
            layer = OutputLayer(size.hidden, size.classes, alpha)
            torch.nn.init.normal_(layer.weight, mean=0, std=size.hidden**-0.5)
            states = torch.randn(size.rows, size.hidden) * spread
            target = torch.randint(size.classes, (size.rows,))
            target[::PAD_EVERY] = PAD
            what = f"loss {size.rows}x{size.classes} alpha {alpha} spread {spread:g}"
            yield {"what": what, **compare_losses(device, layer, states, target)}


def compare_losses(device: Device, layer: OutputLayer, states: Tensor, target: Tensor) -> Result:
    """Compare the loss on the device with that in float64: loss, gradients and support.

    Args:
        device: computes the loss to check.
        layer: output layer, in float32 on the CPU.
        states: `(rows, hidden)`, float32 on the CPU.
        target: `(rows,)`, classes, some of which are `PAD`.
    """
    computed = _loss_of(copy.deepcopy(layer), states, target, device.device, torch.float32)
    exact = _loss_of(copy.deepcopy(layer), states, target, torch.device("cpu"), torch.float64)
    pairs = zip(computed.values, exact.values, strict=True)
    worst = max(relative_error(value, exact_value) for value, exact_value in pairs)
    support = abs(computed.support / exact.support - 1)
    is_right = worst < LARGEST_ERROR and support < LARGEST_SUPPORT_ERROR
    return {"error": worst, "support": support, "ok": is_right}


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
