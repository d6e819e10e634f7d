"""Constraints on the output: minimum length, repeated n-grams, banned tokens, target prefixes.

They change the question that a search answers, so it counts the probability that they rule out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onmt_entmax.errors import counted
from onmt_entmax.search.expansion import Ints


@dataclass(frozen=True)
class Constraints:
    """Which sequences are allowed; options that OpenNMT-py has keep its names.

    Positions of a forced target prefix are exempt.

    Raises:
        ValueError: if a number is negative.
    """

    min_length: int = 0
    """Shortest sequence, without its end symbol."""
    block_ngram_repeat: int = 0
    """No sequence may contain an n-gram of this size twice; 0 allows it."""
    ignore_when_blocking: frozenset[int] = frozenset()
    """Token ids; an n-gram with one of them may repeat."""
    banned: frozenset[int] = frozenset()
    """Token ids that no sequence may contain (`-ban_unk_token`: that of `<unk>`)."""

    def __post_init__(self) -> None:
        for name in ("min_length", "block_ngram_repeat"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")

    def forbidden(
        self,
        never: Sequence[int],
        eos: int,
        lengths: Ints,
        history: Callable[[int], tuple[int, ...]],
    ) -> tuple[Ints, Ints]:
        """Return the tokens that may not follow each row.

        Args:
            never: ids that no sequence contains, whatever the constraints.
            eos: id of the end symbol.
            lengths: `(rows,)` tokens of each row's prefix.
            history: returns the prefix of a row; only called if n-grams are blocked.

        Returns:
            Pairs of a row and a token, as two arrays `(pairs,)`, each pair once.
        """
        count = len(lengths)
        columns = np.array(sorted({*never, *self.banned}), dtype=np.int64)
        rows = [np.repeat(np.arange(count), len(columns))]
        tokens = [np.tile(columns, count)]
        if self.min_length and eos not in columns:
            short = np.flatnonzero(lengths < self.min_length)
            rows.append(short)
            tokens.append(np.full(len(short), eos))
        if self.block_ngram_repeat:
            repeats = [
                self._repeats(history(row)) - {eos, *columns.tolist()} for row in range(count)
            ]
            rows += [np.full(len(found), row) for row, found in enumerate(repeats)]
            tokens += [np.array(sorted(found), dtype=np.int64) for found in repeats]
        return np.concatenate(rows), np.concatenate(tokens)

    def _repeats(self, prefix: tuple[int, ...]) -> set[int]:
        """Return the tokens that would make an n-gram of the prefix occur twice."""
        n = self.block_ngram_repeat
        last = prefix[len(prefix) - n + 1 :] if n > 1 else ()
        if len(last) < n - 1 or self.ignore_when_blocking & set(last):
            return set()
        ngrams = (prefix[i : i + n] for i in range(len(prefix) - n + 1))
        return {gram[-1] for gram in ngrams if gram[:-1] == last} - self.ignore_when_blocking


def check_tokens(tokens: Iterable[int], vocabulary_size: int) -> None:
    """Check that ids are in the vocabulary; a negative one would index from its end.

    Raises:
        ValueError: if one is not.
    """
    for token in tokens:
        if not 0 <= token < vocabulary_size:
            size = counted(vocabulary_size, "token")
            raise ValueError(f"token {token} is not in the vocabulary of {size}")


def checked_prefixes(
    prefixes: Sequence[Sequence[int]] | None, sentences: int, vocabulary_size: int, eos: int
) -> Sequence[Sequence[int]]:
    """Return a prefix for each sentence, of tokens that an output may have; empty ones for None.

    Raises:
        ValueError: if their number is another, or one has a token that is not in the vocabulary,
            or the end symbol.
    """
    if prefixes is None:
        return [()] * sentences
    if len(prefixes) != sentences:
        raise ValueError(f"{counted(len(prefixes), 'prefix')} for {counted(sentences, 'sentence')}")
    for prefix in prefixes:
        check_tokens(prefix, vocabulary_size)
        if eos in prefix:
            raise ValueError("a prefix has the end symbol in it, and no output goes on after that")
    return prefixes


def force(
    row: Ints, token: Ints, forced: Mapping[int, int], vocabulary_size: int
) -> tuple[Ints, Ints]:
    """Allow one single token at forced positions, in place of other constraints.

    Args:
        row: `(pairs,)` row of each forbidden pair.
        token: `(pairs,)` token of each forbidden pair.
        forced: the token to come at each row at a forced position, rows ascending.
        vocabulary_size: number of tokens.

    Returns:
        All forbidden pairs, as two arrays.
    """
    rows = np.array(list(forced), dtype=np.int64)
    others = np.ones((len(rows), vocabulary_size), dtype=bool)
    others[np.arange(len(rows)), np.array(list(forced.values()), dtype=np.int64)] = False
    place, other = np.nonzero(others)
    free = ~np.isin(row, rows)
    return np.concatenate([row[free], rows[place]]), np.concatenate([token[free], other])
