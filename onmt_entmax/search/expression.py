"""Regular expressions over tokens: which outputs a request allows.

An expression describes whole outputs. `expression_parser.py` reads one from text, and
`automaton_compiler.py` compiles it for a vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from onmt_entmax.errors import UserError


class ExpressionError(UserError):
    """A text that is no regular expression, or one that needs too large an automaton."""


@dataclass(frozen=True)
class OneOf:
    """One token, which is among these."""

    tokens: frozenset[str]


@dataclass(frozen=True)
class NoneOf:
    """One token, which is not among these; without any, every token."""

    tokens: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Concatenation:
    """The parts, one directly after the other; without any, the empty output."""

    parts: tuple[Regular, ...] = ()


@dataclass(frozen=True)
class Union:
    """At least one of the parts."""

    parts: tuple[Regular, ...]


@dataclass(frozen=True)
class Star:
    """The part, any number of times (Kleene star)."""

    part: Regular


@dataclass(frozen=True)
class Complement:
    """What the part does not describe."""

    part: Regular


@dataclass(frozen=True)
class Intersection:
    """What all parts describe; there is at least one."""

    parts: tuple[Expression, ...]


Regular: TypeAlias = OneOf | NoneOf | Concatenation | Union | Star
"""A regular expression."""
Expression: TypeAlias = Regular | Complement | Intersection
"""Regular expressions that an output matches, and others that it does not."""


def containing(*phrases: Sequence[str]) -> Regular:
    """Return the outputs that contain a phrase, or one of several: tokens that follow directly."""
    anything = Star(NoneOf())
    one = Union(
        tuple(
            Concatenation(tuple(OneOf(frozenset({token})) for token in phrase))
            for phrase in phrases
        )
    )
    return Concatenation((anything, one, anything))


def reverse(expression: Regular) -> Regular:
    """Return the outputs of an expression from right to left."""
    match expression:
        case Concatenation(parts):
            return Concatenation(tuple(map(reverse, reversed(parts))))
        case Union(parts):
            return Union(tuple(map(reverse, parts)))
        case Star(part):
            return Star(reverse(part))
        case OneOf() | NoneOf():
            return expression


def renamed(expression: Regular, names: Mapping[str, str]) -> Regular:
    """Return an expression with other names for some of its tokens."""
    match expression:
        case Concatenation(parts):
            return Concatenation(tuple(renamed(part, names) for part in parts))
        case Union(parts):
            return Union(tuple(renamed(part, names) for part in parts))
        case Star(part):
            return Star(renamed(part, names))
        case OneOf(tokens):
            return OneOf(frozenset(names.get(token, token) for token in tokens))
        case NoneOf(tokens):
            return NoneOf(frozenset(names.get(token, token) for token in tokens))


def named_tokens(expression: Expression) -> Iterator[str]:
    """Yield the tokens that an expression names, in any order."""
    match expression:
        case OneOf(tokens) | NoneOf(tokens):
            yield from tokens
        case Star(part) | Complement(part):
            yield from named_tokens(part)
        case Concatenation(parts) | Union(parts) | Intersection(parts):
            for inner in parts:
                yield from named_tokens(inner)
