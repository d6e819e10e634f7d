"""The books of a search: for each sentence what was finished, dropped, cut and excluded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from onmt_entmax.search.certificate import Certificate, Hypothesis, Level
from onmt_entmax.search.expansion import Floats, Ints, largest_within, rank_within

# The tree of prefixes that a search has visited, as arrays: a node is a token and the node before
# it.


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


# The prefixes that a search visits, and the strings that it finishes.


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


class Ledger:
    """One line of books per sentence in flight, as arrays over the sentences.

    Args:
        sentences: how many lines.
        ranks: of how many finished hypotheses the scores are kept in `top`.
        beam: how many live prefixes a sentence may have.
    """

    def __init__(self, sentences: int, ranks: int, beam: int = 1) -> None:
        dtype = [
            ("beam", "i8"),  # how many live prefixes the sentence may have
            ("may_narrow", "?"),  # whether that becomes one when there are more
            ("length", "i8"),  # tokens of the live prefixes
            ("finished", "i8"),  # size of F
            ("mass", "f8"),  # sum of the probabilities of F
            ("top", "f8", (ranks,)),  # the best scores of F, best first
            ("bound", "f8"),  # the largest log-probability in D
            ("dropped", "i8"),
            ("truncated", "i8"),
            ("excluded", "f8"),
            ("excluded_bound", "f8"),
            ("strict", "?"),
            ("rows", "i8"),
            ("support", "i8"),
        ]
        self.lines = np.zeros(sentences, dtype=dtype)
        for name in ("top", "bound", "excluded_bound"):
            self.lines[name] = -np.inf
        self.lines["strict"] = True
        self.lines["beam"] = beam

    def __len__(self) -> int:
        return len(self.lines)

    def select(self, wanted: NDArray[np.bool_]) -> None:
        """Keep the wanted lines only."""
        self.lines = self.lines[wanted]

    def append(self, other: Ledger) -> None:
        """Add the lines of another ledger at the end."""
        self.lines = np.concatenate([self.lines, other.lines])

    def count(self, name: str, sentence: Ints, amount: NDArray[np.generic] | None = None) -> None:
        """Add an amount (default 1) to a column, for each entry of `sentence`."""
        added = np.bincount(sentence, weights=amount, minlength=len(self))
        self.lines[name] += added.astype(self.lines[name].dtype)

    def raise_bound(self, name: str, sentence: Ints, log_prob: Floats) -> None:
        """Raise a bound to the largest of the log-probabilities given for a sentence."""
        largest = largest_within(sentence, log_prob, len(self))
        self.lines[name] = np.maximum(self.lines[name], largest)

    def finish(self, sentence: Ints, log_prob: Floats, score: Floats) -> None:
        """Add finished hypotheses (n,) to F."""
        self.count("finished", sentence)
        self.count("mass", sentence, np.exp(log_prob))
        top = self.lines["top"]
        ranks = top.shape[1]
        if ranks == 1:
            np.maximum.at(top[:, 0], sentence, score)
            return
        order, rank = rank_within(sentence, score)
        order, rank = order[rank < ranks], rank[rank < ranks]
        new = np.full_like(top, -np.inf)
        new[sentence[order], rank] = score[order]
        self.lines["top"] = -np.sort(-np.concatenate([top, new], axis=1), axis=1)[:, :ranks]

    def certify(
        self, line: int, scores: list[float], limit: Callable[[float], float]
    ) -> Certificate:
        """The certificate of one sentence.

        Args:
            line: the sentence's.
            scores: of the returned hypotheses, best first.
            limit: maps a prefix's log-probability to the best score that a string starting with it
                can have; the identity where strings are ranked by probability.
        """
        books = self.lines[line]
        bound, cut = float(books["bound"]), int(books["truncated"])
        complete = int(books["dropped"]) + cut == 0
        best_unseen = -np.inf if complete else limit(bound)
        proven = sum(score >= best_unseen for score in scores)
        level: Level = "exhaustive" if complete else "optimal" if proven > 0 else "none"
        best = scores[0] if scores else -np.inf
        return Certificate(
            level=level,
            log_bound=bound,
            gap=np.inf if complete else float(best - best_unseen),
            proven=proven,
            mass=float(books["mass"]),
            dropped=int(books["dropped"]),
            truncated=cut,
            excluded=float(books["excluded"]),
            log_excluded_bound=float(books["excluded_bound"]),
            strict=complete and bool(books["strict"]),
        )
