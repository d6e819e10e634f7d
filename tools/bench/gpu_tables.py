"""Tables for `gpu.py`: losses over cross-entropy, and mappings over softmax."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from onmt_entmax.sparse import entmax, entmax_loss
from tools.bench.attention_contenders import installed
from tools.bench.gpu_device import Device, Result
from tools.bench.gpu_ratios import ratios

Loss = Callable[[Tensor, Tensor], Tensor]  # of scores and targets
RowMapping = Callable[[Tensor], Tensor]  # of scores
TOP = 100  # scores that the loss of entmax 1.3 sorts
# Rows and classes.
LOSS_SIZES = ((1280, 776), (1280, 18_000), (4096, 32_000))
SMALL_LOSS_SIZES = ((64, 776),)
LOSS_ALPHAS = (1.2, 1.5, 2.0)
MAPPING_SIZES = ((2560, 50), (65_536, 512), (1280, 18_000))
SMALL_MAPPING_SIZES = ((64, 50),)


def time_losses(device: Device, quick: bool) -> Iterator[Result]:
    """Time forward and backward pass of the loss, relative to cross-entropy."""
    losses: dict[str, Loss] = {"cross_entropy_ms": functional.cross_entropy}
    losses |= {f"alpha {alpha:g}": partial(entmax_loss, alpha=alpha) for alpha in LOSS_ALPHAS}
    repeats = 20 if quick else 50
    for rows, classes in LOSS_SIZES if device.is_gpu else SMALL_LOSS_SIZES:
        for dtype in (torch.float32, torch.bfloat16):
            torch.manual_seed(0)
            scores = torch.randn(rows, classes, device=device.device, dtype=dtype)
            scores.requires_grad_()
            target = torch.randint(classes, (rows,), device=device.device)
            run = partial(_loss_backward, scores, target)
            calls = {name: partial(run, loss) for name, loss in losses.items()}
            peer_losses = _losses_of_peer() if dtype == torch.float32 else {}
            peers = {name: partial(run, loss) for name, loss in peer_losses.items()}
            name_of_type = str(dtype).removeprefix("torch.")
            conditions = {"rows": rows, "classes": classes, "dtype": name_of_type}
            yield from ratios(device, conditions, calls, peers, repeats)


def _losses_of_peer() -> dict[str, Loss]:
    """Return the losses of entmax 1.3 for alpha 1.5, if it is installed."""
    peer = installed("entmax")
    if peer is None:
        return {}
    return {
        "entmax15 k=100": partial(_mean, partial(peer.entmax15_loss, k=TOP)),
        "bisection 1.5": partial(_mean, partial(peer.entmax_bisect_loss, alpha=1.5)),
    }


def _loss_backward(scores: Tensor, target: Tensor, loss: Loss) -> None:
    """Run a loss forward and backward."""
    scores.grad = None
    loss(scores, target).backward()


def _mean(losses: Loss, scores: Tensor, target: Tensor) -> Tensor:
    """Return the mean of the losses of rows."""
    return losses(scores, target).mean()


def time_mappings(device: Device, quick: bool) -> Iterator[Result]:
    """Time the mapping relative to softmax, with one alpha or one for each row."""
    repeats = 10 if quick else 30
    for rows, classes in MAPPING_SIZES if device.is_gpu else SMALL_MAPPING_SIZES:
        torch.manual_seed(0)
        scores = torch.randn(rows, classes, device=device.device).requires_grad_()
        incoming = torch.randn(rows, classes, device=device.device)
        alphas = torch.full((rows, 1), 1.5, device=device.device).requires_grad_()
        run = partial(_mapping_backward, scores, incoming)
        calls = {
            "softmax_ms": partial(run, partial(torch.softmax, dim=-1)),
            "alpha 1.33": partial(run, partial(entmax, alpha=1.33)),
            "alpha 1.5": partial(run, partial(entmax, alpha=1.5)),
            "learned": partial(run, partial(entmax, alpha=alphas)),
        }
        peers = {name: partial(run, mapping) for name, mapping in _mappings_of_peer().items()}
        conditions = {"rows": rows, "classes": classes}
        yield from ratios(device, conditions, calls, peers, repeats)


def _mappings_of_peer() -> dict[str, RowMapping]:
    """Return the mappings of entmax 1.3 for alpha 1.5, if it is installed."""
    peer = installed("entmax")
    if peer is None:
        return {}
    return {
        "entmax15": partial(peer.entmax15, dim=-1),
        "bisection 1.5": partial(peer.entmax_bisect, alpha=1.5, dim=-1),
    }


def _mapping_backward(scores: Tensor, gradient: Tensor, mapping: RowMapping) -> None:
    """Run a mapping forward and backward."""
    scores.grad = None
    mapping(scores).backward(gradient)
