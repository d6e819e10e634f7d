"""The table of the LSTM encoder for `gpu.py`: this project's loop of steps over PyTorch's LSTM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.recurrence.encoder import FastRNNEncoder
from tools.bench.gpu_device import Device, Result
from tools.bench.gpu_ratios import ratios
from tools.bench.gpu_sizes import CPU_SIZES, ENCODER_SIZES, Size

LENGTH = 24  # tokens of a source with its padding; lengths are drawn from 1 to this
SEED = 1  # of sources, lengths and gradients


def time_encoder(device: Device, quick: bool) -> Iterator[Result]:
    """Time the encoder, forward and backward, relative to `torch.nn.LSTM` (cuDNN on a GPU).

    PyTorch's LSTM also computes padding; this project's loop of steps does not. Both times include
    the embeddings. A row has PyTorch's milliseconds as `torch_ms`, and the ratio of the loop's time
    to it as `loop`.
    """
    for size in ENCODER_SIZES if device.is_gpu else CPU_SIZES[:1]:
        passes = _Passes.of_size(size, device.device)
        calls = {"torch_ms": passes.by_torch, "loop": passes.by_loop}
        conditions = {"size": size.network.name, "tokens": LENGTH, "pairs": size.pairs}
        yield from ratios(device, conditions, calls, peers={}, repeats=10 if quick else 30)


class _Passes(NamedTuple):
    """Forward and backward passes of an encoder on one batch.

    Attributes:
        encoder: this project's encoder; its parts `embeddings` and `rnn`, a `torch.nn.LSTM`, are
            what PyTorch's side is timed with.
        source: ids `(length, batch)`.
        lengths: lengths of the sources, `(batch,)`, the longest first.
        gradient: gradient with respect to the outputs, `(length, batch, hidden)`.
    """

    encoder: FastRNNEncoder
    source: Tensor
    lengths: Tensor
    gradient: Tensor

    @classmethod
    def of_size(cls, size: Size, device: torch.device) -> _Passes:
        """Return the passes of the encoder of a network on a random batch."""
        network = size.network
        encoder = network.our_model("1.5", dropout=0.0).encoder.to(device)
        torch.manual_seed(SEED)
        vocabulary = network.text.vocabulary
        source = torch.randint(vocabulary, (LENGTH, size.pairs), device=device)
        lengths = torch.randint(1, LENGTH + 1, (size.pairs,), device=device)
        lengths = lengths.sort(descending=True)[0]  # as in batches, which encoders need sorted
        gradient = torch.randn(LENGTH, size.pairs, network.hidden, device=device)
        return cls(encoder, source, lengths, gradient)

    def by_loop(self) -> None:
        """Run this project's encoder."""
        _, memory_bank, *_ = self.encoder(self.source.unsqueeze(2), self.lengths)
        self._backward(memory_bank)

    def by_torch(self) -> None:
        """Run PyTorch's LSTM with the same weights."""
        outputs, _ = self.encoder.rnn(self.encoder.embeddings(self.source.unsqueeze(2)))
        self._backward(outputs)

    def _backward(self, outputs: Tensor) -> None:
        """Compute the gradients of all weights.

        Args:
            outputs: `(length, batch, hidden)`.
        """
        torch.autograd.grad(outputs, list(self.encoder.parameters()), self.gradient)
