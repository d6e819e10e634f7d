"""Nondeterministic automata of regular expressions over tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onmt_entmax.search.expression import Concatenation, NoneOf, OneOf, Regular, Star, Union


class Nfa:
    """A nondeterministic automaton with empty moves (Thompson's construction).

    A state either reads a token of certain columns and goes to one state, or it reads nothing and
    has empty moves.

    Args:
        expression: a regular expression.
        column: the column of each named token.
        columns: number of columns; the last one is for tokens that are not named.

    Attributes:
        reads: for each state, the columns of the tokens that it reads.
        follower: for each state, the state to which it goes after reading.
        start: the first state.
        end: the only state that accepts.
        anything: a state from which every output is accepted. All `.*` at the end of the expression
            share it. Otherwise the subsets of states for `.* a .* | .* b .* | ...` would
            distinguish which of the alternatives has been found, which does not matter.
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
        """Add an expression; return the state from which its outputs lead to `end`."""
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
        """Add a part that may repeat; return the state before and after each repetition."""
        again = self._add([end])
        self._empty_moves[again].append(self._build(part, again))
        return again

    def _columns(self, tokens: frozenset[str]) -> frozenset[int]:
        """Return the columns of tokens, without tokens that no output has."""
        return frozenset(self._column[token] for token in tokens if token in self._column)

    def closure(self, state: int) -> frozenset[int]:
        """Return the states that empty moves reach from a state, itself included."""
        if state not in self._closures:
            reached, waiting = {state}, [state]
            while waiting:
                new = set(self._empty_moves[waiting.pop()]) - reached
                reached |= new
                waiting += new
            self._closures[state] = frozenset(reached)
        return self._closures[state]
