"""Checks of training for `gpu.py`: padded updates against unpadded ones, CUDA graphs against both.

A check is a row of results with a text `what`, an `error` and `ok`. The error is the largest
relative difference; of a check that could not end, it is the text of what was raised.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.errors import UserError
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.train.padded import pad_batch, padded_outputs, views
from tools.bench.gpu_contenders import StaticStep
from tools.bench.gpu_device import Device, Result
from tools.bench.gpu_loss_checks import relative_error
from tools.bench.gpu_networks import Lstm, Network
from tools.bench.gpu_sizes import Size

# Errors that are no faults: sums of rounded products, which add up over many layers.
LARGEST_ERROR = {torch.float64: 1e-9, torch.float32: 1e-3}
# Gradients are compared relative to no less than this share of the largest one: the biases of a
# Transformer's keys have none but for rounding.
LEAST_GRADIENT = 1e-3
LARGEST_BATCH = 32  # sentence pairs of an update; float64 on a CPU is slow
BUCKET = 512  # pairs that are sorted by length together
GRAPH_DROPOUT = 0.3
ROUNDS_OF_GRAPHS = 3  # over all batches: plain, recorded, replayed


class Mapping(NamedTuple):
    """The mapping of a checked model, and the kind of its attention.

    Attributes:
        alpha: as `Network.our_model` takes it.
        is_mlp: whether an LSTM's attention is additive (`mlp`), not multiplicative.
    """

    alpha: str
    is_mlp: bool = False

    def __str__(self) -> str:
        return f"mlp {self.alpha}" if self.is_mlp else self.alpha


def mappings_of(network: Network) -> list[Mapping]:
    """Return the mappings that are checked with a network."""
    mappings = [Mapping("1.5"), Mapping(network.other_alpha), Mapping("1")]
    if isinstance(network, Lstm):
        mappings.append(Mapping("1.5", is_mlp=True))
    return mappings


def check_updates(device: Device, size: Size) -> Iterator[Result]:
    """Compare updates of padded models with unpadded ones in float64 on the CPU.

    In float64 a Transformer's attention is PyTorch's arithmetic; float32 is what checks its
    kernels, which take no float64.
    """
    network = size.network
    corpus = network.corpus
    batch = next(corpus.batches(min(size.pairs, LARGEST_BATCH), BUCKET))
    for mapping in mappings_of(network):
        model = _model_of(network, mapping).double()
        # Copies run, since a decoder that has run keeps its state, which cannot be copied.
        unpadded = copy.deepcopy(model)
        exact_loss, *exact_gradients = _unpadded(unpadded, batch, corpus.vocabularies)
        least = LEAST_GRADIENT * max(float(gradient.abs().max()) for gradient in exact_gradients)
        for dtype, largest_error in LARGEST_ERROR.items():
            moved = copy.deepcopy(model).to(device.device, dtype)
            loss, *gradients = _padded(moved, batch, corpus.vocabularies, device)
            pairs = zip(gradients, exact_gradients, strict=True)
            errors = [relative_error(gradient, exact, least) for gradient, exact in pairs]
            worst = max(relative_error(loss, exact_loss), *errors)
            what = f"update {network.name} alpha {mapping} {dtype}"
            yield {"what": what, "error": worst, "ok": worst < largest_error}


def _model_of(network: Network, mapping: Mapping) -> SparseNMTModel:
    """Return a model without dropout."""
    model = network.our_model(mapping.alpha, dropout=0.0)
    if mapping.is_mlp:
        alpha = float(mapping.alpha)
        model.decoder.attn = EntmaxGlobalAttention(network.hidden, "mlp", alpha)
    return model


def _unpadded(model: SparseNMTModel, batch: Batch, vocabularies: Vocabularies) -> list[Tensor]:
    """Return the loss of a model on the CPU, and its gradient in each parameter."""
    hidden, target = model.hidden_states(batch)
    loss = model.generator.loss(hidden, target, vocabularies.target.pad).loss
    return [loss.detach(), *torch.autograd.grad(loss, list(model.parameters()))]


def _padded(
    model: SparseNMTModel, batch: Batch, vocabularies: Vocabularies, device: Device
) -> list[Tensor]:
    """Return what `_unpadded` does, computed on the device from a batch padded as for CUDA graphs.

    Args:
        model: on the device.
        batch: on the CPU, without padding to a shape.
        vocabularies: of the model.
        device: to check.

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


def check_graphs(device: Device, size: Size, count: int) -> Result:
    """Compare the first replay of every graph with a plain update, with dropout.

    `train.graphs.Recorder` compares, in its mode "check". The first time, a shape of batches is
    computed plainly, the second time its graph is recorded and replayed.

    Args:
        device: to check.
        size: of network and batches.
        count: number of batches.
    """
    torch.manual_seed(3)
    network = size.network
    alpha = "1.5" if isinstance(network, Lstm) else network.other_alpha
    model = network.our_model(alpha, GRAPH_DROPOUT).to(device.device)
    step = StaticStep(model, network.corpus.vocabularies, Shapes(size.pairs), graphs="check")
    what = f"graphs {network.name} {size.pairs} pairs"
    batches = size.batches(count)
    try:
        for _ in range(ROUNDS_OF_GRAPHS):
            for batch in batches:
                step.take(batch)
    except (UserError, RuntimeError) as error:  # they differ, or a graph cannot be recorded
        return {"what": what, "error": str(error), "ok": False}
    graphs = step.updates.recorder.captured
    is_finite = step.report is not None and bool(step.report.isfinite().all())
    return {"what": what, "error": 0.0, "graphs": graphs, "ok": is_finite and graphs > 0}
