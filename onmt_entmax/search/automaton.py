"""Finite automata over tokens: they follow a prefix and tell whether its outputs match.

Two states of a minimal automaton decide. From `VIOLATED` no continuation can match the expression,
so a search excludes such prefixes without losing a match. From `SATISFIED` every continuation
matches, so such a prefix adds its whole probability to that of matching.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from onmt_entmax.nn.support import Distribution, Support
from onmt_entmax.search.arrays import Flags, Ints

VIOLATED, SATISFIED = 0, 1
"""The states that decide. They come before all others, so `state <= SATISFIED` tells whether a
state decides."""


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

    def deciding_columns(self, state: int) -> Flags:
        """Return which columns `(columns,)` lead from a state to `VIOLATED` or `SATISFIED`."""
        return self.table[state] <= SATISFIED

    def advancing_columns(self, state: int) -> Flags:
        """Return which columns `(columns,)` lead from a state nearer to one that accepts."""
        return self.distance[self.table[state]] < self.distance[state]

    def tokens_in(self, columns: Flags, vocabulary_size: int) -> Ints:
        """Return the ids `(tokens,)` of the tokens in some of the columns `(columns,)`."""
        is_chosen = np.full(vocabulary_size, columns[-1])
        is_chosen[self.named] = columns[:-1]
        return np.flatnonzero(is_chosen)


class RowAutomata:
    """The automata of the active sentences, applied to rows: prefixes of these sentences.

    In all methods, `sentence` `(rows,)` is the index of each row's sentence, and `state` `(rows,)`
    the state of its automaton. Rows without an automaton have state 0. It means nothing there,
    though `VIOLATED` is 0, too.

    Args:
        automata: the automaton of each sentence, which others may share; None without one.
        vocabulary_size: number of tokens.
    """

    def __init__(self, automata: Sequence[Automaton | None], vocabulary_size: int) -> None:
        present = (automaton for automaton in automata if automaton is not None)
        self._distinct = list(dict.fromkeys(present))
        index_of = {automaton: index for index, automaton in enumerate(self._distinct)}
        self._of_sentence = np.array(
            [-1 if automaton is None else index_of[automaton] for automaton in automata],
            dtype=np.int64,
        )
        """`(sentences,)` index in `_distinct`; -1 without an automaton"""
        self._vocabulary_size = vocabulary_size

    def __bool__(self) -> bool:
        return bool(self._distinct)

    def _groups(self, sentence: Ints) -> Iterator[tuple[Automaton, Ints]]:
        """Yield each automaton with the indices of its rows."""
        of_row = self._of_sentence[sentence]
        for index, automaton in enumerate(self._distinct):
            yield automaton, np.flatnonzero(of_row == index)

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
        """Return the tokens that decide whether a row's outputs satisfy their automaton.

        Rows in `SATISFIED` are decided already and have no such tokens; no row is in `VIOLATED`.

        Args:
            sentence: `(rows,)`.
            state: `(rows,)`.
            distribution: the distributions of the rows. If these are supports, only their tokens
                are returned; otherwise tokens of probability 0 may be among those returned.

        Returns:
            Pairs of a row and a token, as two arrays `(pairs,)`; and `(pairs,)` whether the token
            makes the row's automaton satisfied, not violated.
        """
        if isinstance(distribution, Support):
            row, token = distribution.row.numpy(), distribution.token.numpy()
        else:
            row, token = self._chosen_tokens(sentence, state, Automaton.deciding_columns)
        after = self.step(sentence[row], state[row], token)
        has_automaton = self._of_sentence[sentence] >= 0
        undecided = has_automaton & (state != SATISFIED)
        decided = (after <= SATISFIED) & undecided[row]
        return row[decided], token[decided], after[decided] == SATISFIED

    def advancing(self, sentence: Ints, state: Ints) -> tuple[Ints, Ints]:
        """Return pairs of a row and a token that brings it nearer to acceptance, as two arrays."""
        return self._chosen_tokens(sentence, state, Automaton.advancing_columns)

    def _chosen_tokens(
        self, sentence: Ints, state: Ints, choose: Callable[[Automaton, int], Flags]
    ) -> tuple[Ints, Ints]:
        """Return pairs of a row and a token, chosen by the row's state.

        Rows in `SATISFIED` have no pairs.

        Args:
            sentence: `(rows,)`.
            state: `(rows,)`.
            choose: returns the columns of an automaton whose tokens are paired with every row in a
                state.

        Returns:
            Rows and tokens, `(pairs,)` each.
        """
        pairs = [np.empty((2, 0), dtype=np.int64)]
        for automaton, group in self._groups(sentence):
            for group_state in np.unique(state[group]).tolist():
                if group_state == SATISFIED:
                    continue
                columns = choose(automaton, group_state)
                tokens = automaton.tokens_in(columns, self._vocabulary_size)
                rows = group[state[group] == group_state]
                pairs.append(_every_pair(rows, tokens))
        row, token = np.concatenate(pairs, axis=1)
        return row, token


def _every_pair(rows: Ints, tokens: Ints) -> Ints:
    """Return each of some rows with each of some tokens: `(2, pairs)`, rows and then tokens."""
    return np.stack([np.repeat(rows, len(tokens)), np.tile(tokens, len(rows))])
