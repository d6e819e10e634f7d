"""Regular expressions over tokens, with "and" and "not": which outputs a request allows.

An expression describes whole outputs. `automaton.py` compiles it for a vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from onmt_entmax.errors import UserError


class ExpressionError(UserError):
    """A text that is no regular expression, or one that needs too large an automaton."""


@dataclass(frozen=True)
class OneToken:
    """One token: one of `tokens` or, if `others`, any but these."""

    tokens: frozenset[str]
    others: bool = False


@dataclass(frozen=True)
class Concatenation:
    """One part after the other; without parts the empty output."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Union:
    """At least one of the parts."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Intersection:
    """All of the parts."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Complement:
    """Everything but the part."""

    part: Expression


@dataclass(frozen=True)
class Star:
    """The part, any number of times."""

    part: Expression


Expression = OneToken | Concatenation | Union | Intersection | Complement | Star

_EMPTY = Concatenation(())
_ANYTHING = Star(OneToken(frozenset(), others=True))


def containing(tokens: Sequence[str]) -> Expression:
    """Return the outputs that contain these tokens, one directly after the other."""
    ones = (OneToken(frozenset({token})) for token in tokens)
    return Concatenation((_ANYTHING, *ones, _ANYTHING))


def reverse(expression: Expression) -> Expression:
    """Return the outputs of an expression from right to left."""
    match expression:
        case Concatenation(parts):
            return Concatenation(tuple(map(reverse, reversed(parts))))
        case Union(parts) | Intersection(parts):
            return type(expression)(tuple(map(reverse, parts)))
        case Complement(part) | Star(part):
            return type(expression)(reverse(part))
    return expression


def named_tokens(expression: Expression) -> Iterator[str]:
    """Yield the tokens that an expression names, in any order."""
    match expression:
        case OneToken(tokens):
            yield from tokens
        case Concatenation(parts) | Union(parts) | Intersection(parts):
            for part in parts:
                yield from named_tokens(part)
        case Complement(part) | Star(part):
            yield from named_tokens(part)


# A word, in which a backslash takes the special meaning of what follows, or a special character.
_LEXEME = re.compile(
    r"\s*(?:(?P<word>(?:\\.|[^\s\\()|*+?.\[\]])+)|(?P<special>\[\^|[()|*+?.\[\]]))"
)
_COUNT = re.compile(r"\{(\d+(,\d*)?|,\d+)\}")


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


class _Parser:
    """Recursive descent."""

    def __init__(self, text: str) -> None:
        self._lexemes = list(_lexemes(text))  # (place, special character or "", word)
        self._next = 0

    def parse(self) -> Expression:
        """Read the whole text."""
        whole = self._union()
        if self._next < len(self._lexemes):
            raise self._error(f"{self._special()!r} closes nothing")
        return whole

    def _union(self) -> Expression:
        branches = [self._branch()]
        while self._takes("|"):
            branches.append(self._branch())
        return branches[0] if len(branches) == 1 else Union(tuple(branches))

    def _branch(self) -> Expression:
        parts: list[Expression] = []
        while self._next < len(self._lexemes) and self._special() not in ("|", ")", "]"):
            if self._special() in ("*", "+", "?"):
                raise self._error(f"{self._special()!r} repeats nothing")
            part = self._atom()
            signs = set[str]()  # of several, such as `+?`, one is enough
            while self._special() in ("*", "+", "?"):
                signs.add(self._special())
                self._next += 1
            if signs == {"+"}:
                part = Concatenation((part, Star(part)))
            elif signs == {"?"}:
                part = Union((part, _EMPTY))
            elif signs:
                part = Star(part)
            parts.append(part)
        return Concatenation(tuple(parts))

    def _atom(self) -> Expression:
        start, special, word = self._lexemes[self._next]
        self._next += 1
        if special == "(":
            inside = self._union()
            if not self._takes(")"):
                raise ExpressionError(f"character {start}: '(' is not closed")
            return inside
        if special == ".":
            return OneToken(frozenset(), others=True)
        if not special:
            return OneToken(frozenset({_token(start, word)}))
        tokens = set()
        while self._next < len(self._lexemes) and not self._special():
            place, _, word = self._lexemes[self._next]
            tokens.add(_token(place, word, in_brackets=True))
            self._next += 1
        if not self._takes("]"):
            if self._next < len(self._lexemes):
                raise self._error(f"{self._special()!r} in brackets needs a backslash")
            raise ExpressionError(f"character {start}: '[' is not closed")
        if not tokens:
            raise ExpressionError(f"character {start}: the brackets name no token")
        return OneToken(frozenset(tokens), others=special == "[^")

    def _special(self) -> str:
        """Return the next special character; "" before a word and at the end."""
        return self._lexemes[self._next][1] if self._next < len(self._lexemes) else ""

    def _takes(self, special: str) -> bool:
        found = self._special() == special
        self._next += found
        return found

    def _error(self, what: str) -> ExpressionError:
        return ExpressionError(f"character {self._lexemes[self._next][0]}: {what}")


def _lexemes(text: str) -> Iterable[tuple[int, str, str]]:
    """Yield the place, from 1, of each special character or word, and these."""
    place, text = 0, text.rstrip()
    while place < len(text):
        found = _LEXEME.match(text, place)
        if found is None:
            raise ExpressionError("ends in a backslash, which says nothing")
        kind = found.lastgroup or ""
        yield found.start(kind) + 1, found["special"] or "", found["word"] or ""
        place = found.end()


def _token(place: int, word: str, in_brackets: bool = False) -> str:
    """Return the token that a word stands for; `place` is that of its first character."""
    for escape in re.finditer(r"\\(.)", word):
        if escape[1] not in "()|*+?.[]^\\ ":
            raise ExpressionError(
                f"character {place + escape.start()}: {escape[0]} is not supported: a backslash "
                "goes before one of ( ) | * + ? . [ ] ^ \\ or a space"
            )
    if not in_brackets and (word.startswith("^") or word.endswith("$")):
        raise ExpressionError(
            f"character {place}: the anchors ^ and $ are not supported, as an expression is always "
            r"about the whole output; for tokens, write \^ and [$]"
        )
    if not in_brackets and (count := _COUNT.search(word)):
        raise ExpressionError(
            f"character {place + count.start()}: the count {count[0]} is not supported: write the "
            f"part as often; for a token, write [{word}]"
        )
    return re.sub(r"\\(.)", r"\1", word)
