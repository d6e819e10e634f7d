"""Training pairs as arrays of token ids.

`NumberedPairs` numbers the tokens of pairs in order of appearance, so that each line is tokenised
once: it counts them for a vocabulary, and maps the numbers to the ids of one.
"""

from __future__ import annotations

import gc
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.corpus import Pair
from onmt_entmax.data.inflection import is_language
from onmt_entmax.data.shapes import Integers
from onmt_entmax.data.vocabulary import Vocabularies

_CHUNK = 1 << 14  # pairs in memory as text


@dataclass(frozen=True)
class _Side:
    """Tokens of one side of all pairs.

    Attributes:
        ids: ids of all tokens, pair after pair.
        starts: index in `ids` of each pair's first token, ``(pairs + 1,)``; the last is the end.
    """

    ids: NDArray[np.int32]
    starts: Integers

    def lengths(self, rows: Integers) -> Integers:
        """Return the number of tokens of some pairs."""
        return self.starts[rows + 1] - self.starts[rows]

    def padded(self, rows: Integers, pad: int) -> tuple[Integers, Integers]:
        """Return the ids of some pairs, ``(length, pairs)``, and their lengths."""
        lengths = self.lengths(rows)
        position = np.arange(int(lengths.max(initial=1)))[:, None]
        place = np.minimum(self.starts[rows] + position, max(len(self.ids) - 1, 0))
        return np.where(position < lengths, self.ids[place], pad).astype(np.int64), lengths


@dataclass(frozen=True)
class EncodedPairs:
    """Pairs as token ids.

    Attributes:
        source: source side of all pairs; filtered ones are empty.
        target: target side, likewise.
        kept: False for filtered pairs.
        vocabularies: vocabularies of the ids.
    """

    source: _Side
    target: _Side
    kept: NDArray[np.bool_]
    vocabularies: Vocabularies

    def groups(
        self, rows: Integers, seed: str, cut: Callable[[Integers, Integers], list[Integers]]
    ) -> list[Integers]:
        """Return the batches of some pairs in random order.

        Args:
            rows: the pairs.
            seed: of the order.
            cut: cuts pairs with given source and target lengths into batches; returns positions.

        Returns:
            Positions in `rows` of the pairs of each batch.
        """
        order = np.flatnonzero(self.kept[rows]).tolist()
        generator = random.Random(seed)
        generator.shuffle(order)
        places = np.asarray(order, dtype=np.int64)
        lengths = (side.lengths(rows[places]) for side in (self.source, self.target))
        groups = [places[group] for group in cut(*lengths)]
        generator.shuffle(groups)
        return groups

    def batch(self, rows: Integers, indices: Integers) -> Batch:
        """Return some pairs as a batch, longest source first; `indices` become its `indices`."""
        vocabulary = self.vocabularies.target
        order = np.argsort(-self.source.lengths(rows), kind="stable")
        rows = rows[order]
        source, lengths = self.source.padded(rows, self.vocabularies.source.pad)
        inner, inner_lengths = self.target.padded(rows, vocabulary.pad)
        longest = int(inner_lengths.max())
        target = np.full((longest + 2, len(rows)), vocabulary.pad, np.int64)
        target[0] = vocabulary.bos
        target[1 : longest + 1] = inner[:longest]
        target[inner_lengths + 1, np.arange(len(rows))] = vocabulary.eos
        return Batch(
            torch.from_numpy(source).unsqueeze(-1),
            torch.from_numpy(lengths),
            torch.from_numpy(target).unsqueeze(-1),
            torch.from_numpy(inner_lengths + 2),
            tuple(indices[order].tolist()),
        )


class NumberedPairs:
    """Pairs with tokens numbered in order of appearance."""

    def __init__(self) -> None:
        self._numbers: list[dict[str, int]] = [
            defaultdict(itertools.count().__next__) for _ in range(2)
        ]
        self._ids = [[np.zeros(0, np.int32)] for _ in range(2)]
        self._lengths = [[np.zeros(1, np.int64)] for _ in range(2)]
        self._kept = [np.zeros(0, np.bool_)]

    def add(self, pairs: Iterable[Pair | None]) -> bool:
        """Add pairs, with None for filtered ones; return whether there is one that is not."""
        pairs, first = iter(pairs), len(self._kept)
        with _without_garbage_collection():  # many lists would trigger useless ones
            while some := list(itertools.islice(pairs, _CHUNK)):
                self._kept.append(np.fromiter((pair is not None for pair in some), np.bool_))
                for side, number in enumerate(self._numbers):
                    lines = [pair[side] if pair else [] for pair in some]
                    lengths = np.fromiter(map(len, lines), np.int64, len(lines))
                    tokens = map(number.__getitem__, itertools.chain.from_iterable(lines))
                    self._ids[side].append(np.fromiter(tokens, np.int32, int(lengths.sum())))
                    self._lengths[side].append(lengths)
        return any(kept.any() for kept in self._kept[first:])

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Count the tokens of each side."""
        source, target = (
            Counter(dict(zip(numbers, np.bincount(side.ids).tolist(), strict=True)))
            for side, numbers in zip(self._sides(), self._numbers, strict=True)
        )
        return source, target

    def by_language(self) -> dict[str, set[str]] | None:
        """Return the source tokens of each language; None unless every source begins with one."""
        side, names = self._sides()[0], np.asarray([*self._numbers[0]], object)
        lengths = np.diff(side.starts)
        languages, language = np.unique(
            side.ids[side.starts[:-1][lengths > 0]], return_inverse=True
        )
        if not all(map(is_language, names[languages])):
            return None
        seen = np.zeros((len(languages), len(names)), np.bool_)
        seen[np.repeat(language.astype(np.int32), lengths[lengths > 0]), side.ids] = True
        seen[np.arange(len(languages)), languages] = False
        return {names[first]: set(names[own]) for first, own in zip(languages, seen, strict=True)}

    def encode(self, vocabularies: Vocabularies) -> EncodedPairs:
        """Return the pairs as vocabulary ids."""
        source, target = (
            _Side(np.asarray(vocabulary.encode(numbers), np.int32)[side.ids], side.starts)
            for side, numbers, vocabulary in zip(
                self._sides(), self._numbers, vocabularies, strict=True
            )
        )
        return EncodedPairs(source, target, np.concatenate(self._kept), vocabularies)

    def _sides(self) -> list[_Side]:
        return [
            _Side(np.concatenate(ids), np.cumsum(np.concatenate(lengths)))
            for ids, lengths in zip(self._ids, self._lengths, strict=True)
        ]


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
