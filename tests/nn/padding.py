"""Batches that are padded to a shape, and the losses of a model with padding and without."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shape, Shapes
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.train.padded import pad_batch, padded_outputs, views
from tests.nn.small_models import VOCABULARIES

SHAPES = Shapes(batch_size=7)
"""Shapes for seven sentences: multiples of 8 source positions, and of 4 decoder steps."""


class PaddedBatch(NamedTuple):
    """A batch with padding up to one of the `SHAPES`."""

    ids: Tensor
    """All ids and lengths, one-dimensional, see `pad_batch`."""
    shape: Shape

    def to(self, device: str) -> PaddedBatch:
        """Return the batch on another device."""
        return self._replace(ids=self.ids.to(device))


def padded(batch: Batch) -> PaddedBatch:
    """Return a batch with padding."""
    source, target = VOCABULARIES
    return PaddedBatch(*pad_batch(batch, SHAPES, source.pad, target.pad))


def packed_loss(model: SparseNMTModel, batch: Batch, smoothing: float = 0.0) -> Tensor:
    """Return the loss of a batch without padding; `smoothing` is that of the labels."""
    hidden, target = model.hidden_states(batch)
    return model.generator.loss(hidden, target, VOCABULARIES.target.pad, smoothing).loss


def padded_loss(model: SparseNMTModel, batch: PaddedBatch, smoothing: float = 0.0) -> Tensor:
    """Return the loss of a batch with padding; `smoothing` is that of the labels."""
    source, target, lengths = views(batch.ids, batch.shape)
    outputs = padded_outputs(model, source, target, lengths).flatten(0, 1)
    targets, pad = target[1:].flatten(), VOCABULARIES.target.pad
    return model.generator.loss(outputs, targets, pad, smoothing).loss


def gradients(loss: Tensor, model: SparseNMTModel) -> dict[str, Tensor]:
    """Return the gradients of all weights that have one, by name."""
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
