"""Words of the CoNLL-SIGMORPHON 2018 shared task as tokens, and back.

A model of inflection reads the language, the tags and the characters of the lemma, as in Peters,
Niculae and Martins (2019), section 4.1, and writes the characters of the form:

    draw, V;V.PTCP;PST    ->    lang=english +V +V.PTCP +PST d r a w    ->    d r a w n

- `lang=` marks the language and `+` a tag (as in finite-state morphology), so neither is ever
  mistaken for a character: the tag V is `+V`, the letter V is `V`.
- A character is a Unicode code point and stays what it is in the data: nothing is normalised,
  combining marks are tokens of their own.
- A space inside a word is `▁` (U+2581). Other white space, and `▁` itself, is written as its
  number, `U+00A0`. These are the only escapes, and reading turns them back exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SPACE = "▁"
LANGUAGE = "lang="
TAG = "+"
UNKNOWN = "<unk>"  # the token a model writes for a character it has no name for
_ESCAPE = re.compile(r"U\+([0-9A-F]{4,6})")
_ESCAPED = re.compile(rf"{SPACE}|U\+[0-9A-F]{{4}}")  # in a tag: white space has four digits


def encode_word(word: str) -> list[str]:
    """The tokens of a word: one for each code point."""
    return [
        SPACE if c == " " else f"U+{ord(c):04X}" if c.isspace() or c == SPACE else c for c in word
    ]


def decode_word(tokens: Iterable[str]) -> str:
    """The word that `encode_word` made the tokens from.

    A model's unknown token becomes U+FFFD, the replacement character; a token that is neither a
    character nor an escape is kept as it is.
    """
    special = {SPACE: " ", UNKNOWN: "\ufffd"}
    characters = []
    for token in tokens:
        number = _ESCAPE.fullmatch(token)
        code = int(number.group(1), 16) if number else -1
        characters.append(chr(code) if 0 <= code <= 0x10FFFF else special.get(token, token))
    return "".join(characters)


def turned(text: str, reverse: bool) -> str:
    """The tokens of a text, from the last to the first where its model writes backwards."""
    return " ".join(text.split()[:: -1 if reverse else 1])


def encode_source(language: str, lemma: str, tags: Iterable[str]) -> list[str]:
    """The source tokens of one question: language, tags, characters of the lemma."""
    marked = [LANGUAGE + language] + [encode_tag(tag) for tag in tags]
    return marked + encode_word(lemma)


def encode_tag(tag: str) -> str:
    """The token of a tag."""
    return TAG + "".join(encode_word(tag))


def decode_tag(token: str) -> str:
    """The tag of a token, spaces and all."""
    return _ESCAPED.sub(lambda found: decode_word([found.group()]), token.removeprefix(TAG))


def decode_source(tokens: Iterable[str]) -> tuple[str, tuple[str, ...], str]:
    """Language, tags and lemma of source tokens: what `encode_source` was given.

    Raises:
        ValueError: the first token is not a language.
    """
    first, *rest = tokens
    if not first.startswith(LANGUAGE) or first == LANGUAGE:
        raise ValueError(f"expected a language first ({LANGUAGE}...), not {first!r}")
    tags = tuple(decode_tag(token) for token in rest if is_tag(token))
    lemma = decode_word(token for token in rest if not is_tag(token))
    return first.removeprefix(LANGUAGE), tags, lemma


def is_tag(token: str) -> bool:
    """Whether a source token is a tag; `+` alone is a character."""
    return token.startswith(TAG) and len(token) > len(TAG)
