"""Store many pairs in little memory before there is a vocabulary, as provisional token numbers.

Tokens are numbered from 0 in the order in which they first appear, separately for sources and
targets. The vocabularies are built from their counts. Then `NumberedPairs.encode` replaces the
numbers by the ids of the vocabularies.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from onmt_entmax.data.corpus import NetworkPair
from onmt_entmax.data.encoded import EncodedPairs
from onmt_entmax.data.garbage_collection import without_collections
from onmt_entmax.data.token_rows import TokenRows
from onmt_entmax.data.vocabulary import TokenCounts, Vocabularies, Vocabulary

_CHUNK = 1 << 14  # pairs that are in memory as text at a time


class NumberedLines:
    """The lines of one side of all pairs, as provisional numbers of their tokens.

    Lines are collected chunk by chunk. `rows` concatenates the chunks.
    """

    def __init__(self) -> None:
        # A token that is looked up for the first time gets the next number.
        self._numbers: dict[str, int] = defaultdict(itertools.count().__next__)
        # One array a chunk. The first ones are for `concatenate`, which takes no empty list, and
        # for the start of the first line, 0.
        self._ids = [np.zeros(0, np.int32)]
        self._lengths = [np.zeros(1, np.int64)]

    def add(self, lines: Sequence[Sequence[str]]) -> None:
        """Add lines of tokens."""
        lengths = np.fromiter(map(len, lines), np.int64, len(lines))
        ids = map(self._numbers.__getitem__, itertools.chain.from_iterable(lines))
        self._ids.append(np.fromiter(ids, np.int32, int(lengths.sum())))
        self._lengths.append(lengths)

    def rows(self) -> TokenRows:
        """Return the lines so far."""
        return TokenRows(np.concatenate(self._ids), np.cumsum(np.concatenate(self._lengths)))

    def counts(self) -> Counter[str]:
        """Return how often each token occurs."""
        return Counter(dict(zip(self._numbers, np.bincount(self.rows().ids).tolist(), strict=True)))

    def encode(self, vocabulary: Vocabulary) -> TokenRows:
        """Return the lines as ids of a vocabulary."""
        rows = self.rows()
        id_of_number = np.asarray(vocabulary.encode(self._numbers), np.int32)
        return TokenRows(id_of_number[rows.ids], rows.starts)

    def tokens(self) -> NDArray[np.object_]:
        """Return all tokens, in the order of their numbers."""
        return np.asarray([*self._numbers], object)


class NumberedPairs:
    """Pairs as provisional numbers of their tokens.

    Attributes:
        source: the lines of the sources, empty for pairs that were left out.
        target: the lines of the targets, likewise.
    """

    def __init__(self) -> None:
        self.source = NumberedLines()
        self.target = NumberedLines()
        self._kept = [np.zeros(0, np.bool_)]  # one array a chunk; False: the pair was left out

    @classmethod
    def of(cls, pairs: Iterable[NetworkPair | None]) -> NumberedPairs:
        """Return these pairs; None stands for one that was left out."""
        numbered = cls()
        numbered.add(pairs)
        return numbered

    def add(self, pairs: Iterable[NetworkPair | None]) -> None:
        """Add pairs; None stands for one that was left out."""
        pairs = iter(pairs)
        with without_collections():
            while chunk := list(itertools.islice(pairs, _CHUNK)):
                self._add_chunk(chunk)

    def _add_chunk(self, pairs: list[NetworkPair | None]) -> None:
        """Add pairs that are in memory; one that was left out becomes two empty lines."""
        self._kept.append(np.fromiter((pair is not None for pair in pairs), np.bool_))
        self.source.add([[] if pair is None else pair.source for pair in pairs])
        self.target.add([[] if pair is None else pair.target for pair in pairs])

    def counts(self) -> TokenCounts:
        """Return how often each token occurs."""
        return TokenCounts(self.source.counts(), self.target.counts())

    def encode(self, vocabularies: Vocabularies) -> EncodedPairs:
        """Return the pairs as vocabulary ids."""
        return EncodedPairs(
            source=self.source.encode(vocabularies.source),
            target=self.target.encode(vocabularies.target),
            kept=np.concatenate(self._kept),
            vocabularies=vocabularies,
        )
