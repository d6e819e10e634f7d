"""The endless stream of training batches.

It depends only on the seed and on the number of batches taken: a resumed run continues at the same
batch, and prefetching processes give the same stream.
"""

import functools
import itertools
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

import numpy as np
import torch

from onmt_entmax.data.batch import Batch, Shapes
from onmt_entmax.data.corpus import CorpusError
from onmt_entmax.data.prefetch import PrefetchProcess
from onmt_entmax.data.training import TrainingData
from onmt_entmax.errors import counted


@dataclass(frozen=True)
class Position:
    """Position in the stream of training batches: all that resuming needs."""

    epoch: int = 0  # completed passes over the data
    bucket: int = 0  # completed buckets of this epoch
    batch: int = 0  # batches taken from the current bucket


@dataclass(frozen=True)
class _PlacedBatch:
    """A batch, its position, and the number of batches of its bucket; None of an empty bucket."""

    position: Position
    of: int
    batch: Batch | None


class TrainingBatches:
    """The endless stream of training batches.

    Buckets of `bucket_size` lines are cut into batches of similar length, and the batches of a
    bucket are shuffled.

    Args:
        data: corpora and vocabularies.
        workers: processes that prefetch while an iterator is open; 0: this process reads.

    Attributes:
        position: position after the last batch that was yielded; set it to start elsewhere.
        shapes: how to group sentences, on which the stream depends, too.
    """

    def __init__(self, data: TrainingData, workers: int = 0) -> None:
        self.data, self._workers = data, workers
        self.position = Position()
        config = data.config
        self.shapes = Shapes(config.batch_size, config.batch_type, (1, 1))
        self._epoch = 0  # of the last batch
        self._of = 1  # batches of its bucket

    @property
    def epochs(self) -> float:
        """Passes over the data up to the last batch, such as 1.5 in the middle of the second."""
        position, lines = self.position, self.data.epoch_size
        before = position.bucket * self.data.config.bucket_size
        bucket = min(self.data.config.bucket_size, lines - before)
        of = max(self._of, position.batch + 1)  # unknown before the first batch
        return position.epoch + (before + bucket * position.batch / of) / lines

    def longest_line(self, batches: Sequence[Batch]) -> str:
        """Return corpus, line and tokens of the longest pair of the last batches, for an error."""
        _, source, target, index = max(
            (source + target, source, target - 2, index)
            for batch in batches
            if batch.target_lengths is not None
            for source, target, index in zip(
                batch.source_lengths.tolist(),
                batch.target_lengths.tolist(),
                batch.indices,
                strict=True,
            )
        )
        number, line = next(itertools.islice(self.data.mixed(self._epoch), index, None))
        corpus = self.data.config.corpora[number]
        return (
            f"{corpus.path_src}, {corpus.path_tgt}: line {line + 1}: a batch with its "
            f"{counted(source, 'source token')} and {counted(target, 'target token')}"
        )

    def __iter__(self) -> Generator[Batch, None, None]:
        count = max(self._workers, 1)
        shares = [
            functools.partial(_read, self.data, self.shapes, self.position, number, count)
            for number in range(count)
        ]
        with ExitStack() as stack:
            readers: list[Iterator[_PlacedBatch]] = [
                stack.enter_context(
                    closing(
                        PrefetchProcess(share, self.data.config.queue_size)
                        if self._workers
                        else share()
                    )
                )
                for share in shares
            ]
            placed = _merged(readers, self.position.epoch)
            item = next(placed)
            for following in placed:
                self._epoch, self._of = item.position.epoch, item.of
                self.position = following.position
                assert item.batch is not None
                yield item.batch
                item = following


def _merged(readers: Sequence[Iterator[_PlacedBatch]], epoch: int) -> Iterator[_PlacedBatch]:
    """Yield all batches from epoch `epoch` on; the readers take turns with the buckets."""
    for reader in itertools.cycle(readers):
        while True:
            item = next(reader)
            if item.batch is not None:
                epoch = item.position.epoch
                yield item
            elif item.position.epoch > epoch + 1:
                raise CorpusError("no training pair is left after transforms and filters")
            if item.position.batch + 1 >= item.of:
                break


def _read(
    data: TrainingData, shapes: Shapes, start: Position, reader: int, count: int
) -> Generator[_PlacedBatch, None, None]:
    """Yield the share of one of `count` readers from a position on, without end."""
    config, turns = data.config, itertools.cycle(range(count))
    for epoch in itertools.count(start.epoch):
        origin = start if epoch == start.epoch else Position(epoch)
        for number, bucket in enumerate(data.buckets(epoch)):
            if number < origin.bucket or next(turns) != reader:
                continue
            seed = f"{config.seed}/{epoch}/{number}"
            pairs, rows = bucket(seed)
            groups = pairs.groups(rows, seed, shapes.group_lengths)
            first = origin.batch if number == origin.bucket else 0
            for at, group in enumerate(groups[first:], first):
                batch = pairs.batch(rows[group], group + number * config.bucket_size)
                yield _PlacedBatch(Position(epoch, number, at), len(groups), batch)
            if first >= len(groups):
                yield _PlacedBatch(Position(epoch, number), 0, None)


def target_frequencies(data: TrainingData) -> torch.Tensor:
    """Return the relative frequency of each target token in the first epoch, ``(vocab,)``.

    Tokens are counted after the transforms, with corpora weighted as in training. The end symbol
    counts once for each pair, the start symbol and padding not at all.
    """
    size, pad = len(data.vocabularies.target), data.vocabularies.target.pad
    counts = np.zeros(size)
    batches = TrainingBatches(data)
    with closing(iter(batches)) as stream:
        for batch in stream:
            assert batch.target is not None, "training batches have targets"
            counts += np.bincount(batch.target[1:].flatten().numpy(), minlength=size)
            if batches.position.epoch > 0:
                break
    counts[pad] = 0
    return torch.from_numpy(counts / counts.sum()).float()
