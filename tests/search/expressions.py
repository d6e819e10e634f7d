"""Random expressions over tokens, each with a matcher that Python's `re` and `in` make."""

import math
import random
import re
from collections.abc import Callable, Sequence

import numpy as np

from onmt_entmax.search import SearchResult
from onmt_entmax.search.automaton import VIOLATED, Automaton
from onmt_entmax.search.automaton_compiler import compile_expression
from onmt_entmax.search.expression import (
    Complement,
    Expression,
    Intersection,
    Union,
    containing,
    reverse,
)
from onmt_entmax.search.expression_parser import parse_expression
from tests.search.enumeration import EnumeratedSupport

Tokens = tuple[int, ...]
Matcher = Callable[[Tokens], bool]


def random_expression(draw: random.Random, tokens: Sequence[int]) -> tuple[Expression, Matcher]:
    """Return an expression over some tokens, named by their ids, and what it should accept."""
    parts = [_part(draw, tokens) for _ in range(draw.choice([1, 1, 2, 3]))]
    whole = parts[0][0] if len(parts) == 1 else Intersection(tuple(part for part, _ in parts))
    return whole, lambda output: all(matches(output) for _, matches in parts)


def _part(draw: random.Random, tokens: Sequence[int]) -> tuple[Expression, Matcher]:
    kind = draw.choice(["contain", "any of", "avoid", "regex", "regex", "reversed"])
    if kind == "regex":
        ours, theirs = _regex(draw, tokens, 2)
        return parse_expression(ours), _matcher(theirs)
    if kind == "reversed":
        ours, theirs = _regex(draw, tokens, 2)
        matches = _matcher(theirs)
        return reverse(parse_expression(ours)), lambda output: matches(output[::-1])
    phrases = [
        [draw.choice(tokens) for _ in range(draw.choice([1, 1, 2]))]
        for _ in range(2 if kind == "any of" else 1)
    ]
    found = [containing([str(token) for token in phrase]) for phrase in phrases]
    written = [_written(phrase) for phrase in phrases]

    def contains(output: Tokens) -> bool:
        return any(phrase in _written(output) for phrase in written)

    if kind == "avoid":
        return Complement(found[0]), lambda output: not contains(output)
    return found[0] if len(found) == 1 else Union(tuple(found)), contains


def _written(tokens: Sequence[int]) -> str:
    """Return tokens as text of one character each."""
    return "".join(chr(ord("a") + token) for token in tokens)


def _matcher(pattern: str) -> Matcher:
    compiled = re.compile(pattern)
    return lambda output: compiled.fullmatch(_written(output)) is not None


def _regex(draw: random.Random, tokens: Sequence[int], depth: int) -> tuple[str, str]:
    """Return a regular expression in our syntax and in Python's."""
    kind = draw.choice(["one", "any", "set", "then", "then", "or", "many"]) if depth else "one"
    if kind == "one":
        token = draw.choice(tokens)
        return f" {token} ", _written([token])
    if kind == "any":
        return ".", "."
    if kind == "set":
        chosen, but = draw.sample(tokens, 2), draw.choice(["", "^"])
        return f"[{but}{' '.join(map(str, chosen))}]", f"[{but}{_written(chosen)}]"
    (ours, theirs), (other, others) = (_regex(draw, tokens, depth - 1) for _ in range(2))
    if kind == "or":
        return f"({ours}|{other})", f"(?:{theirs}|{others})"
    if kind == "many":
        many = draw.choice("*+?")
        return f"({ours}){many}", f"(?:{theirs}){many}"
    return ours + other, theirs + others


def compiled(expression: Expression, tokens: Sequence[int], eos: int) -> Automaton:
    """Return the automaton of an expression that names tokens by their ids."""
    ids = {str(token): token for token in tokens}
    return compile_expression(expression, ids.get, eos)


def after(automaton: Automaton, prefix: Tokens) -> int:
    """Return the state after a prefix."""
    state = np.array([automaton.start])
    for token in prefix:
        state = automaton.step(state, np.array([token]))
    return int(state[0])


def satisfying(
    support: EnumeratedSupport, automaton: Automaton, matches: Matcher
) -> EnumeratedSupport:
    """Return the part of the support that satisfies an expression, or may once it is complete."""
    return EnumeratedSupport(
        {s: p for s, p in support.sequences.items() if matches(s)},
        {s: p for s, p in support.prefixes.items() if after(automaton, s) != VIOLATED},
        {(): 0.0},  # what was excluded is checked by its mass
    )


def check_probability(
    result: SearchResult, support: EnumeratedSupport, matches: Matcher, tolerance: float
) -> None:
    """Check the probability that the model's output satisfies an expression."""
    satisfied = result.certificate.satisfied
    assert satisfied is not None
    least, most = satisfied
    yes = sum(math.exp(p) for s, p in support.sequences.items() if matches(s))
    no = sum(math.exp(p) for s, p in support.sequences.items() if not matches(s))
    assert 0 <= least <= most <= 1
    assert least <= 1 - no + tolerance
    assert yes <= most + tolerance
    if result.certificate.level == "exhaustive" and not support.excluded:
        assert least == most
    if not support.prefixes and not support.excluded:  # else some outputs are not in the list
        assert least - tolerance <= yes
