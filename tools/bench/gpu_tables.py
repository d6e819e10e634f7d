"""Tables for `gpu.py`: losses, mappings and the LSTM encoder, each over a function of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from onmt_entmax.sparse import entmax, entmax_loss
from tools.bench.attention import installed
from tools.bench.gpu_device import Device
from tools.bench.gpu_sizes import SIZES, SMALL
from tools.bench.gpu_steps import Result


def time_losses(device: Device, quick: bool) -> Iterator[Result]:
    """Time forward and backward pass of the loss, relative to cross-entropy."""
    sizes = [(1280, 776), (1280, 18_000), (4096, 32_000)] if device.is_gpu else [(64, 776)]
    losses: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "cross_entropy_ms": functional.cross_entropy
    }
    for alpha in (1.2, 1.5, 2.0):
        losses[f"alpha {alpha:g}"] = partial(entmax_loss, alpha=alpha)
    for rows, classes in sizes:
        for dtype in (torch.float32, torch.bfloat16):
            torch.manual_seed(0)
            scores = torch.randn(rows, classes, device=device.device, dtype=dtype)
            scores.requires_grad_()
            target = torch.randint(classes, (rows,), device=device.device)
            run = partial(_loss_backward, scores, target)
            calls = {name: partial(run, loss) for name, loss in losses.items()}
            of_peer = _losses_of_peer() if dtype == torch.float32 else {}
            peers = {name: partial(run, loss) for name, loss in of_peer.items()}
            name_of_type = str(dtype).removeprefix("torch.")
            conditions = {"rows": rows, "classes": classes, "dtype": name_of_type}
            yield from _relative(device, calls, peers, conditions, 20 if quick else 50)


def _losses_of_peer() -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    """Return the losses of entmax 1.3 for alpha 1.5, if it is installed."""
    peer = installed("entmax")
    if peer is None:
        return {}
    return {
        "entmax15 k=100": partial(_mean, partial(peer.entmax15_loss, k=100)),
        "bisection 1.5": partial(_mean, partial(peer.entmax_bisect_loss, alpha=1.5)),
    }


def _loss_backward(
    scores: Tensor, target: Tensor, loss: Callable[[Tensor, Tensor], Tensor]
) -> None:
    """Run a loss forward and backward."""
    scores.grad = None
    loss(scores, target).backward()


def _mean(losses: Callable[[Tensor, Tensor], Tensor], scores: Tensor, target: Tensor) -> Tensor:
    """Return the mean of the losses of rows."""
    return losses(scores, target).mean()


def time_mappings(device: Device, quick: bool) -> Iterator[Result]:
    """Time the mapping relative to softmax, with one alpha or one for each row."""
    sizes = [(2560, 50), (65_536, 512), (1280, 18_000)] if device.is_gpu else [(64, 50)]
    peer = installed("entmax")
    for rows, classes in sizes:
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
        peers: dict[str, Callable[[], None]] = {}
        if peer is not None:
            peers["entmax15"] = partial(run, partial(peer.entmax15, dim=-1))
            peers["bisection 1.5"] = partial(run, partial(peer.entmax_bisect, alpha=1.5, dim=-1))
        conditions = {"rows": rows, "classes": classes}
        yield from _relative(device, calls, peers, conditions, 10 if quick else 30)


def _mapping_backward(
    scores: Tensor, gradient: Tensor, mapping: Callable[[Tensor], Tensor]
) -> None:
    """Run a mapping forward and backward."""
    scores.grad = None
    mapping(scores).backward(gradient)


def _relative(
    device: Device,
    calls: Mapping[str, Callable[[], None]],
    peers: Mapping[str, Callable[[], None]],
    conditions: Result,
    repeats: int,
) -> Iterator[Result]:
    """Yield a row for each way to run calls: the first's milliseconds, the others' ratios to it.

    The peers are those of entmax 1.3, which read values back and cannot be captured.
    """
    times: dict[str, dict[str, float]] = {}
    for name, call in calls.items():
        for way, run in device.ways(call):
            times.setdefault(way, {})[name] = device.median(run, repeats)
    for name, run in peers.items():
        times["as written"][name] = device.median(run, repeats // 2)
    reference, *others = calls
    for way, taken in times.items():
        base = taken.get(reference, float("nan"))
        ratios = {name: round(taken.get(name, float("nan")) / base, 2) for name in others}
        ratios |= {name: round(taken[name] / base, 2) for name in peers if name in taken}
        yield {
            **conditions,
            "run": way,
            reference: round(base, 3),
            **ratios,
            "ok": all(name in taken for name in calls),
        }


def time_encoder(device: Device, quick: bool) -> Iterator[Result]:
    """Time the encoder's loop of steps, forward and backward, relative to the peer's kernels.

    These (cuDNN on a GPU) take padding for tokens, so they do a little less.
    """
    for size in SIZES[1:3] if device.is_gpu else SMALL[:1]:
        encoder = size.model("1.5", 0.0).encoder.to(device.device)
        source = torch.randint(size.vocabulary, (24, size.batch), device=device.device)
        lengths = torch.randint(1, 25, (size.batch,), device=device.device).sort(descending=True)[0]
        incoming = torch.randn(24, size.batch, size.hidden, device=device.device)
        weights = list(encoder.parameters())
        run = partial(_encoder_backward, weights, incoming)
        calls = {
            "torch_ms": partial(run, partial(_encode_by_torch, encoder, source)),
            "loop": partial(run, partial(_encode, encoder, source, lengths)),
        }
        conditions = {"size": size.name, "tokens": 24, "pairs": size.batch}
        yield from _relative(device, calls, {}, conditions, 10 if quick else 30)


def _encoder_backward(
    weights: list[Tensor], gradient: Tensor, encode: Callable[[], Tensor]
) -> None:
    """Run an encoder forward and backward."""
    torch.autograd.grad(encode(), weights, gradient)


def _encode(encoder: Any, source: Tensor, lengths: Tensor) -> Tensor:
    """Return the memory bank `(length, batch, hidden)` of ids `(length, batch)`."""
    memory_bank: Tensor = encoder(source.unsqueeze(2), lengths)[1]
    return memory_bank


def _encode_by_torch(encoder: Any, source: Tensor) -> Tensor:
    """Return what torch's LSTM with the same weights gives."""
    outputs: Tensor = encoder.rnn(encoder.embeddings(source.unsqueeze(2)))[0]
    return outputs
