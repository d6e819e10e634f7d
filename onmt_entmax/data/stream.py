"""The endless stream of training batches.

An epoch is divided into buckets, see `TrainingData.buckets`, and each bucket into batches in random
order. The stream depends only on the seed: `Position` says how far it was read, so a resumed run
continues at the same batch.

With prefetching processes, each reader makes the batches of every `count`-th bucket, counted from
the one at which the stream starts, and `_merged` puts them together in the order of one reader:

    bucket              0  1  2  3  4  5 ...
    started at 0        A  B  A  B  A  B
    resumed in 3                 A  B  A       whichever reader made bucket 3 before
"""

import functools
import itertools
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import NamedTuple

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.buckets import Bucket
from onmt_entmax.data.corpus import CorpusError
from onmt_entmax.data.prefetch import PrefetchProcess
from onmt_entmax.data.shapes import NOT_ROUNDED, Shapes
from onmt_entmax.data.training import TrainingData
from onmt_entmax.errors import counted


@dataclass(frozen=True)
class Position:
    """Position in the stream of training batches, at which a resumed training continues.

    Attributes:
        epoch: number of completed passes over the data.
        bucket: number of completed buckets of this epoch.
        batch: number of batches that were taken from the current bucket.
    """

    epoch: int = 0
    bucket: int = 0
    batch: int = 0


@dataclass(frozen=True)
class _PlacedBatch:
    """A batch of a reader.

    Attributes:
        position: the position of the batch.
        batches_in_bucket: number of batches of its bucket.
        batch: the batch; None if the reader yields no batch of this bucket, because filters left
            no pair, or because the stream starts after the last batch.
    """

    position: Position
    batches_in_bucket: int
    batch: Batch | None

    @property
    def ends_bucket(self) -> bool:
        """Whether this is the last batch of its bucket."""
        return self.position.batch + 1 >= self.batches_in_bucket


class TrainingBatches:
    """The endless stream of training batches.

    Buckets of `bucket_size` lines are cut into batches of similar length, and the batches of a
    bucket are shuffled. `Batch.indices` count the lines from the beginning of the first epoch on.

    Args:
        data: corpora and vocabularies.
        workers: processes that prefetch while an iterator is open; 0: this process reads.

    Attributes:
        position: the position of the batch after the last one that was yielded; set it to start
            elsewhere.
        shapes: how to group sentences; the stream depends on it, too.
    """

    def __init__(self, data: TrainingData, workers: int = 0) -> None:
        self.data = data
        self._workers = workers
        self.position = Position()
        config = data.config
        self.shapes = Shapes(config.batch_size, config.batch_type, multiples=NOT_ROUNDED)
        self._batches_in_bucket = 1  # of the last batch that was yielded

    @property
    def epochs(self) -> float:
        """Passes over the data up to the last batch, such as 1.5 in the middle of the second.

        A batch counts as an equal share of its bucket's lines.
        """
        position, lines = self.position, self.data.epoch_size
        lines_before = position.bucket * self.data.config.bucket_size
        lines_of_bucket = min(self.data.config.bucket_size, lines - lines_before)
        # Before the first batch of a resumed run, it is not known how many batches the bucket has:
        # at least those that were taken before, and one more.
        batches = max(self._batches_in_bucket, position.batch + 1)
        lines_read = lines_before + lines_of_bucket * position.batch / batches
        return position.epoch + lines_read / lines

    def longest_line(self, batches: Sequence[Batch]) -> str:
        """Return corpus, line and tokens of the longest pair of some batches, for an error."""
        _, source, target, index = max(
            (source + target, source, target - 2, index)  # without start and end symbol
            for batch in batches
            if batch.target_lengths is not None
            for source, target, index in zip(
                batch.source_lengths.tolist(),
                batch.target_lengths.tolist(),
                batch.indices,
                strict=True,
            )
        )
        epoch, place = divmod(index, self.data.epoch_size)
        number, line = next(itertools.islice(self.data.epoch_lines(epoch), place, None))
        corpus = self.data.config.corpora[number]
        return (
            f"{corpus.path_src}, {corpus.path_tgt}: line {line + 1}: a batch with its "
            f"{counted(source, 'source token')} and {counted(target, 'target token')}"
        )

    def __iter__(self) -> Generator[Batch, None, None]:
        """Yield batches from `position` on. Close the iterator to end the prefetching processes.

        One batch is read ahead, since only the next batch tells its position.
        """
        with ExitStack() as stack:
            readers = self._open_readers(stack)
            placed = _merged(readers, self.position.epoch)
            item = next(placed)
            for following in placed:
                self._batches_in_bucket = item.batches_in_bucket
                self.position = following.position
                assert item.batch is not None, "merged readers yield batches"
                yield item.batch
                item = following

    def _open_readers(self, stack: ExitStack) -> list[Iterator[_PlacedBatch]]:
        """Return a reader for each worker, or one in this process; the stack closes them."""
        count = max(self._workers, 1)
        readers: list[Iterator[_PlacedBatch]] = []
        for number in range(count):
            read = functools.partial(_read, self.data, self.shapes, self.position, number, count)
            reader = PrefetchProcess(read, self.data.config.queue_size) if self._workers else read()
            readers.append(stack.enter_context(closing(reader)))
        return readers


def _merged(readers: Sequence[Iterator[_PlacedBatch]], epoch: int) -> Iterator[_PlacedBatch]:
    """Yield the batches of all readers, which take turns with the buckets.

    Args:
        readers: see `_read`.
        epoch: the epoch in which the stream starts.

    Raises:
        CorpusError: a whole epoch has no pair.
    """
    last_epoch = epoch  # epoch of the last batch, or that in which the stream starts
    for reader in itertools.cycle(readers):
        while True:
            item = next(reader)
            if item.batch is not None:
                last_epoch = item.position.epoch
                yield item
            elif item.position.epoch > last_epoch + 1:  # the epoch between the two had no batch
                raise CorpusError("no training pair is left after transforms and filters")
            if item.ends_bucket:
                break


def _read(
    data: TrainingData, shapes: Shapes, start: Position, reader: int, count: int
) -> Generator[_PlacedBatch, None, None]:
    """Yield the batches of one of several readers from a position on, without end.

    Each of its buckets yields at least one item, so that `_merged` knows when the bucket is over.

    Args:
        data: the data to read.
        shapes: how to group sentences.
        start: position of the first batch of the stream.
        reader: number of this reader, from 0.
        count: number of readers.
    """
    config = data.config
    share = itertools.islice(_buckets_from(data, start), reader, None, count)
    for epoch, number, bucket in share:
        seed = f"{config.seed}/{epoch}/{number}"
        pairs, rows = bucket.read(seed)
        groups = pairs.groups(rows, seed, shapes)
        is_start = (epoch, number) == (start.epoch, start.bucket)
        first = start.batch if is_start else 0
        lines_before = epoch * data.epoch_size + number * config.bucket_size
        for place, group in enumerate(groups[first:], first):
            batch = pairs.batch(rows[group], group + lines_before)
            yield _PlacedBatch(Position(epoch, number, place), len(groups), batch)
        if first >= len(groups):  # filters left no pair, or the start is after the last batch
            yield _PlacedBatch(Position(epoch, number), batches_in_bucket=0, batch=None)


class _PlacedBucket(NamedTuple):
    """A bucket with its epoch, and its number in this epoch, both from 0."""

    epoch: int
    number: int
    bucket: Bucket


def _buckets_from(data: TrainingData, start: Position) -> Iterator[_PlacedBucket]:
    """Yield the buckets from that of a position on, without end."""
    for epoch in itertools.count(start.epoch):
        first = start.bucket if epoch == start.epoch else 0
        numbered = enumerate(data.buckets(epoch))
        for number, bucket in itertools.islice(numbered, first, None):
            yield _PlacedBucket(epoch, number, bucket)
