"""Finite automata over tokens: they follow a prefix and say what its continuations can still be.

In a minimal automaton, all prefixes that no output continues as the expression wants end in one
state, and all prefixes that every output continues so in another: a search prunes the first with
proof, and knows the second's probability without following them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from onmt_entmax.nn.support import Distribution, Support
from onmt_entmax.search.arrays import Flags, Ints

VIOLATED, SATISFIED = 0, 1
"""The states after which no output satisfies the expression, or every output does: of all states,
those that decide, so `state <= SATISFIED` asks whether one does."""


@dataclass(frozen=True, eq=False)
class Automaton:
    """A minimal deterministic finite automaton.

    The end symbol leads to `SATISFIED` from the states that accept, and to `VIOLATED` from others.
    """

    named: Ints
    """`(columns - 1,)` token ids that the expression names, and the end symbol, ascending"""
    table: Ints
    """`(states, columns)` next state for each of `named`; the last column is for other tokens"""
    start: int
    distance: Ints
    """`(states,)` fewest tokens until the automaton accepts; the number of states if it never
    does"""

    def step(self, states: Ints, tokens: Ints) -> Ints:
        """Return the next states `(n,)` after these states and token ids."""
        column = np.searchsorted(self.named, tokens)
        is_named = np.append(self.named, -1)[column] == tokens
        return self.table[states, np.where(is_named, column, len(self.named))]


class RowAutomata:
    """The automata of the active sentences, applied to rows: prefixes of these sentences.

    Everywhere `sentence` `(rows,)` is the index of each row's sentence, and `state` `(rows,)` the
    state of its automaton, 0 without one.

    Args:
        automata: of the sentences, which may share one; None without one.
        vocabulary_size: number of tokens.
    """

    def __init__(self, automata: Sequence[Automaton | None], vocabulary_size: int) -> None:
        numbers: dict[Automaton | None, int] = {None: -1}
        for automaton in automata:
            numbers.setdefault(automaton, len(numbers) - 1)
        self._distinct = [automaton for automaton in numbers if automaton is not None]
        self._of_sentence = np.array([numbers[automaton] for automaton in automata], dtype=np.int64)
        """`(sentences,)` index in `_distinct`, or -1"""
        self._vocabulary_size = vocabulary_size

    def __bool__(self) -> bool:
        return bool(self._distinct)

    def _groups(self, sentence: Ints) -> Iterator[tuple[Automaton, Ints]]:
        """Yield each automaton with the indices of its rows."""
        of_row = self._of_sentence[sentence]
        for number, automaton in enumerate(self._distinct):
            yield automaton, np.flatnonzero(of_row == number)

    def step(self, sentence: Ints, state: Ints, token: Ints) -> Ints:
        """Return the states `(rows,)` after each row's next token."""
        after = np.zeros_like(state)
        for automaton, rows in self._groups(sentence):
            after[rows] = automaton.step(state[rows], token[rows])
        return after

    def distance(self, sentence: Ints, state: Ints) -> Ints:
        """Return the fewest tokens `(rows,)` until each row's automaton accepts; 0 without one."""
        fewest = np.zeros_like(state)
        for automaton, rows in self._groups(sentence):
            fewest[rows] = automaton.distance[state[rows]]
        return fewest

    def deciding(
        self, sentence: Ints, state: Ints, distribution: Distribution
    ) -> tuple[Ints, Ints, Flags]:
        """Return the tokens after which it is decided whether an output satisfies its automaton.

        A row whose state is `SATISFIED` has been decided before; none is in `VIOLATED`.

        Args:
            sentence: `(rows,)`.
            state: `(rows,)`.
            distribution: of the rows. Of a support, only its tokens are returned; otherwise tokens
                of probability 0 may be among them.

        Returns:
            Pairs of a row and a token, as two arrays `(pairs,)`, and whether it is satisfied.
        """
        if isinstance(distribution, Support):
            row, token = distribution.row.numpy(), distribution.token.numpy()
        else:
            row, token = self._tokens(sentence, state, _deciding_columns)
        after = self.step(sentence[row], state[row], token)
        undecided = (self._of_sentence[sentence] >= 0) & (state != SATISFIED)
        decided = (after <= SATISFIED) & undecided[row]
        return row[decided], token[decided], after[decided] == SATISFIED

    def advancing(self, sentence: Ints, state: Ints) -> tuple[Ints, Ints]:
        """Return pairs of a row and a token that brings it nearer to what its automaton accepts."""
        return self._tokens(sentence, state, _advancing_columns)

    def _tokens(
        self, sentence: Ints, state: Ints, choose: Callable[[Automaton, int], Flags]
    ) -> tuple[Ints, Ints]:
        """Return pairs of a row that is not decided and a token.

        Args:
            sentence: `(rows,)`.
            state: `(rows,)`.
            choose: flags the columns of an automaton's state, whose tokens are returned for all
                rows in that state.
        """
        rows, tokens = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for automaton, group in self._groups(sentence):
            for number in np.unique(state[group]).tolist():
                if number == SATISFIED:
                    continue
                columns = choose(automaton, number)
                is_chosen = np.full(self._vocabulary_size, columns[-1])
                is_chosen[automaton.named] = columns[:-1]
                chosen, in_state = np.flatnonzero(is_chosen), group[state[group] == number]
                rows.append(np.repeat(in_state, len(chosen)))
                tokens.append(np.tile(chosen, len(in_state)))
        return np.concatenate(rows), np.concatenate(tokens)


def _deciding_columns(automaton: Automaton, state: int) -> Flags:
    """Return which columns `(columns,)` lead from a state to `VIOLATED` or `SATISFIED`."""
    return automaton.table[state] <= SATISFIED


def _advancing_columns(automaton: Automaton, state: int) -> Flags:
    """Return which columns `(columns,)` lead from a state nearer to one that accepts."""
    return automaton.distance[automaton.table[state]] < automaton.distance[state]
