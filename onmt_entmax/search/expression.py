"""Regular expressions over tokens, with "and" and "not": which outputs a request allows.

An expression describes whole outputs. `automaton.py` compiles it for a vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from onmt_entmax.errors import UserError


class ExpressionError(UserError):
    """A text that is no regular expression, or one that needs too large an automaton."""


@dataclass(frozen=True)
class Expression:
    """A set of outputs."""

    kind: Literal["in", "not in", "then", "or", "and", "not", "star"]
    """`in`: one token of `tokens`; `not in`: one token that is none of these. Of the parts, `then`:
    one after the other, without parts the empty output; `or`: at least one; `and`: all; `not`: none
    but the part; `star`: the part, any number of times."""
    parts: tuple[Expression, ...] = ()
    tokens: frozenset[str] = frozenset()


def containing(tokens: Sequence[str]) -> Expression:
    """Return the outputs that contain these tokens, one directly after the other."""
    anything = Expression("star", (Expression("not in"),))
    ones = (Expression("in", tokens=frozenset({token})) for token in tokens)
    return Expression("then", (anything, *ones, anything))


def reverse(expression: Expression) -> Expression:
    """Return the outputs of an expression from right to left."""
    parts = tuple(map(reverse, expression.parts))
    turned = parts[::-1] if expression.kind == "then" else parts
    return Expression(expression.kind, turned, expression.tokens)


def renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    """Return an expression with other names for some of its tokens."""
    tokens = frozenset(names.get(token, token) for token in expression.tokens)
    return Expression(
        expression.kind, tuple(renamed(part, names) for part in expression.parts), tokens
    )


def named_tokens(expression: Expression) -> Iterator[str]:
    """Yield the tokens that an expression names, in any order."""
    yield from expression.tokens
    for part in expression.parts:
        yield from named_tokens(part)


def parse_expression(text: str) -> Expression:
    r"""Return the expression that a text stands for.

    Tokens are separated by white space or by special characters: `( ) | * + ?` as usual, `.` for
    any token, `[a b]` for one of some and `[^a b]` for any but these. A backslash before one of
    `( ) | * + ? . [ ] ^ \` or a space makes it part of a token: `\.` is the full stop. Other
    escapes, anchors (`^a$`) and counts (`a{3}`) are errors; in brackets, `[$]` and `[{3}]` are
    tokens.

    Raises:
        ExpressionError: names the place of what is wrong.
    """
    try:
        return _Parser(text).parse()
    except RecursionError:
        raise ExpressionError("nested too deeply") from None


# A word, in which a backslash takes the special meaning of what follows, or a special character.
_LEXEME = re.compile(
    r"\s*(?:(?P<word>(?:\\.|[^\s\\()|*+?.\[\]])+)|(?P<special>\[\^|[()|*+?.\[\]]))"
)
_COUNT = re.compile(r"\{(\d+(,\d*)?|,\d+)\}")


class _Parser:
    """Recursive descent."""

    def __init__(self, text: str) -> None:
        self._lexemes: list[tuple[int, str, str]] = []  # place from 1, special character, word
        self._next, end, text = 0, 0, text.rstrip()
        while end < len(text):
            match = _LEXEME.match(text, end)
            if match is None:
                raise ExpressionError("ends in a backslash, which says nothing")
            start = match.start(match.lastgroup or "") + 1
            self._lexemes.append((start, match["special"] or "", match["word"] or ""))
            end = match.end()
        self._lexemes.append((end + 1, "end", ""))

    def parse(self) -> Expression:
        """Read the whole text."""
        whole = self._union()
        if self._special != "end":
            raise self._error(f"{self._special!r} closes nothing")
        return whole

    @property
    def _special(self) -> str:
        """The next special character; "" before a word."""
        return self._lexemes[self._next][1]

    def _error(self, message: str, place: int | None = None) -> ExpressionError:
        place = self._lexemes[self._next][0] if place is None else place
        return ExpressionError(f"character {place}: {message}")

    def _union(self) -> Expression:
        branches = [self._branch()]
        while self._special == "|":
            self._next += 1
            branches.append(self._branch())
        return branches[0] if len(branches) == 1 else Expression("or", tuple(branches))

    def _branch(self) -> Expression:
        parts: list[Expression] = []
        while self._special not in ("|", ")", "]", "end"):
            if self._special in ("*", "+", "?"):
                raise self._error(f"{self._special!r} repeats nothing")
            part = self._atom()
            signs = set[str]()  # of several, such as `+?`, one is enough
            while self._special in ("*", "+", "?"):
                signs.add(self._special)
                self._next += 1
            if signs == {"?"}:
                part = Expression("or", (part, Expression("then")))
            elif signs == {"+"}:
                part = Expression("then", (part, Expression("star", (part,))))
            elif signs:
                part = Expression("star", (part,))
            parts.append(part)
        return Expression("then", tuple(parts))

    def _atom(self) -> Expression:
        start, special, _ = self._lexemes[self._next]
        if not special:
            return Expression("in", tokens=frozenset({self._token()}))
        self._next += 1
        if special == ".":
            return Expression("not in")
        if special == "(":
            inside = self._union()
            if self._special != ")":
                raise self._error("'(' is not closed", start)
            self._next += 1
            return inside
        tokens = set()
        while not self._special:
            tokens.add(self._token(in_brackets=True))
        if self._special == "end":
            raise self._error("'[' is not closed", start)
        if self._special != "]":
            raise self._error(f"{self._special!r} in brackets needs a backslash")
        self._next += 1
        if not tokens:
            raise self._error("the brackets name no token", start)
        return Expression("not in" if special == "[^" else "in", tokens=frozenset(tokens))

    def _token(self, in_brackets: bool = False) -> str:
        """Read a word; return the token that it stands for."""
        place, _, word = self._lexemes[self._next]
        for escape in re.finditer(r"\\(.)", word):
            if escape[1] not in "()|*+?.[]^\\ ":
                raise self._error(
                    f"{escape[0]} is not supported: a backslash goes before one of "
                    "( ) | * + ? . [ ] ^ \\ or a space",
                    place + escape.start(),
                )
        if not in_brackets and (word.startswith("^") or word.endswith("$")):
            raise self._error(
                "the anchors ^ and $ are not supported, as an expression is always about the "
                r"whole output; for tokens, write \^ and [$]"
            )
        if not in_brackets and (count := _COUNT.search(word)):
            raise self._error(
                f"the count {count[0]} is not supported: write the part as often; for a token, "
                f"write [{word}]",
                place + count.start(),
            )
        self._next += 1
        return re.sub(r"\\(.)", r"\1", word)
