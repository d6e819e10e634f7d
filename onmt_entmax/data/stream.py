"""The endless stream of training batches.

It depends only on the seed and on the number of batches taken: a resumed run continues at the same
batch, and prefetching processes give the same stream.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import torch

from onmt_entmax.data.batch import (
    Batch,
    Example,
    Integers,
    group_lengths,
    lengths_of,
    make_batch,
)
from onmt_entmax.data.corpus import (
    CorpusConfig,
    CorpusError,
    DataConfig,
    Line,
    build_pipe,
    numericalise,
    pair_of,
    read_lines,
)
from onmt_entmax.data.encoded import EncodedPairs
from onmt_entmax.data.prefetch import PrefetchProcess
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.data.transforms import with_seed
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.errors import counted
from onmt_entmax.files import count_lines


@dataclass(frozen=True)
class Position:
    """Position in the stream of training batches: all that resuming needs."""

    epoch: int = 0  # completed passes over the data
    bucket: int = 0  # completed buckets of this epoch
    batch: int = 0  # batches taken from the current bucket


@dataclass(frozen=True)
class _PlacedBatch:
    """A batch and its position in the epoch."""

    bucket: int
    taken: int  # batches of the bucket so far, this one included
    of: int  # batches of the bucket
    batch: Batch


class _End(Enum):
    """Marks the end of a bucket or of an epoch in a stream of batches."""

    BUCKET = 1
    EPOCH = 2


def _reader_of(epoch: int, bucket: int, count: int) -> int:
    """Return which of `count` readers reads a bucket.

    The turns begin with another one in each epoch, so that the work is spread even if an epoch has
    a single bucket.
    """
    return (epoch + bucket) % count


@dataclass(frozen=True)
class _Setting:
    """All that a stream depends on besides its position; see `TrainingBatches`."""

    config: DataConfig
    vocabularies: Vocabularies
    pairs: EncodedPairs | None
    shapes: Shapes | None

    def group_lengths(self, source: Integers, target: Integers) -> list[Integers]:
        """Cut the pairs of a bucket into batches; return their positions."""
        if self.shapes is not None:
            return self.shapes.group_lengths(source, target)
        return group_lengths(source, target, self.config.batch_size, self.config.batch_type)


class TrainingBatches:
    """The endless stream of training batches.

    Corpora are mixed in proportion to their weights, as in OpenNMT-py. An epoch ends when every
    corpus has been read completely; shorter ones start again, and each epoch continues where the
    one before stopped. Buckets of `bucket_size` lines are cut into batches of similar length, and
    the batches of a bucket are shuffled.

    Args:
        config: corpora and batches; `num_workers` processes prefetch while an iterator is open.
        vocabularies: of source and target.
        pairs: of the corpora, if they were read before; otherwise the files are read.

    Attributes:
        position: position after the last batch that was yielded; set it to start elsewhere.
        shapes: how to group sentences for padded batches; None groups by length. The stream also
            depends on it.
    """

    def __init__(
        self,
        config: DataConfig,
        vocabularies: Vocabularies,
        pairs: EncodedPairs | None = None,
    ) -> None:
        self.config, self.vocabularies, self.pairs = config, vocabularies, pairs
        self.position = Position()
        self.shapes: Shapes | None = None
        self._epoch = 0  # of the last batch
        self._of = 1  # batches of its bucket

    @property
    def epochs(self) -> float:
        """Passes over the data up to the last batch, such as 1.5 in the middle of the second."""
        position, size = self.position, self.config.bucket_size
        before = position.bucket * size
        bucket = min(size, self._lines - before)
        of = max(self._of, position.batch + 1)  # unknown before the first batch
        return position.epoch + (before + bucket * position.batch / of) / self._lines

    @functools.cached_property
    def _lines(self) -> int:
        """Number of lines of an epoch."""
        corpora = self.config.corpora
        sizes = [count_lines(Path(corpus.path_src)) for corpus in corpora]
        return sum(_lines_an_epoch([corpus.weight for corpus in corpora], sizes))

    def longest_line(self, batches: Sequence[Batch]) -> str:
        """Return corpus, line and tokens of the longest pair of the last batches, for an error."""
        tokens = 0
        for batch in batches:
            assert batch.target_lengths is not None, "training batches have targets"
            pairs = zip(
                batch.source_lengths.tolist(),
                (batch.target_lengths - 2).tolist(),
                batch.indices,
                strict=True,
            )
            for source, target, index in pairs:
                if source + target > tokens:
                    tokens, found = source + target, (source, target, index)
        source, target, index = found
        sizes = [count_lines(Path(corpus.path_src)) for corpus in self.config.corpora]
        lines = _mixed(self.config.corpora, sizes, self._epoch)
        line = next(itertools.islice(lines, index, None))
        return (
            f"{line.corpus.path_src}, {line.corpus.path_tgt}: line {line.number}: a batch with its "
            f"{counted(source, 'source token')} and {counted(target, 'target token')}"
        )

    def __iter__(self) -> Generator[Batch, None, None]:
        with ExitStack() as stack:
            readers = [stack.enter_context(closing(reader)) for reader in self._readers()]
            for epoch in itertools.count(self.position.epoch):
                first = self.position.bucket if epoch == self.position.epoch else 0
                placed = _merged(readers, epoch, first)
                found = next(placed, None)
                if found is None and self.position == Position(epoch):
                    raise CorpusError("no training pair is left after transforms and filters")
                if found is None:  # resumed with larger batches or buckets: the epoch has ended
                    self.position = Position(epoch + 1)
                while found is not None:
                    following = next(placed, None)
                    if following is None:
                        self.position = Position(epoch + 1)
                    elif found.taken == found.of:
                        self.position = Position(epoch, found.bucket + 1)
                    else:
                        self.position = Position(epoch, found.bucket, found.taken)
                    self._epoch, self._of = epoch, found.of
                    yield found.batch
                    found = following

    def _readers(self) -> list[_Read]:
        """Return the iterators over the shares of the stream."""
        count = max(self.config.num_workers, 1)
        setting = _Setting(self.config, self.vocabularies, self.pairs, self.shapes)
        shares = [
            functools.partial(_read, setting, self.position, number, count)
            for number in range(count)
        ]
        if self.config.num_workers == 0:
            return [shares[0]()]
        return [PrefetchProcess(share, self.config.queue_size) for share in shares]


_Item = _PlacedBatch | _End
_Read = Generator[_Item, None, None] | PrefetchProcess


def _merged(readers: Sequence[_Read], epoch: int, first: int) -> Iterator[_PlacedBatch]:
    """Yield the batches of an epoch from bucket `first` on, each from its reader."""
    for bucket in itertools.count(first):
        reader = readers[_reader_of(epoch, bucket, len(readers))]
        while (item := next(reader)) is not _End.BUCKET:
            if item is _End.EPOCH:
                for other in readers:
                    if other is not reader:
                        next(other)  # their end of the same epoch
                return
            yield item


def _read(
    setting: _Setting, start: Position, reader: int, count: int
) -> Generator[_Item, None, None]:
    """Yield the share of one of `count` readers from a position on, without end."""
    source: Any = _Texts(setting) if setting.pairs is None else _Arrays(setting, setting.pairs)
    for epoch in itertools.count(start.epoch):
        origin = start if epoch == start.epoch else Position(epoch)
        for number, groups_of in enumerate(source.buckets(epoch)):
            if number >= origin.bucket and _reader_of(epoch, number, count) == reader:
                groups = groups_of(f"{setting.config.seed}/{epoch}/{number}")
                skipped = origin.batch if number == origin.bucket else 0
                for taken, group in enumerate(groups[skipped:], skipped + 1):
                    yield _PlacedBatch(number, taken, len(groups), source.batch(group))
                yield _End.BUCKET
        yield _End.EPOCH


class _Arrays:
    """Buckets and batches of pairs that were read before."""

    def __init__(self, setting: _Setting, pairs: EncodedPairs) -> None:
        self._setting, self._pairs = setting, pairs
        self.batch = pairs.batch

    def buckets(self, epoch: int) -> Iterator[Callable[[str], list[Integers]]]:
        """Yield for each bucket a function from its seed to its batches."""
        config = self._setting.config
        weights = [corpus.weight for corpus in config.corpora]
        given = _lines_an_epoch(weights, self._pairs.sizes)
        lines = self._pairs.epoch(config.corpora, given, epoch)
        for first in range(0, len(lines), config.bucket_size):
            bucket = lines[first : first + config.bucket_size]
            yield functools.partial(
                self._pairs.groups, bucket, first, grouping=self._setting.group_lengths
            )


class _Texts:
    """Buckets and batches of lines that are read and transformed in every epoch."""

    def __init__(self, setting: _Setting) -> None:
        config, vocabularies = setting.config, setting.vocabularies
        self._setting = setting
        self._pipes = {
            corpus.name: build_pipe(corpus, config, vocabularies) for corpus in config.corpora
        }
        self._sizes = [count_lines(Path(corpus.path_src)) for corpus in config.corpora]

    def buckets(self, epoch: int) -> Iterator[Callable[[str], list[list[Example]]]]:
        """Yield for each bucket a function from its seed to its batches."""
        config = self._setting.config
        for lines in _buckets(_mixed(config.corpora, self._sizes, epoch), config):
            yield functools.partial(self._groups, lines)

    def batch(self, group: Sequence[Example]) -> Batch:
        """Return the batch of some examples."""
        return make_batch(group, self._setting.vocabularies)

    def _groups(self, lines: Iterable[tuple[int, Line]], seed: str) -> list[list[Example]]:
        """Return the examples of a bucket as batches in random order."""
        # A seed for each bucket makes the transforms independent of training and of resuming.
        bucket = with_seed(seed, lambda: list(self._examples(lines)))
        generator = random.Random(seed)
        generator.shuffle(bucket)
        groups = self._setting.group_lengths(*lengths_of(bucket))
        examples = [[bucket[at] for at in group.tolist()] for group in groups]
        generator.shuffle(examples)
        return examples

    def _examples(self, lines: Iterable[tuple[int, Line]]) -> Iterator[Example]:
        config, vocabularies = self._setting.config, self._setting.vocabularies
        for index, line in lines:
            pair = pair_of(line, self._pipes[line.corpus.name], config, is_train=True)
            if pair is not None:
                yield numericalise(pair, vocabularies, index)


def _buckets(mixed: Iterator[Line], config: DataConfig) -> Iterator[Iterator[tuple[int, Line]]]:
    """Yield the numbered lines of one epoch in buckets of `bucket_size`."""
    lines = enumerate(mixed)
    for first in lines:
        bucket = itertools.chain([first], itertools.islice(lines, config.bucket_size - 1))
        yield bucket
        for _ in bucket:  # lines that the caller did not read
            pass


def _mixed(corpora: Sequence[CorpusConfig], sizes: Sequence[int], epoch: int) -> Iterator[Line]:
    """Yield the lines of one epoch: `weight` lines of each corpus in turn."""
    given = _lines_an_epoch([corpus.weight for corpus in corpora], sizes)
    firsts = (epoch * lines % size for lines, size in zip(given, sizes, strict=True))
    streams = [_endless(*each) for each in zip(corpora, firsts, strict=True)]
    while any(lines > 0 for lines in given):
        for i, corpus in enumerate(corpora):
            for _ in range(min(corpus.weight, given[i])):
                yield next(streams[i])
            given[i] -= corpus.weight


def _lines_an_epoch(weights: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return how many lines of each corpus an epoch reads, until all are read completely."""
    turns = [-(-size // weight) for weight, size in zip(weights, sizes, strict=True)]
    last = max(range(len(sizes)), key=lambda i: (turns[i], i))
    given = [(turns[last] - (i > last)) * weight for i, weight in enumerate(weights)]
    given[last] = sizes[last]
    return given


def _endless(corpus: CorpusConfig, first: int) -> Iterator[Line]:
    """Yield the lines of a corpus from line `first` (from 0) on, again and again."""
    while True:
        yield from itertools.islice(read_lines(corpus), first, None)
        first = 0


def target_frequencies(
    config: DataConfig, vocabularies: Vocabularies, pairs: EncodedPairs | None = None
) -> torch.Tensor:
    """Return the relative frequency of each target token in the first epoch, ``(vocab,)``.

    Tokens are counted after the transforms, with corpora weighted as in training. The end symbol
    counts once for each pair, the start symbol and padding not at all.

    Raises:
        CorpusError: there is no pair.
    """
    size, pad = len(vocabularies.target), vocabularies.target.pad
    counts = torch.zeros(size, dtype=torch.float64)
    batches = TrainingBatches(replace(config, num_workers=0), vocabularies, pairs=pairs)
    with closing(iter(batches)) as stream:
        for batch in stream:
            assert batch.target is not None, "training batches have targets"
            counts += torch.bincount(batch.target[1:].flatten(), minlength=size)
            if batches.position.epoch > 0:
                break
    counts[pad] = 0
    return (counts / counts.sum()).to(torch.float32)
