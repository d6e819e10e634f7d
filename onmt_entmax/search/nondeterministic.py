"""Nondeterministic automata of regular expressions over tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onmt_entmax.search.expression import Concatenation, NoneOf, OneOf, Regular, Star, Union


class Nfa:
    """A nondeterministic automaton with empty moves (Thompson's construction).

    A state either reads a token of certain columns and goes to one state, or reads nothing.

    Args:
        expression: a regular expression.
        column: the column of each token that is named.
        columns: their number; the last is for tokens that are not named.

    Attributes:
        reads: columns of the tokens that each state reads.
        follower: the state to which each goes then.
        start: the first state.
        end: the only state that accepts.
        anything: the state from which every output is accepted. Every `.*` at the end is this one;
            else subsets would tell which alternatives of `.* a .* | .* b .* | ...` were found.
    """

    def __init__(self, expression: Regular, column: Mapping[str, int], columns: int) -> None:
        self._column, self._all = column, frozenset(range(columns))
        self.reads: list[frozenset[int]] = []
        self.follower: list[int] = []
        self._empty_moves: list[list[int]] = []
        self._closures: dict[int, frozenset[int]] = {}
        self.end = self._add()
        self.anything = self._repeat(NoneOf(), self.end)
        self.start = self._build(expression, self.end)

    def _add(
        self,
        empty_moves: Iterable[int] = (),
        reads: frozenset[int] = frozenset(),
        follower: int = -1,
    ) -> int:
        """Add a state; return its number."""
        self._empty_moves.append([*empty_moves])
        self.reads.append(reads)
        self.follower.append(follower)
        return len(self.reads) - 1

    def _build(self, expression: Regular, end: int) -> int:
        """Add an expression; return the state from which what it describes leads to `end`."""
        match expression:
            case OneOf(tokens):
                return self._add(reads=self._columns(tokens), follower=end)
            case NoneOf(tokens):
                return self._add(reads=self._all - self._columns(tokens), follower=end)
            case Concatenation(parts):
                for part in reversed(parts):
                    end = self._build(part, end)
                return end
            case Union(parts):
                return self._add(self._build(part, end) for part in parts)
            case Star(NoneOf(tokens)) if end == self.end and not self._columns(tokens):
                return self.anything
            case Star(part):
                return self._repeat(part, end)

    def _repeat(self, part: Regular, end: int) -> int:
        """Add a part that may repeat; return the state before and after each of its turns."""
        again = self._add([end])
        self._empty_moves[again].append(self._build(part, again))
        return again

    def _columns(self, tokens: frozenset[str]) -> frozenset[int]:
        """Return the columns of tokens; those that no output has are left out."""
        return frozenset(self._column[token] for token in tokens if token in self._column)

    def closure(self, state: int) -> frozenset[int]:
        """Return what empty moves reach from a state, itself included."""
        if state not in self._closures:
            reached, waiting = {state}, [state]
            while waiting:
                new = set(self._empty_moves[waiting.pop()]) - reached
                reached |= new
                waiting += new
            self._closures[state] = frozenset(reached)
        return self._closures[state]
