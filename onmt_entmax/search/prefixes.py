"""The tree of prefixes that a search has visited, as arrays: a node is a token and the node before
it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class PrefixTree:
    """Nodes are numbered in the order they were added; -1 is the empty prefix."""

    def __init__(self) -> None:
        self._parent = np.empty(1024, dtype=np.int64)
        self._token = np.empty(1024, dtype=np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, parents: Ints, tokens: Ints) -> Ints:
        """Append one token to each parent.

        Args:
            parents: (n,) nodes, -1 for the empty prefix.
            tokens: (n,) token ids.

        Returns:
            The (n,) new nodes.
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
        """The nodes from the first token to `node`."""
        nodes = []
        while node >= 0:
            nodes.append(node)
            node = int(self._parent[node])
        return nodes[::-1]

    def tokens(self, node: int) -> tuple[int, ...]:
        """The token ids of a prefix."""
        return tuple(self._token[self.path(node)].tolist())

    def keep(self, live: Sequence[int] | Ints) -> Ints:
        """Forget every node that is on no path to a `live` one.

        Returns:
            An array that maps old node numbers to new ones; its last entry maps -1 to -1.
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
