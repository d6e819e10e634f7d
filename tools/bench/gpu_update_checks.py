"""Checks of training updates for `gpu.py`: padded batches against unpadded ones.

A check is a row of results with a text `what`, an `error` and `ok`. The error is the largest
relative difference.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.train.padded import pad_batch, padded_outputs, views
from tools.bench.gpu_device import Device, Result
from tools.bench.gpu_loss_checks import relative_error
from tools.bench.gpu_networks import Lstm, Network
from tools.bench.gpu_sizes import Size

# Largest relative errors that rounding explains, which adds up over many layers.
LARGEST_ERROR = {torch.float64: 1e-9, torch.float32: 1e-3}
# Gradients are compared relative to their own size, or to this share of the largest gradient if
# that is larger: in exact arithmetic, the biases of a Transformer's keys have the gradient 0.
LEAST_GRADIENT = 1e-3
LARGEST_BATCH = 32  # sentence pairs of an update; float64 on a CPU is slow
BUCKET = 512  # pairs that are sorted by length together


class CheckedMapping(NamedTuple):
    """The mapping of a checked model, and the kind of its attention.

    Attributes:
        alpha: alpha for `Network.our_model`.
        is_mlp: whether an LSTM's attention is additive (`mlp`), not multiplicative.
    """

    alpha: str
    is_mlp: bool = False

    def __str__(self) -> str:
        return f"mlp {self.alpha}" if self.is_mlp else self.alpha


def mappings_of(network: Network) -> list[CheckedMapping]:
    """Return the mappings that are checked with a network."""
    mappings = [CheckedMapping(alpha) for alpha in ("1.5", network.other_alpha, "1")]
    if isinstance(network, Lstm):
        mappings.append(CheckedMapping("1.5", is_mlp=True))
    return mappings


def check_updates(device: Device, size: Size) -> Iterator[Result]:
    """Compare updates of padded models with unpadded ones in float64 on the CPU.

    Only the checks in float32 run the attention kernels of a Transformer, which take no float64.
    """
    network = size.network
    batch = next(network.corpus.batches(min(size.pairs, LARGEST_BATCH), BUCKET))
    for mapping in mappings_of(network):
        model = _model_of(network, mapping).double()
        # Copies run, since a decoder that has run keeps its state, which cannot be copied.
        exact = _unpadded(copy.deepcopy(model), batch, network.corpus.vocabularies)
        for dtype, largest_error in LARGEST_ERROR.items():
            moved = copy.deepcopy(model).to(device.device, dtype)
            error = _largest_error(
                _padded(moved, batch, network.corpus.vocabularies, device), exact
            )
            what = f"update {network.name} alpha {mapping} {dtype}"
            yield {"what": what, "error": error, "ok": error < largest_error}


def _largest_error(computed: Sequence[Tensor], exact: Sequence[Tensor]) -> float:
    """Return the largest relative error of a loss and its gradients.

    Args:
        computed: the loss, then its gradients.
        exact: the exact values, in the same order.
    """
    loss, *gradients = computed
    exact_loss, *exact_gradients = exact
    least = LEAST_GRADIENT * max(float(gradient.abs().max()) for gradient in exact_gradients)
    pairs = zip(gradients, exact_gradients, strict=True)
    errors = [relative_error(gradient, expected, least) for gradient, expected in pairs]
    return max(relative_error(loss, exact_loss), *errors)


def _model_of(network: Network, mapping: CheckedMapping) -> SparseNMTModel:
    """Return a model without dropout."""
    model = network.our_model(mapping.alpha, dropout=0.0)
    if mapping.is_mlp:
        alpha = float(mapping.alpha)
        model.decoder.attn = EntmaxGlobalAttention(network.hidden, "mlp", alpha)
    return model


def _unpadded(model: SparseNMTModel, batch: Batch, vocabularies: Vocabularies) -> list[Tensor]:
    """Return the loss of a model on the CPU, and its gradient with respect to each parameter."""
    hidden, target = model.hidden_states(batch)
    loss = model.generator.loss(hidden, target, vocabularies.target.pad).loss
    return [loss.detach(), *torch.autograd.grad(loss, list(model.parameters()))]


def _padded(
    model: SparseNMTModel, batch: Batch, vocabularies: Vocabularies, device: Device
) -> list[Tensor]:
    """Return what `_unpadded` does, computed on the device from a batch padded as for CUDA graphs.

    Args:
        model: the model, on the device.
        batch: the batch, on the CPU, without padding to a shape.
        vocabularies: vocabularies of the model.
        device: the device to check.

    Returns:
        The loss and its gradients, on the CPU in float64.
    """
    source, target = vocabularies
    padded, shape = pad_batch(batch, Shapes(len(batch)), source.pad, target.pad)
    source_ids, target_ids, lengths = views(padded.to(device.device), shape)
    states = padded_outputs(model, source_ids, target_ids, lengths).flatten(0, 1)
    loss = model.generator.loss(states, target_ids[1:].flatten(), target.pad).loss
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    return [tensor.detach().cpu().double() for tensor in (loss, *gradients)]
