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
    """A single token, one of these."""

    tokens: frozenset[str]


@dataclass(frozen=True)
class NoneOf:
    """A single token, none of these; if none are named, any token."""

    tokens: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Concatenation:
    """The parts in sequence; without parts, the empty output."""

    parts: tuple[Regular, ...] = ()


@dataclass(frozen=True)
class Union:
    """Any one of the parts."""

    parts: tuple[Regular, ...]


@dataclass(frozen=True)
class Star:
    """The part, repeated any number of times or left out (Kleene star)."""

    part: Regular


@dataclass(frozen=True)
class Complement:
    """The outputs that the part does not describe."""

    part: Regular


@dataclass(frozen=True)
class Intersection:
    """The outputs that all parts describe; there is at least one part."""

    parts: tuple[Expression, ...]


Regular: TypeAlias = OneOf | NoneOf | Concatenation | Union | Star
"""A regular expression."""
Expression: TypeAlias = Regular | Complement | Intersection
"""A combination of regular expressions that an output must match, and others that it must not."""


def containing(*phrases: Sequence[str]) -> Regular:
    """Return an expression for the outputs that contain any of some phrases as adjacent tokens."""
    anything = Star(NoneOf())
    one = Union(
        tuple(
            Concatenation(tuple(OneOf(frozenset({token})) for token in phrase))
            for phrase in phrases
        )
    )
    return Concatenation((anything, one, anything))


def reverse(expression: Regular) -> Regular:
    """Return an expression for the same outputs, written from right to left."""
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
