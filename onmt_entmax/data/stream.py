"""The endless stream of training batches.

It is a function of the seed and of how many batches were taken, so a resumed run continues at the
exact batch; and it is the same whether the training process reads it or others read it ahead.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import torch

from onmt_entmax.data.batch import Batch, Example, group_by_length, make_batch
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
from onmt_entmax.data.prefetch import AheadProcess
from onmt_entmax.data.transforms import drawn
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.files import count_lines


@dataclass(frozen=True)
class Position:
    """How far a stream of training batches has been read: everything that resuming needs."""

    epoch: int = 0  # passes completed over the data
    bucket: int = 0  # buckets completed in this epoch
    batch: int = 0  # batches taken from this bucket


@dataclass(frozen=True)
class _Placed:
    """A batch and its place in its epoch."""

    bucket: int
    taken: int  # batches of the bucket up to this one
    last: bool  # whether it is the bucket's last
    batch: Batch


class _End(Enum):
    """What comes after the last batch of a bucket, and after the last bucket of an epoch."""

    BUCKET = 1
    EPOCH = 2


@dataclass(frozen=True)
class _Share:
    """Which buckets are read by one of several readers: of each epoch, every `count`-th."""

    number: int
    count: int

    def has(self, epoch: int, bucket: int) -> bool:
        """Whether this reader has a bucket. Rotating by epoch also spreads the work when an epoch
        has a single bucket."""
        return (epoch + bucket) % self.count == self.number


class TrainingBatches:
    """The endless stream of training batches.

    An epoch ends when every corpus has given as many lines as it has; corpora are mixed in
    proportion to their weights, as OpenNMT-py mixes them, and shorter ones start again, each epoch
    where the one before has left them. Within an epoch, buckets of `bucket_size` lines are cut into
    batches of similar length, and the batches of a bucket come in random order.

    Args:
        config: with `num_workers` above 0, as many processes read ahead while an iterator of the
            stream is open.
        vocabularies: turn tokens into ids.
        position: where to start.

    Attributes:
        position: where the stream stands after the batch last yielded.
    """

    def __init__(
        self, config: DataConfig, vocabularies: Vocabularies, position: Position | None = None
    ) -> None:
        self.config = config
        self.vocabularies = vocabularies
        self.position = position or Position()

    def __iter__(self) -> Generator[Batch, None, None]:
        with ExitStack() as stack:
            readers = [stack.enter_context(closing(reader)) for reader in self._readers()]
            for epoch in itertools.count(self.position.epoch):
                first = self.position.bucket if epoch == self.position.epoch else 0
                placed = _merged(readers, epoch, first)
                found = next(placed, None)
                if found is None and self.position == Position(epoch):
                    raise CorpusError("no training pair is left after transforms and filters")
                if found is None:  # larger batches or buckets than before: this epoch is over
                    self.position = Position(epoch + 1)
                while found is not None:
                    following = next(placed, None)
                    if following is None:
                        self.position = Position(epoch + 1)
                    elif found.last:
                        self.position = Position(epoch, found.bucket + 1)
                    else:
                        self.position = Position(epoch, found.bucket, found.taken)
                    yield found.batch
                    found = following

    def _readers(self) -> list[_Read]:
        """Iterators that give the shares of the stream."""
        count = max(self.config.num_workers, 1)
        shares = [
            functools.partial(
                _read, self.config, self.vocabularies, self.position, _Share(number, count)
            )
            for number in range(count)
        ]
        if self.config.num_workers == 0:
            return [shares[0]()]
        return [AheadProcess(share, self.config.queue_size) for share in shares]


_Item = _Placed | _End
_Read = Generator[_Item, None, None] | AheadProcess


def _merged(readers: Sequence[_Read], epoch: int, first: int) -> Iterator[_Placed]:
    """The batches of an epoch from bucket `first` on, each bucket from the reader that has it."""
    for bucket in itertools.count(first):
        reader = readers[(epoch + bucket) % len(readers)]
        while (item := next(reader)) is not _End.BUCKET:
            if item is _End.EPOCH:
                for other in readers:
                    if other is not reader:
                        next(other)  # has nothing but the same message
                return
            yield item


def _read(
    config: DataConfig, vocabularies: Vocabularies, start: Position, share: _Share
) -> Generator[_Item, None, None]:
    """A share of the stream from a position on, for ever."""
    pipes = {corpus.name: build_pipe(corpus, config, vocabularies) for corpus in config.corpora}

    def examples(lines: Iterable[tuple[int, Line]]) -> Iterator[Example]:
        for index, line in lines:
            pair = pair_of(line, pipes[line.corpus.name], config, is_train=True)
            if pair is not None:
                yield numericalise(pair, vocabularies, index)

    def placed(number: int, groups: Sequence[list[Example]], skipped: int) -> Iterator[_Placed]:
        for taken, group in enumerate(groups[skipped:], skipped + 1):
            batch = make_batch(group, vocabularies)
            yield _Placed(number, taken, taken == len(groups), batch)

    sizes = [count_lines(Path(corpus.path_src)) for corpus in config.corpora]
    for epoch in itertools.count(start.epoch):
        origin = start if epoch == start.epoch else Position(epoch)
        for number, lines in enumerate(_buckets(_mixed(config.corpora, sizes, epoch), config)):
            if number >= origin.bucket and share.has(epoch, number):
                seed = f"{config.seed}/{epoch}/{number}"
                skipped = origin.batch if number == origin.bucket else 0
                yield from placed(number, _batches(examples(lines), config, seed), skipped)
                yield _End.BUCKET
        yield _End.EPOCH


def _batches(examples: Iterable[Example], config: DataConfig, seed: str) -> list[list[Example]]:
    """The examples of a bucket, as batches in random order."""
    # A bucket is read in one go under its own random state: what its transforms draw depends on
    # the seed alone, not on training or on where a run was resumed.
    bucket = drawn(seed, lambda: list(examples))
    generator = random.Random(seed)
    generator.shuffle(bucket)
    groups = list(group_by_length(bucket, config.batch_size, config.batch_type))
    generator.shuffle(groups)
    return groups


def _buckets(mixed: Iterator[Line], config: DataConfig) -> Iterator[Iterator[tuple[int, Line]]]:
    """The lines of one epoch with their numbers in it, `bucket_size` of them at a time."""
    lines = enumerate(mixed)
    for first in lines:
        bucket = itertools.chain([first], itertools.islice(lines, config.bucket_size - 1))
        yield bucket
        for _ in bucket:  # what the taker has left
            pass


def _mixed(corpora: Sequence[CorpusConfig], sizes: Sequence[int], epoch: int) -> Iterator[Line]:
    """Lines of all corpora for one epoch: `weight` lines of each corpus in turn."""
    given = _lines_an_epoch([corpus.weight for corpus in corpora], sizes)
    firsts = (epoch * lines % size for lines, size in zip(given, sizes, strict=True))
    streams = [_endless(*each) for each in zip(corpora, firsts, strict=True)]
    while any(lines > 0 for lines in given):
        for i, corpus in enumerate(corpora):
            for _ in range(min(corpus.weight, given[i])):
                yield next(streams[i])
            given[i] -= corpus.weight


def _lines_an_epoch(weights: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """How many lines each corpus gives until all have given as many as they have, in turns."""
    turns = [-(-size // weight) for weight, size in zip(weights, sizes, strict=True)]
    last = max(range(len(sizes)), key=lambda i: (turns[i], i))
    given = [(turns[last] - (i > last)) * weight for i, weight in enumerate(weights)]
    given[last] = sizes[last]
    return given


def _endless(corpus: CorpusConfig, first: int) -> Iterator[Line]:
    """The lines of a corpus from one on (from 0), again and again."""
    while True:
        yield from itertools.islice(read_lines(corpus), first, None)
        first = 0


def target_frequencies(config: DataConfig, vocabularies: Vocabularies) -> torch.Tensor:
    """How often each target token is to be predicted in the first epoch, as shares: (vocab,).

    Corpora count by their weights, and tokens as transforms leave them. The end symbol is predicted
    once a pair; the start symbol and padding never.

    Raises:
        CorpusError: there is no pair.
    """
    size, pad = len(vocabularies.target), vocabularies.target.pad
    counts = torch.zeros(size, dtype=torch.float64)
    batches = TrainingBatches(replace(config, num_workers=0), vocabularies)
    with closing(iter(batches)) as stream:
        for batch in stream:
            assert batch.target is not None, "training batches have targets"
            counts += torch.bincount(batch.target[1:].flatten(), minlength=size)
            if batches.position.epoch > 0:
                break
    counts[pad] = 0
    return (counts / counts.sum()).to(torch.float32)
