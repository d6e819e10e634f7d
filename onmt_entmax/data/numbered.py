"""Many pairs in little memory: first as numbers of tokens, then as ids of a vocabulary.

`NumberedPairs` collects pairs while there is no vocabulary yet, and counts their tokens for one;
`EncodedPairs` are these pairs with the ids of the vocabulary.
"""

import gc
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onmt_entmax.data.batch import Batch, padded_batch
from onmt_entmax.data.corpus import Pair
from onmt_entmax.data.token_rows import Integers, TokenRows
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from onmt_entmax.strings.task import is_language

_CHUNK = 1 << 14  # pairs that are in memory as text at a time


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
                and of the targets of the kept pairs, in random order.

        Returns:
            Positions in `rows` of the pairs of each batch.
        """
        generator = random.Random(seed)
        order = np.flatnonzero(self.kept[rows]).tolist()
        generator.shuffle(order)  # pairs of equal length go together in this order
        places = np.asarray(order, dtype=np.int64)
        source_lengths = self.source.lengths(rows[places])
        target_lengths = self.target.lengths(rows[places])
        batches = [places[group] for group in cut(source_lengths, target_lengths)]
        generator.shuffle(batches)
        return batches

    def batch(self, rows: Integers, indices: Integers) -> Batch:
        """Return some pairs as a batch, longest source first.

        Args:
            rows: the pairs.
            indices: of the pairs, which become `Batch.indices`.
        """
        return padded_batch(self.source, self.target, rows, indices, self.vocabularies)


class LanguageTokens(NamedTuple):
    """The tokens that training saw in one language.

    Attributes:
        source: of its sources, without the language itself.
        target: of its targets.
    """

    source: set[str]
    target: set[str]


class _Side:
    """The lines of one side of all pairs, as numbers of tokens.

    Tokens are numbered from 0 in the order in which they first appear. Lines are collected chunk by
    chunk, and put together when they are needed.
    """

    def __init__(self) -> None:
        # A token that is looked up for the first time gets the next number.
        self.numbers: dict[str, int] = defaultdict(itertools.count().__next__)
        self._ids = [np.zeros(0, np.int32)]
        self._lengths = [np.zeros(1, np.int64)]  # the first line starts at 0

    def add(self, lines: Sequence[Sequence[str]]) -> None:
        """Add lines of tokens."""
        lengths = np.fromiter(map(len, lines), np.int64, len(lines))
        ids = map(self.numbers.__getitem__, itertools.chain.from_iterable(lines))
        self._ids.append(np.fromiter(ids, np.int32, int(lengths.sum())))
        self._lengths.append(lengths)

    def rows(self) -> TokenRows:
        """Return the lines so far."""
        return TokenRows(np.concatenate(self._ids), np.cumsum(np.concatenate(self._lengths)))

    def counts(self) -> Counter[str]:
        """Return how often each token occurs."""
        return Counter(dict(zip(self.numbers, np.bincount(self.rows().ids).tolist(), strict=True)))

    def encode(self, vocabulary: Vocabulary) -> TokenRows:
        """Return the lines as ids of a vocabulary."""
        rows = self.rows()
        id_of_number = np.asarray(vocabulary.encode(self.numbers), np.int32)
        return TokenRows(id_of_number[rows.ids], rows.starts)

    def tokens(self) -> NDArray[np.object_]:
        """Return all tokens, in the order of their numbers."""
        return np.asarray([*self.numbers], object)


class NumberedPairs:
    """Pairs whose tokens are numbered in order of appearance, source and target apart."""

    def __init__(self) -> None:
        self._source = _Side()
        self._target = _Side()
        self._kept = [np.zeros(0, np.bool_)]  # of each chunk; False for filtered pairs

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
        """Add pairs that are in memory; filtered ones become empty lines."""
        self._kept.append(np.fromiter((pair is not None for pair in pairs), np.bool_))
        self._source.add([[] if pair is None else pair[0] for pair in pairs])
        self._target.add([[] if pair is None else pair[1] for pair in pairs])

    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Count the tokens of each side."""
        return self._source.counts(), self._target.counts()

    def by_language(self) -> dict[str, LanguageTokens] | None:
        """Return the tokens of each language; None unless every source begins with one.

        The first token of a source is its language. For each side, a table of languages by tokens
        is filled with all lines at once, and its rows are the sets.
        """
        source, source_tokens = self._source.rows(), self._source.tokens()
        target, target_tokens = self._target.rows(), self._target.tokens()
        kept = np.diff(source.starts) > 0  # filtered pairs are empty
        first_numbers = source.ids[source.starts[:-1][kept]]
        # Numbers of the tokens that are languages, and the row of each pair among these.
        languages, inverse = np.unique(first_numbers, return_inverse=True)
        if not all(map(is_language, source_tokens[languages])):
            return None
        language_of_pair = inverse.astype(np.int32)
        in_source = _seen(source, kept, language_of_pair, (len(languages), len(source_tokens)))
        in_target = _seen(target, kept, language_of_pair, (len(languages), len(target_tokens)))
        in_source[np.arange(len(languages)), languages] = False  # the language itself
        return {
            source_tokens[language]: LanguageTokens(
                source=set(source_tokens[in_source[row]]),
                target=set(target_tokens[in_target[row]]),
            )
            for row, language in enumerate(languages)
        }

    def encode(self, vocabularies: Vocabularies) -> EncodedPairs:
        """Return the pairs as vocabulary ids."""
        return EncodedPairs(
            source=self._source.encode(vocabularies.source),
            target=self._target.encode(vocabularies.target),
            kept=np.concatenate(self._kept),
            vocabularies=vocabularies,
        )


def _seen(
    lines: TokenRows,
    kept: NDArray[np.bool_],
    language_of_pair: NDArray[np.int32],
    shape: tuple[int, int],
) -> NDArray[np.bool_]:
    """Return which tokens the lines of each language have.

    Args:
        lines: of one side, as numbers of tokens.
        kept: `(lines,)`, False for those of filtered pairs, which are empty.
        language_of_pair: `(kept pairs,)` row of the language of each.
        shape: `(languages, tokens)` of the result.
    """
    seen = np.zeros(shape, np.bool_)
    lengths = np.diff(lines.starts)[kept]
    seen[np.repeat(language_of_pair, lengths), lines.ids] = True
    return seen


def numbered(pairs: Iterable[Pair | None]) -> tuple[NumberedPairs, bool]:
    """Return pairs with numbered tokens, and whether there is one that is not filtered."""
    result = NumberedPairs()
    has_pairs = result.add(pairs)
    return result, has_pairs
