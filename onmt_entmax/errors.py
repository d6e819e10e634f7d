"""Errors that a user can fix, and the wording of messages."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

# Categories of Unicode: control characters, halves of surrogate pairs, line and paragraph ends.
_UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")
# Marks that embed, override or isolate a direction of writing.
_DIRECTION_MARKS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


class UserError(ValueError):
    """An error that the user can fix; the message says in one line what is wrong and where.

    Commands print it without a traceback. Each module derives its own errors from it.
    """


def printable(text: str) -> str:
    """Return a text as one line that a terminal shows as it is.

    Control characters, line ends and marks that change the direction of writing are escaped, since
    names of files, tokens and options may come from a stranger.
    """
    if text.isprintable():  # true for most texts, and for none with a character to escape
        return text
    return "".join(map(_printable, text))


def _printable(character: str) -> str:
    """Return a character, or its escape, such as `\\t`."""
    if unicodedata.category(character) in _UNPRINTABLE or character in _DIRECTION_MARKS:
        return ascii(character)[1:-1]
    return character


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean ...?` with a known word that is like a word; else an empty string.

    It is the shortest known word that begins with the word, or else the most similar one.
    """
    words = list(known)
    # Too many words begin with the same one or two letters.
    longer = [name for name in words if len(word) > 2 and name.startswith(word)]
    if longer:
        return f"; did you mean {min(longer, key=len)!r}?"
    similar = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return f"; did you mean {similar[0]!r}?" if similar else ""


def counted(number: int, noun: str) -> str:
    """Return `1 sentence`, `2,000 sentences`, `0 batches` or `3 epochs`."""
    if number == 1:
        return f"1 {noun}"
    plural = "es" if noun.endswith(("tch", "s", "x")) else "s"
    return f"{number:,} {noun}{plural}"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message; if it has no message, the error's name."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
