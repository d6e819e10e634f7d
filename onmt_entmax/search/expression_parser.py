"""Parse regular expressions over tokens, such as `the (cat | dog) .*`.

Unlike in a regular expression over characters, `the` is one symbol, and white space only separates
tokens. `expression.py` has the parts of which the result is made.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from onmt_entmax.search.expression import (
    Concatenation,
    ExpressionError,
    NoneOf,
    OneOf,
    Regular,
    Star,
    Union,
)


def parse_expression(text: str) -> Regular:
    r"""Return the expression that a text stands for.

    Tokens are separated by white space or by special characters: `( ) | * + ?` as usual, `.` for
    any token, `[a b]` for one of some and `[^a b]` for any but these. A backslash before one of
    `( ) | * + ? . [ ] ^ \` or a space makes it part of a token: `\.` is the full stop. Other
    escapes, anchors (`^a$`) and counts (`a{3}`) are errors; in brackets, `[$]` and `[{3}]` are
    tokens.

    Raises:
        ExpressionError: names the place of what is wrong.
    """
    parser = _Parser(text)
    try:
        return parser.parse()
    except RecursionError:
        raise parser.error("nested too deeply") from None


_SPACE = re.compile(r"\s*")
_SPECIAL = re.compile(r"\[\^|[()|*+?.\[\]]")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_WORD = re.compile(rf"(?:{_ESCAPE.pattern}|[^\s\\()|*+?.\[\]])+", re.DOTALL)
_COUNT = re.compile(r"\{(\d+(,\d*)?|,\d+)\}")
_END = "end"


class _Lexeme(NamedTuple):
    """A part of the text.

    Attributes:
        position: the position of its first character, from 1.
        special: a special character, `[^` or `_END`; empty for a word.
        word: as written, with escapes; empty for a special character.
    """

    position: int
    special: str
    word: str


def _lexemes(text: str) -> Iterator[_Lexeme]:
    """Yield the lexemes of a text, the last one `_END`."""
    start = _after_space(text, 0)
    while start < len(text):
        special, word = _SPECIAL.match(text, start), _WORD.match(text, start)
        match = special or word
        if match is None:
            raise ExpressionError("ends in a backslash, which says nothing")
        yield _Lexeme(start + 1, special[0] if special else "", word[0] if word else "")
        start = _after_space(text, match.end())
    yield _Lexeme(len(text.rstrip()) + 1, _END, "")


def _after_space(text: str, start: int) -> int:
    """Return where the next character that is no space stands, from `start` on."""
    space = _SPACE.match(text, start)
    return space.end() if space else start


class _Parser:
    """Recursive descent: a union of branches, a branch of repeated atoms."""

    def __init__(self, text: str) -> None:
        self._lexemes = list(_lexemes(text))
        self._place = 0

    @property
    def _next(self) -> _Lexeme:
        return self._lexemes[self._place]

    def _read(self) -> _Lexeme:
        """Return the next lexeme and go on to the one after it."""
        self._place += 1
        return self._lexemes[self._place - 1]

    def parse(self) -> Regular:
        """Read the whole text."""
        expression = self._union()
        if self._next.special != _END:
            raise self.error(f"{self._next.special!r} closes nothing")
        return expression

    def error(self, message: str, position: int | None = None) -> ExpressionError:
        """Return an error that names a position, or else that of the next lexeme."""
        position = self._next.position if position is None else position
        return ExpressionError(f"character {position}: {message}")

    def _union(self) -> Regular:
        """Read branches with `|` between them."""
        branches = [self._branch()]
        while self._next.special == "|":
            self._read()
            branches.append(self._branch())
        return branches[0] if len(branches) == 1 else Union(tuple(branches))

    def _branch(self) -> Concatenation:
        """Read parts up to the end of a branch; there may be none."""
        parts: list[Regular] = []
        while self._next.special not in ("|", ")", "]", _END):
            if self._next.special in ("*", "+", "?"):
                raise self.error(f"{self._next.special!r} repeats nothing")
            parts.append(self._repeated(self._atom()))
        return Concatenation(tuple(parts))

    def _repeated(self, part: Regular) -> Regular:
        """Read the repetition signs after a part; different ones, such as `+?`, mean `*`."""
        signs = set[str]()
        while self._next.special in ("*", "+", "?"):
            signs.add(self._read().special)
        if not signs:
            return part
        if signs == {"?"}:
            return Union((part, Concatenation()))
        if signs == {"+"}:
            return Concatenation((part, Star(part)))
        return Star(part)

    def _atom(self) -> Regular:
        """Read a token, a dot, brackets, or an expression in parentheses."""
        if not self._next.special:
            return OneOf(frozenset({self._token()}))
        opening = self._read()
        if opening.special == ".":
            return NoneOf()
        if opening.special == "(":
            group = self._union()
            if self._next.special != ")":
                raise self.error("'(' is not closed", opening.position)
            self._read()
            return group
        tokens = self._tokens_in_brackets(opening)
        return NoneOf(tokens) if opening.special == "[^" else OneOf(tokens)

    def _tokens_in_brackets(self, opening: _Lexeme) -> frozenset[str]:
        """Read the tokens after an opening bracket, and the closing one."""
        tokens = set[str]()
        while not self._next.special:
            tokens.add(self._token(in_brackets=True))
        if self._next.special == _END:
            raise self.error("'[' is not closed", opening.position)
        if self._next.special != "]":
            raise self.error(f"{self._next.special!r} in brackets needs a backslash")
        self._read()
        if not tokens:
            raise self.error("the brackets name no token", opening.position)
        return frozenset(tokens)

    def _token(self, in_brackets: bool = False) -> str:
        """Read a word; return the token that it stands for.

        In brackets, signs of anchors and counts are parts of tokens.
        """
        word = self._next.word
        self._refuse_other_escapes(word)
        if not in_brackets:
            self._refuse_anchors(word)
            self._refuse_counts(word)
        self._read()
        return _ESCAPE.sub(r"\1", word)

    def _refuse_other_escapes(self, word: str) -> None:
        """Refuse a backslash in the next word that is not before a special character."""
        for escape in _ESCAPE.finditer(word):
            if escape[1] not in "()|*+?.[]^\\ ":
                # A line break would break the line of the error.
                is_visible = escape[1].isprintable()
                escaped = escape[0] if is_visible else f"a backslash before {escape[1]!r}"
                raise self.error(
                    f"{escaped} is not supported: a backslash goes before one of "
                    "( ) | * + ? . [ ] ^ \\ or a space",
                    self._next.position + escape.start(),
                )

    def _refuse_anchors(self, word: str) -> None:
        """Refuse `^` at the start of the next word, and `$` at its end."""
        if word.startswith("^") or word.endswith("$"):
            raise self.error(
                "the anchors ^ and $ are not supported, as an expression is always about the "
                r"whole output; for tokens, write \^ and [$]"
            )

    def _refuse_counts(self, word: str) -> None:
        """Refuse a count, such as `{3}`, in the next word."""
        count = _COUNT.search(word)
        if count is not None:
            raise self.error(
                f"the count {count[0]} is not supported: write the part as often; for a token, "
                f"write [{word}]",
                self._next.position + count.start(),
            )
