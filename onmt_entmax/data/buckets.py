"""Buckets: lines of an epoch that are shuffled and sorted by length together.

`TrainingData.buckets` yields a function for each bucket of an epoch. A caller that wants the bucket
calls the function with a seed, from which transforms draw their random numbers, whatever was drawn
before; it must do so before it takes the next function. Other buckets cost only their reading.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import numpy as np

from onmt_entmax.data.corpus import Line, Pair
from onmt_entmax.data.numbered import EncodedPairs, numbered
from onmt_entmax.data.seeding import with_seed
from onmt_entmax.data.token_rows import Integers
from onmt_entmax.data.vocabulary import Vocabularies

Bucket = tuple[EncodedPairs, Integers]
"""Pairs, and which of them are in the bucket"""
PairOf = Callable[[int, Line], Pair | None]
"""Returns the network's tokens of a line of a corpus, given its number; None if it is left out"""


def kept_buckets(
    pairs: EncodedPairs, rows: Integers, size: int
) -> Iterator[Callable[[str], Bucket]]:
    """Yield the buckets of pairs that are kept in memory, in which nothing is random.

    Args:
        pairs: of all corpora.
        rows: the pairs of an epoch, in their order.
        size: lines of a bucket.
    """
    for begin in range(0, len(rows), size):
        yield partial(_kept_bucket, pairs, rows[begin : begin + size])


def _kept_bucket(pairs: EncodedPairs, rows: Integers, seed: str) -> Bucket:
    """Return a bucket, which is the same for every seed."""
    return pairs, rows


def read_buckets(
    lines: Iterator[tuple[int, Line]],
    count: int,
    size: int,
    pair_of: PairOf,
    vocabularies: Vocabularies,
) -> Iterator[Callable[[str], Bucket]]:
    """Yield the buckets of lines that are read now.

    Args:
        lines: of an epoch, each with the number of its corpus.
        count: how many lines there are.
        size: lines of a bucket.
        pair_of: applies the transforms of a corpus.
        vocabularies: of the ids.
    """
    for _ in range(0, count, size):
        bucket = islice(lines, size)
        yield partial(_read_bucket, bucket, pair_of, vocabularies)
        for _unread in bucket:  # if the caller did not call the function
            pass


def _read_bucket(
    lines: Iterator[tuple[int, Line]], pair_of: PairOf, vocabularies: Vocabularies, seed: str
) -> Bucket:
    """Read the lines of a bucket, with transforms that depend on the seed."""
    pairs = (pair_of(corpus, line) for corpus, line in lines)
    read_pairs, _ = with_seed(seed, lambda: numbered(pairs))
    encoded = read_pairs.encode(vocabularies)
    return encoded, np.arange(len(encoded.kept))
