"""The prefixes that a search has visited, as a tree, and the hypotheses that it has finished."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.search.certificate import Hypothesis
from onmt_entmax.search.expansion import Ints


class PrefixTree:
    """All prefixes visited, as arrays: a node is a token and its parent; -1 is the empty prefix."""

    def __init__(self) -> None:
        self._parent = np.empty(1024, dtype=np.int64)
        self._token = np.empty(1024, dtype=np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, parents: Ints, tokens: Ints) -> Ints:
        """Append a token to each parent (-1: the empty prefix); return the new nodes in order.

        All three are `(n,)`.
        """
        end = self._size + len(parents)
        if end > len(self._parent):
            capacity = max(end, 2 * len(self._parent))
            self._parent = np.resize(self._parent, capacity)
            self._token = np.resize(self._token, capacity)
        self._parent[self._size : end] = parents
        self._token[self._size : end] = tokens
        nodes = np.arange(self._size, end)
        self._size = end
        return nodes

    def path(self, node: int) -> list[int]:
        """Return the nodes from the first token to `node`."""
        nodes = []
        while node >= 0:
            nodes.append(node)
            node = int(self._parent[node])
        return nodes[::-1]

    def tokens(self, node: int) -> tuple[int, ...]:
        """Return the token ids of a prefix."""
        return tuple(self._token[self.path(node)].tolist())

    def keep(self, live: Sequence[int] | Ints) -> Ints:
        """Delete every node that is on no path to a `live` one.

        Returns:
            The new number of each old node, -1 if deleted; the last entry maps -1 to -1.
        """
        wanted = np.zeros(self._size + 1, dtype=bool)  # the last place stands for -1
        nodes = np.unique(np.asarray(live, dtype=np.int64))
        while len(nodes):
            nodes = nodes[~wanted[nodes]]
            wanted[nodes] = True
            nodes = np.unique(self._parent[nodes[nodes >= 0]])
        wanted[-1] = False
        moved = np.full(self._size + 1, -1, dtype=np.int64)
        count = int(wanted.sum())
        moved[wanted] = np.arange(count)
        kept = np.flatnonzero(wanted)
        self._token[:count] = self._token[kept]
        self._parent[:count] = moved[self._parent[kept]]
        self._size = count
        return moved


class Finished(NamedTuple):
    """A finished hypothesis as a node of the tree."""

    score: float
    log_prob: float
    node: int
    attention: Tensor | None  # (source length,) of the end symbol, where the stepper returns it


class Hypotheses:
    """The tree of prefixes with their attention, and each sentence's finished hypotheses."""

    def __init__(self) -> None:
        self._tree = PrefixTree()
        self._attention: list[Tensor] = []  # (source length,) of every node, where there is any
        self._finished: dict[int, list[Finished]] = {}
        self._compact_at = 1 << 16  # nodes from which dead ones are deleted

    def open(self, numbers: Sequence[int]) -> None:
        """Start the list of finished hypotheses of some sentences."""
        self._finished.update((number, []) for number in numbers)

    def close(self, number: int) -> None:
        """Delete the finished hypotheses of a sentence."""
        del self._finished[number]

    def grow(self, parents: Ints, tokens: Ints, attention: Sequence[Tensor] | None) -> Ints:
        """Append one token to each parent.

        Args:
            parents: `(n,)` nodes.
            tokens: `(n,)` ids.
            attention: n tensors `(source length,)` of the steps that gave the tokens, or None.

        Returns:
            The new nodes `(n,)`.
        """
        if attention is not None:
            self._attention.extend(attention)
        return self._tree.add(parents, tokens)

    def finish(self, number: int, finished: Finished) -> None:
        """Add a finished hypothesis of a sentence."""
        self._finished[number].append(finished)

    def of(self, number: int) -> list[Finished]:
        """Return the finished hypotheses of a sentence in the order they were found."""
        return self._finished[number]

    def tokens(self, node: int) -> tuple[int, ...]:
        """Return the token ids of a prefix."""
        return self._tree.tokens(node)

    def attention(self, node: int, last: Tensor | None) -> Tensor | None:
        """Return the attention along a prefix, then `last`, that of the end symbol.

        Returns:
            `(steps, source length)`, or None without attention.
        """
        steps = [self._attention[i] for i in self._tree.path(node)] if self._attention else []
        if last is not None:
            steps.append(last)
        return torch.stack(steps) if steps else None

    def hypothesis(self, finished: Finished) -> Hypothesis:
        """Return a finished hypothesis with its tokens."""
        return Hypothesis(
            self.tokens(finished.node),
            finished.log_prob,
            finished.score,
            self.attention(finished.node, finished.attention),
        )

    def best(self, number: int, count: int) -> tuple[Hypothesis, ...]:
        """Return a sentence's best finished hypotheses, best first; all of them for a count of 0.

        At equal scores, as where penalties are infinite, the more probable one is first.
        """
        ranked = sorted(self._finished[number], key=lambda each: (-each.score, -each.log_prob))
        return tuple(self.hypothesis(each) for each in ranked[: count or None])

    def compact(self, live: Ints) -> Ints:
        """Delete nodes on no path to a live or finished one, once the tree is large.

        Returns the nodes of the live prefixes `(rows,)` under their new numbers.
        """
        if len(self._tree) < self._compact_at:
            return live
        ends = [each.node for found in self._finished.values() for each in found]
        moved = self._tree.keep(np.concatenate([live, np.array(ends, dtype=np.int64)]))
        if self._attention:
            kept = zip(self._attention, moved[:-1].tolist(), strict=True)
            self._attention = [row for row, place in kept if place >= 0]
        for number, found in self._finished.items():
            self._finished[number] = [each._replace(node=int(moved[each.node])) for each in found]
        self._compact_at = max(self._compact_at, 2 * len(self._tree))
        return moved[live]
