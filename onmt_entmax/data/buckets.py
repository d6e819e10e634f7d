"""Buckets: pairs of an epoch that are shuffled, and sorted by length, together.

`TrainingData.buckets` yields a function for each bucket of an epoch, a `ReadBucket`. A process that
leaves a bucket to others does not call it, so no transform is applied.

A bucket has 262,144 lines by default. So that they need no memory besides their ids, a bucket reads
its lines from the open files when it is called, which must be before the next bucket is taken.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from onmt_entmax.data.corpus import Line, Pair
from onmt_entmax.data.encoded import EncodedPairs
from onmt_entmax.data.numbered import NumberedPairs
from onmt_entmax.data.seeding import with_seed
from onmt_entmax.data.token_rows import Integers
from onmt_entmax.data.vocabulary import Vocabularies

PairOf = Callable[[int, Line], Pair | None]
"""Returns the network's tokens of a line, given the number of its corpus; None if it is left out"""


class Bucket(NamedTuple):
    """Pairs that are shuffled together.

    Attributes:
        pairs: pairs of the bucket alone, or of all corpora.
        rows: which of them are in the bucket, in order.
    """

    pairs: EncodedPairs
    rows: Integers


ReadBucket = Callable[[str], Bucket]
"""Reads a bucket. Call it once, before the next one is taken: all read from the same open files.

The argument is the seed of the transforms' random numbers, which depend on nothing else, see
`with_seed`; it names run, epoch and bucket."""


def kept_buckets(pairs: EncodedPairs, rows: Integers, size: int) -> Iterator[ReadBucket]:
    """Yield the buckets of pairs that are kept in memory; their transforms were not random.

    Args:
        pairs: the pairs of all corpora.
        rows: the pairs of an epoch, in their order.
        size: lines of a bucket.
    """
    for begin in range(0, len(rows), size):
        bucket = Bucket(pairs, rows[begin : begin + size])
        yield partial(_same_for_every_seed, bucket)


def _same_for_every_seed(bucket: Bucket, _seed: str) -> Bucket:
    """Return the bucket; with the first argument bound, this is a `ReadBucket`."""
    return bucket


def read_buckets(
    lines: Iterator[tuple[int, Line]],
    count: int,
    size: int,
    pair_of: PairOf,
    vocabularies: Vocabularies,
) -> Iterator[ReadBucket]:
    """Yield the buckets of lines that are read now.

    Args:
        lines: the lines of an epoch, each with the number of its corpus.
        count: how many lines there are.
        size: lines of a bucket.
        pair_of: applies the transforms of a corpus.
        vocabularies: the vocabularies of the ids.
    """
    for _ in range(0, count, size):
        bucket = _UnreadBucket(islice(lines, size), pair_of, vocabularies)
        yield bucket.read
        bucket.skip()


class _UnreadBucket:
    """The next lines of an epoch, which can be read once.

    Args:
        lines: the lines of the bucket, each with the number of its corpus.
        pair_of: see `read_buckets`.
        vocabularies: see `read_buckets`.
    """

    def __init__(
        self, lines: Iterator[tuple[int, Line]], pair_of: PairOf, vocabularies: Vocabularies
    ) -> None:
        self._lines = lines
        self._pair_of = pair_of
        self._vocabularies = vocabularies
        self._is_passed = False

    def read(self, seed: str) -> Bucket:
        """Read the lines, with transforms that depend on the seed.

        Raises:
            RuntimeError: the lines have been read, or skipped.
        """
        if self._is_passed:
            raise RuntimeError("a bucket is read once, and before the next one is taken")
        self._is_passed = True
        pairs = (self._pair_of(corpus, line) for corpus, line in self._lines)
        # All pairs may be filtered out: a stream of batches takes empty buckets.
        encoded = with_seed(seed, lambda: NumberedPairs.of(pairs)).encode(self._vocabularies)
        return Bucket(encoded, np.arange(len(encoded.kept)))

    def skip(self) -> None:
        """Pass over the lines that were not read, so that the next bucket begins behind them."""
        self._is_passed = True
        for _ in self._lines:
            pass
