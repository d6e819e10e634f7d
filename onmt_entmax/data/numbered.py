"""Many pairs in little memory: first as numbers of tokens, then as ids of a vocabulary.

`NumberedPairs` collects pairs while there is no vocabulary yet, and counts their tokens for one;
`EncodedPairs` are these pairs with the ids of the vocabulary.
"""

import gc
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onmt_entmax.data.batch import Batch, Integers, TokenRows, padded_batch
from onmt_entmax.data.corpus import Pair
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.strings.task import is_language

_CHUNK = 1 << 14  # pairs in memory as text


@dataclass(frozen=True)
class EncodedPairs:
    """Pairs as token ids.

    Attributes:
        source: source side of all pairs; that of filtered ones is empty.
        target: target side of all pairs; that of filtered ones is empty.
        kept: `(pairs,)`, False for filtered ones.
        vocabularies: of the ids.
    """

    source: TokenRows
    target: TokenRows
    kept: NDArray[np.bool_]
    vocabularies: Vocabularies

    def groups(
        self, rows: Integers, seed: str, cut: Callable[[Integers, Integers], list[Integers]]
    ) -> list[Integers]:
        """Return the batches of some pairs in random order.

        Args:
            rows: the pairs.
            seed: of the order.
            cut: returns the positions of the pairs of each batch, given the lengths of the sources
                and the targets of all pairs.

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
        return padded_batch(self.source, self.target, rows, indices, self.vocabularies)


class LanguageTokens(NamedTuple):
    """The tokens of one language: of its sources, without the language itself, and its targets."""

    source: set[str]
    target: set[str]


class NumberedPairs:
    """Pairs whose tokens are numbered in order of appearance, source and target apart."""

    def __init__(self) -> None:
        # For source and target: numbers by token, and parts of the ids and the lengths of lines.
        self._numbers: list[dict[str, int]] = [
            defaultdict(itertools.count().__next__) for _ in range(2)
        ]
        self._ids = [[np.zeros(0, np.int32)] for _ in range(2)]
        self._lengths = [[np.zeros(1, np.int64)] for _ in range(2)]
        self._kept = [np.zeros(0, np.bool_)]

    def add(self, pairs: Iterable[Pair | None]) -> bool:
        """Add pairs, with None for filtered ones; return whether there is one that is not."""
        pairs = iter(pairs)
        first = len(self._kept)
        enabled = gc.isenabled()
        gc.disable()  # many lists would trigger useless collections
        try:
            while chunk := list(itertools.islice(pairs, _CHUNK)):
                self._add_chunk(chunk)
        finally:
            if enabled:
                gc.enable()
        return any(kept.any() for kept in self._kept[first:])

    def _add_chunk(self, pairs: list[Pair | None]) -> None:
        """Add pairs that are in memory."""
        self._kept.append(np.fromiter((pair is not None for pair in pairs), np.bool_))
        for side, numbers in enumerate(self._numbers):
            lines = [pair[side] if pair else [] for pair in pairs]
            lengths = np.fromiter(map(len, lines), np.int64, len(lines))
            ids = map(numbers.__getitem__, itertools.chain.from_iterable(lines))
            self._ids[side].append(np.fromiter(ids, np.int32, int(lengths.sum())))
            self._lengths[side].append(lengths)

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Count the tokens of each side."""
        source, target = (
            Counter(dict(zip(numbers, np.bincount(side.ids).tolist(), strict=True)))
            for side, numbers in zip(self._sides(), self._numbers, strict=True)
        )
        return source, target

    def by_language(self) -> dict[str, LanguageTokens] | None:
        """Return the tokens of each language; None unless every source begins with one."""
        sides = self._sides()
        tokens = [np.asarray([*numbers], object) for numbers in self._numbers]
        kept = np.diff(sides[0].starts) > 0  # filtered pairs are empty
        first_ids = sides[0].ids[sides[0].starts[:-1][kept]]
        languages, language_of_pair = np.unique(first_ids, return_inverse=True)
        if not all(map(is_language, tokens[0][languages])):
            return None
        # Of each side `(languages, tokens)`: whether the language has the token.
        seen = [np.zeros((len(languages), len(side_tokens)), np.bool_) for side_tokens in tokens]
        for side, has_token in zip(sides, seen, strict=True):
            lengths = np.diff(side.starts)[kept]
            has_token[np.repeat(language_of_pair.astype(np.int32), lengths), side.ids] = True
        seen[0][np.arange(len(languages)), languages] = False  # the language itself
        return {
            tokens[0][language]: LanguageTokens(set(tokens[0][source]), set(tokens[1][target]))
            for language, source, target in zip(languages, *seen, strict=True)
        }

    def encode(self, vocabularies: Vocabularies) -> EncodedPairs:
        """Return the pairs as vocabulary ids."""
        source, target = (
            TokenRows(np.asarray(vocabulary.encode(numbers), np.int32)[side.ids], side.starts)
            for side, numbers, vocabulary in zip(
                self._sides(), self._numbers, vocabularies, strict=True
            )
        )
        return EncodedPairs(source, target, np.concatenate(self._kept), vocabularies)

    def _sides(self) -> list[TokenRows]:
        """Return source and target as numbers of tokens."""
        return [
            TokenRows(np.concatenate(ids), np.cumsum(np.concatenate(lengths)))
            for ids, lengths in zip(self._ids, self._lengths, strict=True)
        ]


def numbered(pairs: Iterable[Pair | None]) -> tuple[NumberedPairs, bool]:
    """Return pairs with numbered tokens, and whether there is one that is not filtered."""
    result = NumberedPairs()
    has_pairs = result.add(pairs)
    return result, has_pairs
