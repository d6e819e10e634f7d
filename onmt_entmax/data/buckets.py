"""Buckets: pairs of an epoch that are shuffled, and sorted by length, together.

`TrainingData.buckets` yields the buckets of an epoch in order. If several processes share an
epoch, each reads some of the buckets, and applies transforms to no lines but theirs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from onmt_entmax.data.corpus import Line, NetworkPair
from onmt_entmax.data.encoded import EncodedPairs
from onmt_entmax.data.numbered import NumberedPairs
from onmt_entmax.data.seeding import with_seed
from onmt_entmax.data.token_rows import Integers
from onmt_entmax.data.vocabulary import Vocabularies

ReadPair = Callable[[int, Line], NetworkPair | None]
"""Returns the network's tokens of a line, given the number of its corpus; None if it is left out"""


class BucketPairs(NamedTuple):
    """The pairs of a bucket.

    Attributes:
        pairs: pairs of the bucket alone, or of all corpora.
        rows: which of them are in the bucket, in order.
    """

    pairs: EncodedPairs
    rows: Integers


class Bucket(ABC):
    """A bucket, whose pairs may still have to be read."""

    @abstractmethod
    def read(self, seed: str) -> BucketPairs:
        """Return the pairs. Call this once, before the next bucket is taken.

        Args:
            seed: names run, epoch and bucket. The random numbers of the transforms depend on it
                alone, see `with_seed`.
        """


def kept_buckets(pairs: EncodedPairs, rows: Integers, size: int) -> Iterator[Bucket]:
    """Yield the buckets of pairs that are kept in memory.

    Args:
        pairs: the pairs of all corpora.
        rows: the pairs of an epoch, in their order.
        size: lines of a bucket.
    """
    for begin in range(0, len(rows), size):
        yield _KeptBucket(BucketPairs(pairs, rows[begin : begin + size]))


class _KeptBucket(Bucket):
    """A bucket of pairs in memory, whose transforms were not random."""

    def __init__(self, pairs: BucketPairs) -> None:
        self._pairs = pairs

    def read(self, seed: str) -> BucketPairs:
        """Return the pairs, which are the same for every seed."""
        return self._pairs


def unread_buckets(
    lines: Iterator[tuple[int, Line]],
    line_count: int,
    size: int,
    read_pair: ReadPair,
    vocabularies: Vocabularies,
) -> Iterator[Bucket]:
    """Yield the buckets of an epoch whose lines are read from their files now.

    A bucket has 262,144 lines by default. So that these take no memory as text, a bucket takes them
    from `lines` while it is read. Lines of a bucket that was not read are skipped, so that the next
    one begins after them.

    Args:
        lines: the lines of an epoch, each with the number of its corpus.
        line_count: how many lines there are.
        size: lines of a bucket.
        read_pair: applies the transforms of a corpus.
        vocabularies: the vocabularies of the ids.
    """
    for _ in range(0, line_count, size):
        bucket = _UnreadBucket(islice(lines, size), read_pair, vocabularies)
        yield bucket
        bucket.skip()


class _UnreadBucket(Bucket):
    """The next lines of an epoch; see `unread_buckets` for the arguments."""

    def __init__(
        self, lines: Iterator[tuple[int, Line]], read_pair: ReadPair, vocabularies: Vocabularies
    ) -> None:
        self._lines = lines
        self._read_pair = read_pair
        self._vocabularies = vocabularies
        self._is_passed = False

    def read(self, seed: str) -> BucketPairs:
        """Read the lines, with transforms that depend on the seed.

        Raises:
            RuntimeError: the lines have been read, or skipped.
        """
        if self._is_passed:
            raise RuntimeError("a bucket is read once, and before the next one is taken")
        self._is_passed = True
        pairs = (self._read_pair(corpus, line) for corpus, line in self._lines)
        # All pairs may be filtered out: a stream of batches takes empty buckets.
        encoded = with_seed(seed, lambda: NumberedPairs.of(pairs)).encode(self._vocabularies)
        return BucketPairs(encoded, np.arange(len(encoded.kept)))

    def skip(self) -> None:
        """Pass over the lines that were not read."""
        self._is_passed = True
        for _ in self._lines:
            pass
