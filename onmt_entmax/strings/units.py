"""Divide a text into units, which become tokens, and join tokens to a text.

| kind of unit | example | decoding the tokens of a text returns |
|---|---|---|
| characters | the source of an inflection | the text |
| symbols | phones between spaces | the text |
| text | words, or subwords that OpenNMT-py's transforms make | the words with single spaces |

`<unk>` is the model's token for what its vocabulary lacks; among characters and symbols, decoding
returns U+FFFD for it.

- A character is a Unicode code point, as in the data: nothing is normalised, and combining marks
  are tokens of their own.
- A token has no white space, since files of tokens have spaces between them. A space inside a
  token, or as a character, is `▁` (U+2581). Other white space and `▁` itself are escaped by their
  number, such as `U+00A0`.
- Marks tell tags (`+PST`) and languages (`lang=english`) from the units of a source; see `marks`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

SPACE = "▁"
UNKNOWN = "<unk>"  # token for a symbol that is not in the vocabulary
_REPLACEMENT = "\ufffd"  # what `<unk>` becomes in a text
_LAST_CODE_POINT = 0x10FFFF  # of Unicode
# A token that is an escaped character, such as U+00A0. Longer numbers are read, never written.
_ESCAPE = re.compile(r"U\+([0-9A-F]{4,6})")
# A space or an escape, which has four digits, inside of a longer token.
_ESCAPED = re.compile(rf"{SPACE}|U\+([0-9A-F]{{4}})")
# A U that would read as the beginning of an escape, as in the tag `U+00A0`; it is escaped itself.
_LOOKS_ESCAPED = re.compile(r"U(?=\+[0-9A-F]{4})")
# The beginning of a symbol that would read as a tag or a language (`marks.TAG`, `marks.LANGUAGE`),
# such as the phone `+a`.
_MARK = re.compile(r"(?:\+|lang=)(?=.)", re.DOTALL)

# Padding, start and end symbol, which models put around texts; no text may have them.
STRUCTURAL = frozenset({"<blank>", "<s>", "</s>"})

Kind = Literal["characters", "symbols", "text"]


def _escaped(character: str) -> str:
    """Return a character that no token may contain, or that marks an escape, by its number."""
    return f"U+{ord(character):04X}"


def encode_word(word: str) -> list[str]:
    """Return the tokens of a word, one for each code point."""
    return [SPACE if c == " " else _escaped(c) if c.isspace() or c == SPACE else c for c in word]


def decode_word(tokens: Iterable[str]) -> str:
    """Return the word of the tokens, the inverse of `encode_word`.

    `<unk>` becomes U+FFFD, the replacement character. Tokens that are neither characters nor
    escapes of `encode_word` are kept.
    """
    return "".join(map(_decode_character, tokens))


def _decode_character(token: str) -> str:
    """Return the character that a token stands for, or the token itself if it is another one."""
    if token == SPACE:
        return " "
    if token == UNKNOWN:
        return _REPLACEMENT
    number = _ESCAPE.fullmatch(token)
    if number is None:
        return token
    code = int(number[1], 16)
    character = chr(code) if code <= _LAST_CODE_POINT else ""
    # `encode_word` escapes only these.
    return character if character == SPACE or character.isspace() else token


def escape(text: str) -> str:
    """Return a text as one token, or as a part of one."""
    return "".join(encode_word(_LOOKS_ESCAPED.sub(_escaped("U"), text)))


def encode_symbol(symbol: str) -> str:
    """Return a symbol of a source or target, such as a phone, as one token.

    A beginning that would make it a tag or a language is escaped.
    """
    if _MARK.match(symbol):
        return _escaped(symbol[0]) + escape(symbol[1:])
    return escape(symbol)


def decode_symbol(token: str) -> str:
    """Return the symbol of a token, the inverse of `encode_symbol`."""
    if token == UNKNOWN:
        return _REPLACEMENT
    return _ESCAPED.sub(lambda m: chr(int(m.group(1), 16)) if m.group(1) else " ", token)


@dataclass(frozen=True)
class Unit:
    """What a text of one column is divided into.

    Attributes:
        kind: `characters`; `symbols`, of one or more characters between a separator; or `text`,
            words between white space, which are tokens as they are.
        separator: stands between two symbols.
    """

    kind: Kind = "characters"
    separator: str = ""

    @classmethod
    def between(cls, separator: str) -> "Unit":
        """Return the unit of a separator; characters if it is empty."""
        return cls("symbols", separator) if separator else cls()

    def split(self, text: str) -> list[str]:
        """Return the units of a text, as people write them."""
        if self.kind == "characters":
            return list(text)
        return text.split() if self.kind == "text" else text.split(self.separator)

    def join(self, units: Iterable[str]) -> str:
        """Return the text of units, the inverse of `split`."""
        return (" " if self.kind == "text" else self.separator).join(units)

    def encode(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        if self.kind == "characters":
            return encode_word(text)
        units = self.split(text)
        return units if self.kind == "text" else list(map(encode_symbol, units))

    def decode(self, tokens: Iterable[str]) -> str:
        """Return the text of tokens, the inverse of `encode`."""
        if self.kind == "characters":
            return decode_word(tokens)
        return self.join(tokens if self.kind == "text" else map(decode_symbol, tokens))

    def problem(self, text: str) -> str | None:
        """Return why a text cannot be divided exactly, or None."""
        if not text.strip():
            return "is empty"
        if self.kind == "symbols" and "" in self.split(text):
            return f"has an empty symbol: {self.separator!r} at an end, or twice in a row"
        if self.kind == "characters":  # all of which are encoded
            return None
        own = STRUCTURAL.intersection(self.split(text))
        return f"has {min(own)!r}, a symbol of the model's own" if own else None

    def __str__(self) -> str:
        return f"symbols between {self.separator!r}" if self.kind == "symbols" else self.kind


CHARACTERS = Unit()
TEXT = Unit("text")
