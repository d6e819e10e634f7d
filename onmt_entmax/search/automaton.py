"""Finite automata over tokens: they follow a prefix and say what its continuations can still be.

An expression is compiled by its derivatives (Brzozowski 1964; Owens, Reppy and Turon 2009), which
need no case of their own for "and" and "not". The automaton is then minimised. So all prefixes that
no output continues as the expression wants end in one state, and all prefixes that every output
continues so in another: a search prunes the first with proof, and knows the second's probability
without following them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce

import numpy as np

from onmt_entmax.nn.support import Distribution, Support
from onmt_entmax.search.expansion import Flags, Ints
from onmt_entmax.search.expression import Expression, ExpressionError, named_tokens

VIOLATED, SATISFIED = 0, 1
"""The states after which no output satisfies the expression, or every output does."""

_MOST_TRANSITIONS = 200_000


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
        place = np.searchsorted(self.named, tokens)
        known = np.append(self.named, -1)[place] == tokens
        return self.table[states, np.where(known, place, len(self.named))]


def compile_expression(
    expression: Expression, token_id: Callable[[str], int | None], eos: int
) -> Automaton:
    """Return the minimal automaton of an expression.

    Args:
        expression: which outputs are accepted.
        token_id: the id of a token; None if no output has it.
        eos: id of the end symbol.

    Raises:
        ExpressionError: if the automaton would be too large.
    """
    ids = {token: token_id(token) for token in named_tokens(expression)}
    named = sorted({each for each in ids.values() if each is not None})
    assert eos not in named, "the end symbol is no token of an output"
    column = {token: named.index(each) for token, each in ids.items() if each is not None}
    width = len(named) + 1
    terms = _Terms(column, width)
    try:
        start = terms.of(expression)
        states = {terms.nothing: VIOLATED, terms.everything: SATISFIED}
        states.setdefault(start, len(states))
        rows: list[list[int]] = []
        for term in (order := list(states)):  # grows while it is read
            row = [terms.derivative(term, place) for place in range(width)]
            for each in row:
                if each not in states:
                    states[each] = len(states)
                    order.append(each)
            rows.append([states[each] for each in row])
            if len(states) * width > _MOST_TRANSITIONS:
                raise ExpressionError(
                    f"needs an automaton of more than {_MOST_TRANSITIONS:,} transitions; ask for "
                    "less at once"
                )
    except RecursionError:
        raise ExpressionError("nested too deeply") from None
    accepts = np.array([terms.accepts[term] for term in order])
    place = int(np.searchsorted(named, eos))
    with_end = np.insert(np.array(rows), place, np.where(accepts, SATISFIED, VIOLATED), axis=1)
    table, merged = _minimise(with_end, accepts)
    tokens = np.delete(table, place, axis=1)
    distance = np.where(table[:, place] == SATISFIED, 0, len(table))
    while (nearer := np.minimum(distance, distance[tokens].min(axis=1) + 1)).sum() < distance.sum():
        distance = nearer
    columns = np.insert(np.array(named, dtype=np.int64), place, eos)
    return Automaton(columns, table, int(merged[states[start]]), distance)


def _minimise(table: Ints, accepts: Flags) -> tuple[Ints, Ints]:
    """Merge states that no continuation tells apart (Moore's algorithm).

    Returns:
        The table of the new states, and `(old states,)` the new one of each; the first two stay.
    """
    label = accepts.astype(np.int64)
    while True:
        rows = np.column_stack([label, label[table]])
        _, old, finer = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        finer = finer.reshape(-1)
        if len(old) == label.max() + 1:
            break
        label = finer
    # Number the states in the order of their first members, so that the first two stay.
    order = np.argsort(old)
    merged = np.argsort(order)[finer]
    return merged[table[old[order]]], merged


class _Terms:
    """Expressions over columns, each stored once under a number; equal ones share it.

    Args:
        column: of each token that is named.
        width: number of columns; the last is for tokens that are not named.
    """

    def __init__(self, column: Mapping[str, int], width: int) -> None:
        self._column, self._all = column, frozenset(range(width))
        self._terms: list[tuple[str, tuple[int, ...]]] = []
        self._numbers: dict[tuple[str, tuple[int, ...]], int] = {}
        self.accepts: list[bool] = []
        """Whether each term contains the empty output."""
        self.nothing = self._add("in", (), False)
        self.everything = self._add("not", (self.nothing,), True)
        self._empty = self._add("then", (), True)
        self.derivative = cache(self._derivative)

    def of(self, expression: Expression) -> int:
        """Return the number of an expression."""
        parts = [self.of(part) for part in expression.parts]
        columns = {self._column[token] for token in expression.tokens if token in self._column}
        match expression.kind:
            case "in":
                return self._add("in", tuple(sorted(columns)), False)
            case "not in":
                return self._add("in", tuple(sorted(self._all - columns)), False)
            case "then":
                return reduce(lambda whole, part: self._then(part, whole), parts[::-1], self._empty)
            case "or":
                return self._or(set(parts))
            case "and":
                return self._not(self._or(set(map(self._not, parts))))
            case "not":
                return self._not(parts[0])
            case "star":
                return self._star(parts[0])

    def _derivative(self, number: int, column: int) -> int:
        """Return what may follow once a term has begun with a token of a column."""
        kind, parts = self._terms[number]
        if kind == "in":
            return self._empty if column in parts else self.nothing
        if kind == "not":
            return self._not(self.derivative(parts[0], column))
        if kind == "or":
            return self._or({self.derivative(part, column) for part in parts})
        if kind == "star":
            return self._then(self.derivative(parts[0], column), number)
        if not parts:
            return self.nothing
        first, rest = parts
        after = self._then(self.derivative(first, column), rest)
        return self._or({after, self.derivative(rest, column)}) if self.accepts[first] else after

    def _add(self, kind: str, parts: tuple[int, ...], accepts: bool) -> int:
        number = self._numbers.setdefault((kind, parts), len(self._terms))
        if number == len(self._terms):
            self._terms.append((kind, parts))
            self.accepts.append(accepts)
        return number

    def _then(self, first: int, rest: int) -> int:
        if self.nothing in (first, rest):
            return self.nothing
        if first == self._empty or first == rest == self.everything:
            return rest
        if rest == self._empty:
            return first
        kind, parts = self._terms[first]
        if kind == "then":
            return self._then(parts[0], self._then(parts[1], rest))
        return self._add("then", (first, rest), self.accepts[first] and self.accepts[rest])

    def _or(self, parts: set[int]) -> int:
        flat: set[int] = set()
        for part in parts:
            kind, inner = self._terms[part]
            flat |= set(inner) if kind == "or" else {part}
        flat.discard(self.nothing)
        if self.everything in flat:
            return self.everything
        if len(flat) < 2:
            return next(iter(flat), self.nothing)
        return self._add("or", tuple(sorted(flat)), any(self.accepts[part] for part in flat))

    def _not(self, part: int) -> int:
        kind, parts = self._terms[part]
        return parts[0] if kind == "not" else self._add("not", (part,), not self.accepts[part])

    def _star(self, part: int) -> int:
        kind, parts = self._terms[part]
        if part in (self.nothing, self._empty):
            return self._empty
        if kind == "star" or part == self.everything:
            return part
        if kind == "in" and len(parts) == len(self._all):
            return self.everything
        return self._add("star", (part,), True)


class RowAutomata:
    """The automata of the active sentences, applied to rows: prefixes of these sentences.

    Everywhere `sentence` `(rows,)` is the place of each row's sentence, and `state` `(rows,)` that
    of its automaton, 0 without one.

    Args:
        automata: of the sentences; None without one.
        vocabulary_size: number of tokens.
    """

    def __init__(self, automata: Sequence[Automaton | None], vocabulary_size: int) -> None:
        self._different = list({id(each): each for each in automata if each is not None}.values())
        self._ids = np.array([id(each) for each in automata], dtype=np.int64)
        self._vocabulary_size = vocabulary_size

    def __bool__(self) -> bool:
        return bool(self._different)

    def _parts(self, sentence: Ints) -> Iterator[tuple[Automaton, Ints]]:
        """Yield each automaton with its rows."""
        for automaton in self._different:
            yield automaton, np.flatnonzero(self._ids[sentence] == id(automaton))

    def step(self, sentence: Ints, state: Ints, token: Ints) -> Ints:
        """Return the states `(rows,)` after each row's next token."""
        after = np.zeros_like(state)
        for automaton, part in self._parts(sentence):
            after[part] = automaton.step(state[part], token[part])
        return after

    def distance(self, sentence: Ints, state: Ints) -> Ints:
        """Return the fewest tokens `(rows,)` until each row's automaton accepts; 0 without one."""
        fewest = np.zeros_like(state)
        for automaton, part in self._parts(sentence):
            fewest[part] = automaton.distance[state[part]]
        return fewest

    def deciding(
        self, sentence: Ints, state: Ints, distribution: Distribution
    ) -> tuple[Ints, Ints, Flags]:
        """Return the tokens after which it is decided whether an output satisfies its automaton.

        Args:
            sentence: see above.
            state: see above; a row in `SATISFIED` has been decided.
            distribution: of the rows; a token without a probability may be among the result.

        Returns:
            Pairs of a row and a token, as two arrays `(pairs,)`, and whether it is satisfied.
        """
        if isinstance(distribution, Support):
            row, token = distribution.row.numpy(), distribution.token.numpy()
        else:
            row, token = self._tokens(sentence, state, lambda own, each: own.table[each] < 2)
        after = self.step(sentence[row], state[row], token)
        constrained = np.isin(self._ids[sentence], [id(each) for each in self._different])
        decided = (after <= SATISFIED) & (constrained & (state != SATISFIED))[row]
        return row[decided], token[decided], after[decided] == SATISFIED

    def advancing(self, sentence: Ints, state: Ints) -> tuple[Ints, Ints]:
        """Return pairs of a row and a token that brings it nearer to what its automaton accepts."""
        return self._tokens(
            sentence, state, lambda own, each: own.distance[own.table[each]] < own.distance[each]
        )

    def _tokens(
        self, sentence: Ints, state: Ints, wanted: Callable[[Automaton, int], Flags]
    ) -> tuple[Ints, Ints]:
        """Return pairs of a row and a token, given the `wanted` columns of an automaton's state."""
        rows, tokens = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for automaton, part in self._parts(sentence):
            for each in np.unique(state[part]).tolist():
                if each != SATISFIED:
                    columns = wanted(automaton, each)
                    flags = np.full(self._vocabulary_size, columns[-1])
                    flags[automaton.named] = columns[:-1]
                    same, found = part[state[part] == each], np.flatnonzero(flags)
                    rows.append(np.repeat(same, len(found)))
                    tokens.append(np.tile(found, len(same)))
        return np.concatenate(rows), np.concatenate(tokens)
