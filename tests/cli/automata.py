"""An independent reader of automata in AT&T's format, as of foma and HFST."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Key = tuple[str, str, str]  # lemma, tags and form

_SYMBOLS = {"@0@": "", "@_SPACE_@": " "}  # epsilon and space, by their names in this format


class Arc(NamedTuple):
    """A transition to another state."""

    target: int
    upper: str
    """What it reads of the query, a lemma and tags."""
    lower: str
    """What it writes of the form."""
    cost: float
    """The negative log-probability."""


def read_arcs(lines: Iterable[str]) -> dict[int, list[Arc]]:
    """Return the arcs of each state, from lines of source, target, symbols and maybe a cost."""
    arcs = defaultdict(list)
    for line in lines:
        source, target, upper, lower, *cost = line.split("\t")
        symbols = (_SYMBOLS.get(upper, upper), _SYMBOLS.get(lower, lower))
        arcs[int(source)].append(Arc(int(target), *symbols, float(cost[0]) if cost else 0.0))
    return arcs


class _Path(NamedTuple):
    """The beginning of a path from state 0."""

    state: int
    query: str
    form: str
    cost: float


def read_att(lines: Sequence[str]) -> dict[Key, float]:
    """Return the probability of each path that ends; a line without columns is an end state."""
    ends = {int(line) for line in lines if "\t" not in line}
    arcs = read_arcs(line for line in lines if "\t" in line)
    probs: dict[Key, float] = {}
    stack = [_Path(state=0, query="", form="", cost=0.0)]
    while stack:
        state, query, form, cost = stack.pop()
        if state in ends:
            lemma, *tags = query.split("+")
            probs[lemma, ";".join(tags), form] = math.exp(-cost)
        stack += [
            _Path(arc.target, query + arc.upper, form + arc.lower, cost + arc.cost)
            for arc in arcs[state]
        ]
    return probs
