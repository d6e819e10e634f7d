"""The table of the LSTM encoder for `gpu.py`: this project's loop of steps over PyTorch's LSTM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tools.bench.gpu_device import Device, Result
from tools.bench.gpu_ratios import ratios
from tools.bench.gpu_sizes import ENCODED, SMALL

LENGTH = 24  # tokens of a source with its padding; lengths are drawn from 1 to this


def time_encoder(device: Device, quick: bool) -> Iterator[Result]:
    """Time the encoder, forward and backward, relative to `torch.nn.LSTM` (cuDNN on a GPU).

    PyTorch's LSTM runs over padding as over tokens; this project's loop heeds lengths. A row has
    PyTorch's milliseconds, `torch_ms`, and as `loop` how many times as long the loop took.
    """
    for size in ENCODED if device.is_gpu else SMALL[:1]:
        network = size.network
        encoder = network.our_model("1.5", dropout=0.0).encoder.to(device.device)
        vocabulary = network.text.vocabulary
        source = torch.randint(vocabulary, (LENGTH, size.pairs), device=device.device)
        lengths = torch.randint(1, LENGTH + 1, (size.pairs,), device=device.device)
        lengths = lengths.sort(descending=True)[0]
        incoming = torch.randn(LENGTH, size.pairs, network.hidden, device=device.device)
        run = partial(_backward, list(encoder.parameters()), incoming)
        calls = {
            "torch_ms": partial(run, partial(_encode_by_torch, encoder, source)),
            "loop": partial(run, partial(_encode, encoder, source, lengths)),
        }
        conditions = {"size": network.name, "tokens": LENGTH, "pairs": size.pairs}
        yield from ratios(device, conditions, calls, peers={}, repeats=10 if quick else 30)


def _backward(weights: Sequence[Tensor], gradient: Tensor, encode: Callable[[], Tensor]) -> None:
    """Run an encoder forward and backward."""
    torch.autograd.grad(encode(), weights, gradient)


def _encode(encoder: Any, source: Tensor, lengths: Tensor) -> Tensor:
    """Return the memory bank `(length, batch, hidden)` of ids `(length, batch)`."""
    memory_bank: Tensor = encoder(source.unsqueeze(2), lengths)[1]
    return memory_bank


def _encode_by_torch(encoder: Any, source: Tensor) -> Tensor:
    """Return what PyTorch's LSTM with the same weights gives for ids `(length, batch)`."""
    outputs: Tensor = encoder.rnn(encoder.embeddings(source.unsqueeze(2)))[0]
    return outputs
