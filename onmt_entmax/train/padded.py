"""Batches that are padded to few shapes, which CUDA graphs can replay.

`Shapes` says which shapes there are. Padding sentences have length 1, and the loss ignores padding
of targets. `padding.py` says which models train on such batches.
"""

import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shape, Shapes
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import SparseNMTModel


class PaddedInputs:
    """Memory on a device for the batches of each shape.

    CUDA graphs read this memory: its addresses stay, and the next batch of a shape overwrites it.

    Args:
        shapes: batches are padded to these.
        vocabularies: have the padding ids.
        device: the device of the memory.
    """

    def __init__(self, shapes: Shapes, vocabularies: Vocabularies, device: torch.device) -> None:
        self._shapes = shapes
        self._pads = vocabularies.source.pad, vocabularies.target.pad
        self._device = device
        self._memory: dict[Shape, Tensor] = {}

    def copy(self, batch: Batch) -> tuple[Batch, Shape]:
        """Pad a batch and copy it to the memory of its shape.

        Args:
            batch: on the CPU, with targets.

        Returns:
            The padded batch on the device, without target lengths and indices; and its shape.
        """
        on_cpu, shape = pad_batch(batch, self._shapes, *self._pads)
        if shape not in self._memory:
            self._memory[shape] = torch.empty_like(on_cpu, device=self._device)
        if self._device.type == "cuda":
            on_cpu = on_cpu.pin_memory()
        ids = self._memory[shape].copy_(on_cpu, non_blocking=True)
        source, target, lengths = views(ids, shape)
        padded = Batch(
            source=source.unsqueeze(2),
            source_lengths=lengths,
            target=target.unsqueeze(2),
            target_lengths=None,
            indices=(),
        )
        return padded, shape


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
        Ids and lengths in one tensor, one-dimensional, int64, which `views` divides; and the shape.
    """
    assert batch.target is not None
    # The decoder reads one target id less than there are.
    shape = shapes.of_lengths(batch.source.size(0), batch.target.size(0) - 1)
    # A batch that is too large for its shape keeps all its sentences.
    shape = shape._replace(sentences=max(shape.sentences, len(batch)))
    # Each sentence has a source length, too.
    positions = shape.source + (shape.target + 1) + 1
    ids = torch.empty(positions * shape.sentences, dtype=torch.int64)
    source, target, lengths = views(ids, shape)
    _fill(source, batch.source, source_pad)
    _fill(target, batch.target, target_pad)
    lengths.fill_(1)
    lengths[: len(batch)] = batch.source_lengths
    return ids, shape


def _fill(padded: Tensor, ids: Tensor, pad: int) -> None:
    """Write ids ``(length, sentences, 1)`` to ``(length, sentences)``, and padding around them."""
    padded.fill_(pad)
    padded[: ids.size(0), : ids.size(1)] = ids[:, :, 0]


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
