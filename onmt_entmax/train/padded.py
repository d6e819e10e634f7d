"""Batches that are padded to few shapes, which CUDA graphs can replay.

`Shapes` says which shapes there are; a batch of the trainer is copied into the memory of its shape.
Padding sentences have length 1, and the loss ignores padding of targets.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.config import DataConfig
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shape, Shapes
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.sparse import backends


class Padding(NamedTuple):
    """Whether a model trains on padded batches.

    Attributes:
        shapes: to pad batches to; None for batches as they are.
        no_graphs: why a GPU trains without padding, and so without CUDA graphs; None if it does
            not, and on a CPU.
    """

    shapes: Shapes | None
    no_graphs: str | None


def padding_for(model: SparseNMTModel, config: DataConfig) -> Padding:
    """Return the padding with which a model trains on its device.

    Args:
        model: to train.
        config: size of the batches.
    """
    if not records_graphs(device_of(model)):
        return Padding(shapes=None, no_graphs=None)
    reason = reason_against(model)
    if reason is not None:
        return Padding(shapes=None, no_graphs=reason)
    return Padding(Shapes(config.batch_size, config.batch_type), no_graphs=None)


def records_graphs(device: torch.device) -> bool:
    """Return whether updates on a device may be CUDA graphs, which need batches of few shapes."""
    return device.type == "cuda"


def reason_against(model: SparseNMTModel) -> str | None:
    """Return why a model cannot be trained on padded batches, or None if it can."""
    backend = backends.backend_for(next(model.parameters()), 1.5)
    if device_of(model).type == "cuda" and backend is backends.reference:
        return "Triton starts no kernels here"
    for part in (model.encoder, model.decoder):
        if part.why_not_padded is not None:
            return part.why_not_padded
    if model.encoder.matmul_dtype is not None:
        return "`matmul_dtype: bfloat16` is for CPUs; on a GPU, `tf32` is faster"
    return None


def pad_batch(
    batch: Batch, shapes: Shapes, source_pad: int, target_pad: int
) -> tuple[Tensor, Shape]:
    """Pad a batch to its shape, in one tensor, to copy it to a GPU at once.

    Args:
        batch: a batch on the CPU, with one feature and with targets.
        shapes: rules for its shape.
        source_pad: padding id of the source.
        target_pad: padding id of the target, which the loss ignores.

    Returns:
        Ids and lengths, one-dimensional, int64, of which `views` returns the parts; and the shape.
    """
    assert batch.target is not None
    # Target ids are one more than decoder steps.
    shape = shapes.of_lengths(batch.source.size(0), batch.target.size(0) - 1)
    # A batch that is too large for its shape keeps all its sentences.
    shape = shape._replace(sentences=max(shape.sentences, len(batch)))
    # Each sentence has a source length, too.
    positions = shape.source + (shape.target + 1) + 1
    ids = torch.empty(positions * shape.sentences, dtype=torch.int64)
    source, target, lengths = views(ids, shape)
    for padded, side, pad in (
        (source, batch.source, source_pad),
        (target, batch.target, target_pad),
    ):
        padded.fill_(pad)
        padded[: side.size(0), : side.size(1)] = side[:, :, 0]
    lengths.fill_(1)
    lengths[: len(batch)] = batch.source_lengths
    return ids, shape


def views(ids: Tensor, shape: Shape) -> tuple[Tensor, Tensor, Tensor]:
    """Return the parts of a padded batch, as views: what is copied to `ids` later, they show.

    Args:
        ids: one-dimensional, as `pad_batch` returns it.
        shape: its shape.

    Returns:
        Source ids ``(source, sentences)``, target ids ``(target + 1, sentences)`` with start and
        end symbols, and source lengths ``(sentences,)``, 1 for padding sentences.
    """
    sizes = [shape.source * shape.sentences, (shape.target + 1) * shape.sentences, shape.sentences]
    source, target, lengths = ids.split(sizes)
    return source.view(-1, shape.sentences), target.view(-1, shape.sentences), lengths


def padded_outputs(
    model: SparseNMTModel, source: Tensor, target: Tensor, lengths: Tensor
) -> Tensor:
    """Return a model's decoder outputs for padded sentences, by teacher forcing.

    Args:
        model: one that `padding_for` pads batches for.
        source: ids ``(source, rows)``.
        target: ids ``(target + 1, rows)`` with start and end symbols.
        lengths: source lengths ``(rows,)``, at least 1.

    Returns:
        ``(target, rows, hidden)``, also for padding.
    """
    source, inputs = source.unsqueeze(2), target[:-1].unsqueeze(2)
    outputs, _ = model.teacher_forced(source, lengths, inputs, None)
    return outputs.view(len(inputs), source.size(1), -1)
