"""Training pairs as arrays of token ids: each line is read and tokenised once.

`read_tokens` numbers the tokens of all corpora in order of appearance, `TokenNumbers.counts`
counts them, and `TokenNumbers.encode` maps the numbers to vocabulary ids. The arrays stay in memory
and are never cached on disk, so a changed file cannot leave stale data.
"""

from __future__ import annotations

import gc
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from onmt_entmax.data.batch import Batch, Integers
from onmt_entmax.data.corpus import (
    CorpusConfig,
    CorpusError,
    DataConfig,
    Pair,
    build_pipe,
    pair_of,
    read_lines,
)
from onmt_entmax.data.inflection import is_language
from onmt_entmax.data.vocabulary import Vocabularies

Grouping = Callable[[Integers, Integers], list[Integers]]
"""Cuts pairs with given source and target lengths into batches; returns their positions."""

MAX_BYTES = 1 << 30  # larger corpora are read again in every epoch
_FIXED_TRANSFORMS = {"filtertoolong", "prefix"}  # these draw no random numbers
_CHUNK = 1 << 15  # lines in memory as text


def covers(data: DataConfig) -> bool:
    """Return whether all epochs have the same pairs, and these fit in memory."""
    fixed = all(set(corpus.transforms) <= _FIXED_TRANSFORMS for corpus in data.corpora)
    files = {path for corpus in data.corpora for path in (corpus.path_src, corpus.path_tgt)}
    return fixed and sum(Path(path).stat().st_size for path in files) <= MAX_BYTES


@dataclass(frozen=True)
class _Side:
    """Tokens of one side of all lines.

    Attributes:
        ids: ids of all tokens, line after line.
        starts: index in `ids` of each line's first token, ``(lines + 1,)``; the last is the end.
    """

    ids: NDArray[np.int32]
    starts: Integers

    def lengths(self, lines: Integers) -> Integers:
        """Return the number of tokens of some lines."""
        return self.starts[lines + 1] - self.starts[lines]

    def padded(self, lines: Integers, pad: int) -> tuple[Integers, Integers]:
        """Return the ids of some lines, ``(length, lines)``, and their lengths."""
        lengths = self.lengths(lines)
        position = np.arange(int(lengths.max(initial=1)))[:, None]
        place = np.minimum(self.starts[lines] + position, max(len(self.ids) - 1, 0))
        return np.where(position < lengths, self.ids[place], pad).astype(np.int64), lengths


@dataclass(frozen=True)
class EncodedPairs:
    """The pairs of all corpora as token ids.

    Attributes:
        source: source side of all lines of all corpora; filtered lines are empty.
        target: target side, likewise.
        kept: False for filtered lines.
        sizes: number of lines of each corpus.
        vocabularies: vocabularies of the ids.
    """

    source: _Side
    target: _Side
    kept: NDArray[np.bool_]
    sizes: tuple[int, ...]
    vocabularies: Vocabularies

    def epoch(self, corpora: Sequence[CorpusConfig], lines: Sequence[int], epoch: int) -> Integers:
        """Return the lines of an epoch in order: `weight` lines of each corpus in turn.

        Args:
            corpora: corpora in the order of `sizes`.
            lines: number of lines of each corpus in an epoch. Each epoch continues where the one
                before stopped.
            epoch: number of the epoch.
        """
        rows, turns, numbers = [], [], []
        first = 0
        for number, (corpus, size, count) in enumerate(
            zip(corpora, self.sizes, lines, strict=True)
        ):
            at = np.arange(count)
            rows.append(first + (epoch * count + at) % size)
            turns.append(at // corpus.weight)
            numbers.append(np.full(count, number))
            first += size
        order = np.lexsort((np.concatenate(numbers), np.concatenate(turns)))
        return np.concatenate(rows)[order]

    def groups(self, lines: Integers, first: int, seed: str, grouping: Grouping) -> list[Integers]:
        """Return a bucket's batches in random order, as `stream` does for examples.

        Args:
            lines: lines of the bucket.
            first: position of its first line in the epoch.
            seed: seed of the bucket.
            grouping: cuts the shuffled pairs into batches.

        Returns:
            An array ``(2, pairs)`` for each batch: lines, and their positions in the epoch.
        """
        numbers = np.flatnonzero(self.kept[lines])
        order = list(range(len(numbers)))
        generator = random.Random(seed)
        generator.shuffle(order)
        numbers = numbers[np.asarray(order, dtype=np.int64)]
        lines = lines[numbers]
        groups = grouping(self.source.lengths(lines), self.target.lengths(lines))
        generator.shuffle(groups)
        return [np.stack([lines[group], numbers[group] + first]) for group in groups]

    def batch(self, group: Integers) -> Batch:
        """Return the same batch as `make_batch`.

        Args:
            group: an array that `groups` returned.
        """
        lines, numbers = group
        known = self.vocabularies.target
        order = np.argsort(-self.source.lengths(lines), kind="stable")
        lines, numbers = lines[order], numbers[order]
        source, lengths = self.source.padded(lines, self.vocabularies.source.pad)
        inner, inner_lengths = self.target.padded(lines, known.pad)
        longest = int(inner_lengths.max())
        target = np.full((longest + 2, len(lines)), known.pad, np.int64)
        target[0] = known.bos
        target[1 : longest + 1] = inner[:longest]
        target[inner_lengths + 1, np.arange(len(lines))] = known.eos
        return Batch(
            torch.from_numpy(source).unsqueeze(-1),
            torch.from_numpy(lengths),
            torch.from_numpy(target).unsqueeze(-1),
            torch.from_numpy(inner_lengths + 2),
            tuple(numbers.tolist()),
        )


@dataclass(frozen=True)
class TokenNumbers:
    """The lines of all corpora, with tokens numbered in order of appearance.

    Attributes:
        source: source side of all lines.
        target: target side of all lines.
        names: source tokens and target tokens by number.
        corpora: names of the corpora.
        sizes: number of lines of each corpus.
        kept: False for filtered lines.
    """

    source: _Side
    target: _Side
    names: tuple[tuple[str, ...], tuple[str, ...]]
    corpora: tuple[str, ...]
    sizes: tuple[int, ...]
    kept: NDArray[np.bool_]

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Count the tokens of each side.

        Raises:
            CorpusError: a corpus has no pair.
        """
        first = 0
        for name, size in zip(self.corpora, self.sizes, strict=True):
            if not self.kept[first : first + size].any():
                raise CorpusError(f"corpus {name!r}: no pair is left after transforms and filters")
            first += size
        source, target = (
            Counter(
                dict(zip(names, np.bincount(side.ids, minlength=len(names)).tolist(), strict=True))
            )
            for side, names in zip((self.source, self.target), self.names, strict=True)
        )
        return source, target

    def by_language(self) -> dict[str, set[str]]:
        """Return what `tokens_by_language` returns, without reading the lines again."""
        names, lengths = np.asarray(self.names[0], object), np.diff(self.source.starts)
        firsts = self.source.ids[self.source.starts[:-1][lengths > 0]]
        languages, language = np.unique(firsts, return_inverse=True)
        if not all(map(is_language, names[languages])):
            return {}
        found = np.zeros((len(languages), len(names)), np.bool_)
        found[np.repeat(language.astype(np.int32), lengths[lengths > 0]), self.source.ids] = True
        found[np.arange(len(languages)), languages] = False
        return {names[first]: set(names[own]) for first, own in zip(languages, found, strict=True)}

    def encode(self, vocabularies: Vocabularies) -> EncodedPairs:
        """Return the pairs as vocabulary ids."""
        source, target = (
            _Side(np.asarray(vocabulary.encode(names), np.int32)[side.ids], side.starts)
            for side, names, vocabulary in zip(
                (self.source, self.target), self.names, vocabularies, strict=True
            )
        )
        return EncodedPairs(source, target, self.kept, self.sizes, vocabularies)


class _Builder:
    """Collects the lines of one side."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = defaultdict(itertools.count().__next__)
        self._ids: list[NDArray[np.int32]] = []
        self._lengths: list[Integers] = []

    def add(self, lines: Sequence[Sequence[str]]) -> None:
        """Number the tokens of some lines."""
        lengths = np.fromiter(map(len, lines), np.int64, len(lines))
        tokens = map(self.numbers.__getitem__, itertools.chain.from_iterable(lines))
        self._ids.append(np.fromiter(tokens, np.int32, int(lengths.sum())))
        self._lengths.append(lengths)

    def side(self) -> _Side:
        """Return all lines."""
        lengths = np.concatenate([np.zeros(1, np.int64), *self._lengths])
        return _Side(np.concatenate([np.zeros(0, np.int32), *self._ids]), np.cumsum(lengths))


_NOTHING: Pair = ([], [])


def read_tokens(data: DataConfig) -> TokenNumbers:
    """Read, transform and number the lines of all training corpora, which `covers` accepts.

    Raises:
        CorpusError: a file cannot be read, or a line is empty with `skip_empty_level: error`.
    """
    source, target = _Builder(), _Builder()
    sizes, kept = [], []
    for corpus in data.corpora:
        size = 0
        for pairs in _without_garbage_collection(_pairs(corpus, data)):
            whole = [pair or _NOTHING for pair in pairs]
            source.add([pair[0] for pair in whole])
            target.add([pair[1] for pair in whole])
            kept.append(np.fromiter((pair is not None for pair in pairs), np.bool_, len(pairs)))
            size += len(pairs)
        sizes.append(size)
    return TokenNumbers(
        source.side(),
        target.side(),
        (tuple(source.numbers), tuple(target.numbers)),
        tuple(corpus.name for corpus in data.corpora),
        tuple(sizes),
        np.concatenate([np.zeros(0, np.bool_), *kept]),
    )


def _without_garbage_collection(chunks: Iterator[list[Pair | None]]) -> Iterator[list[Pair | None]]:
    """Yield the chunks; their many lists would trigger useless collections."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield from chunks
    finally:
        if enabled:
            gc.enable()


def _pairs(corpus: CorpusConfig, data: DataConfig) -> Iterator[list[Pair | None]]:
    """Yield the pairs of a corpus in chunks, with None for filtered lines."""
    pipe = build_pipe(corpus, data)
    lines = read_lines(corpus)
    while some := list(itertools.islice(lines, _CHUNK)):
        yield [pair_of(line, pipe, data, is_train=True) for line in some]
