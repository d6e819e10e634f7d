"""Random expressions over tokens, each with a matcher that Python's `re` and `in` make."""

import random
import re
from collections.abc import Callable, Sequence

from onmt_entmax.search.expression import (
    Complement,
    Expression,
    Intersection,
    Union,
    containing,
    reverse,
)
from onmt_entmax.search.expression_parser import parse_expression
from tests.search.enumeration import Tokens

Matcher = Callable[[Tokens], bool]
"""Tells whether an output is accepted"""

Described = tuple[Expression, Matcher]
"""An expression, and what it should accept"""


def random_expression(rng: random.Random, tokens: Sequence[int]) -> Described:
    """Return an intersection of up to three expressions over some tokens, named by their ids."""
    parts = [_part(rng, tokens) for _ in range(rng.choice([1, 1, 2, 3]))]
    if len(parts) == 1:
        return parts[0]
    intersection = Intersection(tuple(part for part, _ in parts))
    return intersection, lambda output: all(matches(output) for _, matches in parts)


def _part(rng: random.Random, tokens: Sequence[int]) -> Described:
    """Return an expression of one kind."""
    kind = rng.choice(["contain", "any of", "avoid", "regex", "regex", "reversed"])
    if kind == "regex":
        return _regular(rng, tokens)
    if kind == "reversed":
        return _reversed(rng, tokens)
    phrases = [
        [rng.choice(tokens) for _ in range(rng.choice([1, 1, 2]))]
        for _ in range(2 if kind == "any of" else 1)
    ]
    return _avoiding(phrases[0]) if kind == "avoid" else _containing(phrases)


def _containing(phrases: Sequence[Sequence[int]]) -> Described:
    """Return an expression of the outputs that contain a phrase, and what matches them."""
    parts = [containing([str(token) for token in phrase]) for phrase in phrases]
    written = [_written(phrase) for phrase in phrases]
    expression = parts[0] if len(parts) == 1 else Union(tuple(parts))
    return expression, lambda output: any(phrase in _written(output) for phrase in written)


def _avoiding(phrase: Sequence[int]) -> Described:
    """Return an expression of the outputs without a phrase, and what matches them."""
    part = containing([str(token) for token in phrase])
    return Complement(part), lambda output: _written(phrase) not in _written(output)


def _regular(rng: random.Random, tokens: Sequence[int]) -> Described:
    """Return a random regular expression, and what matches its outputs."""
    ours, theirs = _regex(rng, tokens, depth=2)
    return parse_expression(ours), _matcher(theirs)


def _reversed(rng: random.Random, tokens: Sequence[int]) -> Described:
    """Return a random regular expression from right to left, and what matches its outputs."""
    ours, theirs = _regex(rng, tokens, depth=2)
    matches = _matcher(theirs)
    return reverse(parse_expression(ours)), lambda output: matches(output[::-1])


def _written(tokens: Sequence[int]) -> str:
    """Return tokens, of ids up to 25, as text of one letter each."""
    return "".join(chr(ord("a") + token) for token in tokens)


def _matcher(pattern: str) -> Matcher:
    """Return what matches a pattern of Python's, with tokens as `_written` has them."""
    compiled = re.compile(pattern)
    return lambda output: compiled.fullmatch(_written(output)) is not None


def _regex(rng: random.Random, tokens: Sequence[int], depth: int) -> tuple[str, str]:
    """Return a regular expression in our syntax and in Python's, nested up to a depth."""
    kind = rng.choice(["one", "any", "set", "then", "then", "or", "many"]) if depth else "one"
    if kind == "one":
        token = rng.choice(tokens)
        return f" {token} ", _written([token])
    if kind == "any":
        return ".", "."
    if kind == "set":
        chosen = rng.sample(tokens, 2)
        but = rng.choice(["", "^"])
        return f"[{but}{' '.join(map(str, chosen))}]", f"[{but}{_written(chosen)}]"
    (ours, theirs), (other, others) = (_regex(rng, tokens, depth - 1) for _ in range(2))
    if kind == "or":
        return f"({ours}|{other})", f"(?:{theirs}|{others})"
    if kind == "many":
        many = rng.choice("*+?")
        return f"({ours}){many}", f"(?:{theirs}){many}"
    return ours + other, theirs + others
