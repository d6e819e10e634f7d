"""The prefixes that a search visits, and the strings that it finishes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.search.certificate import Hypothesis
from onmt_entmax.search.expansion import Ints
from onmt_entmax.search.prefixes import PrefixTree


class Finished(NamedTuple):
    """A finished hypothesis before anyone asks for its tokens."""

    score: float
    log_prob: float
    node: int
    attention: Tensor | None  # of the end symbol, where asked for


class Strings:
    """Prefixes as nodes of a tree, with their attention, and the finished strings by sentence."""

    def __init__(self) -> None:
        self._tree = PrefixTree()
        self._attention: list[Tensor] = []  # (source length,) of every node, where asked for
        self._finished: dict[int, list[Finished]] = {}
        self._most_nodes = 1 << 16  # before dead ones are looked for

    def open(self, numbers: Sequence[int]) -> None:
        """Get ready for the strings of some sentences."""
        self._finished.update((number, []) for number in numbers)

    def close(self, number: int) -> None:
        """Forget the finished strings of a sentence."""
        del self._finished[number]

    def grow(self, parents: Ints, tokens: Ints, attention: Sequence[Tensor] | None) -> Ints:
        """Append one token to each parent.

        Args:
            parents: (n,) nodes.
            tokens: (n,) ids.
            attention: n times (source length,), of the steps that gave the tokens; or None.

        Returns:
            The (n,) new nodes.
        """
        if attention is not None:
            self._attention.extend(attention)
        return self._tree.add(parents, tokens)

    def finish(self, number: int, string: Finished) -> None:
        """Enter a finished string of a sentence."""
        self._finished[number].append(string)

    def of(self, number: int) -> list[Finished]:
        """The finished strings of a sentence, in the order they were found."""
        return self._finished[number]

    def tokens(self, node: int) -> tuple[int, ...]:
        """The token ids of a prefix."""
        return self._tree.tokens(node)

    def attention(self, node: int, last: Tensor | None) -> Tensor | None:
        """Attention over the steps of a string: those of its tokens, then `last`, of its end.

        Returns:
            (steps, source length), or None where it was not asked for.
        """
        steps = [self._attention[i] for i in self._tree.path(node)] if self._attention else []
        if last is not None:
            steps.append(last)
        return torch.stack(steps) if steps else None

    def hypothesis(self, string: Finished) -> Hypothesis:
        """A finished string written out."""
        return Hypothesis(
            self.tokens(string.node),
            string.log_prob,
            string.score,
            self.attention(string.node, string.attention),
        )

    def best(self, number: int, count: int) -> tuple[Hypothesis, ...]:
        """The best finished strings of a sentence, best first; all of them for a count of 0."""
        ranked = sorted(self._finished[number], key=lambda s: (-s.score, -s.log_prob))
        return tuple(self.hypothesis(string) for string in ranked[: count or None])

    def forget(self, live: Ints) -> Ints:
        """Drop nodes that are on no path to a live or finished one, once they may be many.

        Args:
            live: (rows,) nodes of the live prefixes.

        Returns:
            The (rows,) nodes under their new numbers.
        """
        if len(self._tree) < self._most_nodes:
            return live
        ends = [string.node for found in self._finished.values() for string in found]
        moved = self._tree.keep(np.concatenate([live, np.array(ends, dtype=np.int64)]))
        if self._attention:
            kept = zip(self._attention, moved[:-1].tolist(), strict=True)
            self._attention = [row for row, place in kept if place >= 0]
        for number, found in self._finished.items():
            self._finished[number] = [s._replace(node=int(moved[s.node])) for s in found]
        self._most_nodes = max(self._most_nodes, 2 * len(self._tree))
        return moved[live]
