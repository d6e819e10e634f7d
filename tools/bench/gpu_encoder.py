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

LENGTH = 24  # most tokens of a source


def time_encoder(device: Device, quick: bool) -> Iterator[Result]:
    """Time the encoder, forward and backward, relative to `torch.nn.LSTM` (cuDNN on a GPU).

    That takes padding for tokens, so it need not heed lengths.
    """
    for size in ENCODED if device.is_gpu else SMALL[:1]:
        network = size.network
        encoder = network.model("1.5", dropout=0.0).encoder.to(device.device)
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
