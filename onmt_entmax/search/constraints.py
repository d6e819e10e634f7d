"""Requests that rule strings out: they change the question, and what they cost is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onmt_entmax.search.expansion import Ints


@dataclass(frozen=True)
class Constraints:
    """Which strings are asked for; names are OpenNMT-py's where it has the option.

    Positions of a forced target prefix are exempt from all of these.

    Raises:
        ValueError: if a number is negative.
    """

    min_length: int = 0
    """Shortest string, without its end symbol."""
    block_ngram_repeat: int = 0
    """No string may contain the same n tokens in a row twice; 0 allows it."""
    ignore_when_blocking: frozenset[int] = frozenset()
    """An n-gram with one of these token ids may repeat."""
    banned: frozenset[int] = frozenset()
    """Token ids that no string may contain (`-ban_unk_token`: that of `<unk>`)."""

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
        """The tokens that may not follow each row.

        Args:
            never: ids that no string contains, whatever the request.
            eos: id of the end symbol.
            lengths: (rows,) tokens of each row's prefix.
            history: gives the prefix of a row; only asked where n-grams are blocked.

        Returns:
            Pairs of a row and a token, as two arrays (pairs,), each pair once, rows ascending
            within each kind of request.
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
        """The tokens that would make an n-gram of the prefix occur twice."""
        n = self.block_ngram_repeat
        last = prefix[len(prefix) - n + 1 :] if n > 1 else ()
        if len(last) < n - 1 or self.ignore_when_blocking & set(last):
            return set()
        ngrams = (prefix[i : i + n] for i in range(len(prefix) - n + 1))
        return {gram[-1] for gram in ngrams if gram[:-1] == last} - self.ignore_when_blocking


def check_tokens(tokens: Iterable[int], vocabulary_size: int) -> None:
    """Refuse ids of no token; a negative one would be taken for one of the last.

    Raises:
        ValueError: there is one.
    """
    for token in tokens:
        if not 0 <= token < vocabulary_size:
            raise ValueError(f"token {token} is not in the vocabulary of {vocabulary_size} tokens")


def check_prefixes(
    prefixes: Sequence[Sequence[int]], sentences: int, vocabulary_size: int, eos: int
) -> None:
    """Refuse prefixes that no string starts with.

    Raises:
        ValueError: they are not as many as sentences, or one has a token that is not in the
            vocabulary, or goes on after the end.
    """
    if len(prefixes) != sentences:
        raise ValueError(f"{len(prefixes)} prefixes for {sentences} sentences")
    for prefix in prefixes:
        check_tokens(prefix, vocabulary_size)
        if eos in prefix:
            raise ValueError("a prefix has the end symbol in it, and no string goes on after that")


def force(
    row: Ints, token: Ints, forced: Mapping[int, int], vocabulary_size: int
) -> tuple[Ints, Ints]:
    """Rule out every token but one at forced positions, and nothing else there.

    Args:
        row: (pairs,) of a row and
        token: (pairs,) a token that may not follow it.
        forced: rows at a forced position, ascending, with the token to come.
        vocabulary_size: number of tokens.

    Returns:
        Such pairs again.
    """
    rows = np.array(list(forced), dtype=np.int64)
    others = np.ones((len(rows), vocabulary_size), dtype=bool)
    others[np.arange(len(rows)), np.array(list(forced.values()), dtype=np.int64)] = False
    place, other = np.nonzero(others)
    free = ~np.isin(row, rows)
    return np.concatenate([row[free], rows[place]]), np.concatenate([token[free], other])
