"""Compile an expression over tokens into its minimal deterministic automaton.

The steps are those of textbooks (Hopcroft, Motwani and Ullman 2006):

    regular expression    Thompson's construction  ->  Nfa  (nondeterministic.py)
    Nfa                   subset construction      ->  states that can be reached
    intersection          product                  ->  states that can be reached
    these states          Moore's minimisation     ->  the minimal automaton

A regular expression is compiled alone, and minimised, before it becomes a factor of a product,
which keeps products small.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from onmt_entmax.search.arrays import Flags, Ints
from onmt_entmax.search.automaton import SATISFIED, VIOLATED, Automaton
from onmt_entmax.search.expression import (
    Complement,
    Expression,
    ExpressionError,
    Intersection,
    named_tokens,
)
from onmt_entmax.search.nondeterministic import Nfa

_MOST_TRANSITIONS = 200_000  # compiled in less than a second
_DECIDED = 2  # the states VIOLATED and SATISFIED; those that are explored are numbered after them

State = TypeVar("State", bound=Hashable)


def compile_expression(
    expression: Expression, token_id: Callable[[str], int | None], eos: int
) -> Automaton:
    """Return the minimal automaton of an expression.

    Args:
        expression: the outputs that the automaton accepts.
        token_id: returns the id of a token; None if no output has the token.
        eos: id of the end symbol.

    Raises:
        ExpressionError: if the automaton would be too large.
    """
    ids = {token: token_id(token) for token in named_tokens(expression)}
    named = sorted({number for number in ids.values() if number is not None})
    assert eos not in named, "the end symbol is no token of an output"
    column = {token: named.index(number) for token, number in ids.items() if number is not None}
    tokens = _compile(expression, column, len(named) + 1)
    # The end symbol gets a column of its own, in the order of the ids.
    place = int(np.searchsorted(named, eos))
    ends = np.where(tokens.accepts, SATISFIED, VIOLATED)
    return Automaton(
        named=np.insert(np.array(named, dtype=np.int64), place, eos),
        table=np.insert(tokens.table, place, ends, axis=1),
        start=tokens.start,
        distance=tokens.distance(),
    )


@dataclass(frozen=True, eq=False)
class _Dfa:
    """A minimal deterministic automaton; a column for each named token, the last for all others.

    `VIOLATED` and `SATISFIED` are among its states, though perhaps not reached.
    """

    table: Ints
    """`(states, columns)`"""
    accepts: Flags
    """`(states,)`"""
    start: int

    def complement(self) -> _Dfa:
        """Return the automaton that accepts what this one does not."""
        # VIOLATED and SATISFIED change places, so that each keeps its meaning. `swapped` gives both
        # the old number of a new state and the new one of an old state.
        swapped = np.arange(len(self.table))
        swapped[[VIOLATED, SATISFIED]] = SATISFIED, VIOLATED
        return _Dfa(
            table=swapped[self.table[swapped]],
            accepts=~self.accepts[swapped],
            start=int(swapped[self.start]),
        )

    def distance(self) -> Ints:
        """Return the fewest tokens `(states,)` to one that accepts, or the number of states."""
        distance = np.where(self.accepts, 0, len(self.table))
        while True:
            over_next = distance[self.table].min(axis=1) + 1
            if (over_next >= distance).all():
                return distance
            distance = np.minimum(distance, over_next)


def _compile(expression: Expression, column: Mapping[str, int], columns: int) -> _Dfa:
    """Return the minimal deterministic automaton of an expression."""
    match expression:
        case Intersection(parts):
            return _product([_compile(part, column, columns) for part in parts], columns)
        case Complement(part):
            return _compile(part, column, columns).complement()
        case _:
            return _subsets(Nfa(expression, column, columns), columns)


def _product(parts: Sequence[_Dfa], columns: int) -> _Dfa:
    """Return the automaton that accepts what all parts accept (product construction)."""
    if len(parts) == 1:
        return parts[0]
    tables = [part.table.tolist() for part in parts]
    violated = (VIOLATED,) * len(parts)  # one state for all in which any part is violated

    def follow(states: tuple[int, ...]) -> list[tuple[int, ...]]:
        rows = (table[state] for table, state in zip(tables, states, strict=True))
        after = zip(*rows, strict=True)
        return [violated if VIOLATED in states else states for states in after]

    def accepts(states: tuple[int, ...]) -> bool:
        return all(part.accepts[state] for part, state in zip(parts, states, strict=True))

    return _explore(tuple(part.start for part in parts), follow, accepts, columns)


def _subsets(nfa: Nfa, columns: int) -> _Dfa:
    """Return the deterministic automaton of a nondeterministic one (subset construction)."""

    def follow(states: frozenset[int]) -> list[frozenset[int]]:
        after: list[set[int]] = [set() for _ in range(columns)]
        for state in states:
            for column in nfa.reads[state]:
                after[column] |= nfa.closure(nfa.follower[state])
        return list(map(frozenset, after))

    return _explore(nfa.closure(nfa.start), follow, lambda states: nfa.end in states, columns)


def _explore(
    start: State,
    follow: Callable[[State], Sequence[State]],
    accepts: Callable[[State], bool],
    columns: int,
) -> _Dfa:
    """Return the minimal automaton of the states that can be reached from `start`.

    Args:
        start: the first state.
        follow: returns the next state for each column.
        accepts: tells whether a state accepts.
        columns: number of columns.

    Raises:
        ExpressionError: there are too many states.
    """
    numbers = {start: _DECIDED}
    table = [[VIOLATED] * columns, [SATISFIED] * columns]
    accepting = [False, True]
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        followers = follow(state)
        for follower in followers:
            if follower not in numbers:
                numbers[follower] = len(numbers) + _DECIDED
                waiting.append(follower)
        table.append([numbers[follower] for follower in followers])
        accepting.append(accepts(state))
        if len(numbers) * columns > _MOST_TRANSITIONS:
            raise ExpressionError(
                f"needs an automaton of more than {_MOST_TRANSITIONS:,} transitions; ask for "
                "less at once"
            )
    return _minimal(np.array(table), np.array(accepting), numbers[start])


def _minimal(table: Ints, accepts: Flags, start: int) -> _Dfa:
    """Merge states that no continuation tells apart (Moore's algorithm).

    States are told apart first by whether they accept, then by the classes of the states that
    follow, until no more classes are divided.
    """
    classes = accepts.astype(np.int64)
    count = 0  # of classes in the round before
    while True:
        signatures = np.column_stack([classes, classes[table]])
        _, first, classes = np.unique(signatures, axis=0, return_index=True, return_inverse=True)
        classes = classes.reshape(-1)  # NumPy 2.0 has a second dimension here
        if len(first) == count:
            break
        count = len(first)
    # Number the classes in the order of their first states: VIOLATED and SATISFIED stay.
    order = np.argsort(first)
    first_states = first[order]
    number_of_class = np.argsort(order)
    number_of_state = number_of_class[classes]
    return _Dfa(
        table=number_of_state[table[first_states]],
        accepts=accepts[first_states],
        start=int(number_of_state[start]),
    )
