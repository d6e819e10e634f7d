"""Random expressions over tokens, each with an independent function that says what it accepts.

That function is made of Python's `re` and `in`. They work on text, so it writes an output with a
letter for each token, by the token's id: `a` for 0, `b` for 1.
"""

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

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
"""Tells whether an output is accepted."""


class Described(NamedTuple):
    """An expression that names tokens by their ids, and what it should accept."""

    expression: Expression
    matches: Matcher


def random_expression(rng: random.Random, tokens: Sequence[int]) -> Described:
    """Return an intersection of up to three random expressions over tokens with ids up to 25."""
    parts = [_part(rng, tokens) for _ in range(rng.choice([1, 1, 2, 3]))]
    if len(parts) == 1:
        return parts[0]
    return Described(
        Intersection(tuple(part.expression for part in parts)),
        lambda output: all(part.matches(output) for part in parts),
    )


def _part(rng: random.Random, tokens: Sequence[int]) -> Described:
    """Return an expression of one kind; regular expressions are the most frequent."""
    kind = rng.choice(["contain", "any of", "avoid", "regex", "regex", "reversed"])
    if kind == "regex":
        return _regular(_random_regex(rng, tokens, depth=2))
    if kind == "reversed":
        return _reversed(_regular(_random_regex(rng, tokens, depth=2)))
    phrases = [
        [rng.choice(tokens) for _ in range(rng.choice([1, 1, 2]))]
        for _ in range(2 if kind == "any of" else 1)
    ]
    return _avoiding(phrases[0]) if kind == "avoid" else _containing(phrases)


def _letters(tokens: Sequence[int]) -> str:
    """Return tokens as text, a letter for each."""
    return "".join(chr(ord("a") + token) for token in tokens)


# --- phrases ---------------------------------------------------------------------------------


def _containing(phrases: Sequence[Sequence[int]]) -> Described:
    """Describe the outputs that contain one of some phrases, of which there may be one."""
    parts = [containing([str(token) for token in phrase]) for phrase in phrases]
    texts = [_letters(phrase) for phrase in phrases]
    return Described(
        parts[0] if len(parts) == 1 else Union(tuple(parts)),
        lambda output: any(text in _letters(output) for text in texts),
    )


def _avoiding(phrase: Sequence[int]) -> Described:
    """Describe the outputs that do not contain a phrase."""
    contains = containing([str(token) for token in phrase])
    return Described(Complement(contains), lambda output: _letters(phrase) not in _letters(output))


# --- regular expressions ---------------------------------------------------------------------


class Regex(NamedTuple):
    """One regular expression in two notations."""

    ours: str
    """With the ids of tokens between spaces."""
    python: str
    """With the letters of tokens."""


def _regular(regex: Regex) -> Described:
    """Describe the outputs that a regular expression matches from beginning to end."""
    compiled = re.compile(regex.python)
    return Described(
        parse_expression(regex.ours),
        lambda output: compiled.fullmatch(_letters(output)) is not None,
    )


def _reversed(described: Described) -> Described:
    """Describe the outputs that are accepted if they are read from right to left."""
    return Described(reverse(described.expression), lambda output: described.matches(output[::-1]))


def _random_regex(rng: random.Random, tokens: Sequence[int], depth: int) -> Regex:
    """Return a random regular expression, whose operators are nested up to a depth."""
    kind = rng.choice(["one", "any", "set", "then", "then", "or", "many"]) if depth else "one"
    if kind == "one":
        token = rng.choice(tokens)
        return Regex(f" {token} ", _letters([token]))
    if kind == "any":
        return Regex(".", ".")
    if kind == "set":
        chosen, negation = rng.sample(tokens, 2), rng.choice(["", "^"])
        ids = " ".join(map(str, chosen))
        return Regex(f"[{negation}{ids}]", f"[{negation}{_letters(chosen)}]")
    first, second = (_random_regex(rng, tokens, depth - 1) for _ in range(2))
    if kind == "then":
        return Regex(first.ours + second.ours, first.python + second.python)
    if kind == "or":
        return Regex(f"({first.ours}|{second.ours})", f"(?:{first.python}|{second.python})")
    quantifier = rng.choice("*+?")
    return Regex(f"({first.ours}){quantifier}", f"(?:{first.python}){quantifier}")
