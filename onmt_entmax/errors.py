"""The base class of errors that a user can fix, and the wording of messages."""

import difflib
import unicodedata
from collections.abc import Iterable

_UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")
_DIRECTION = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


class UserError(ValueError):
    """An error that the user can fix; the message says in one line what is wrong and where.

    Commands print it without a traceback. Each module derives its own errors from it.
    """


def printable(text: str) -> str:
    """Return a text in one line that a terminal shows as it is.

    Control characters, line ends and marks that change the direction of writing are escaped: names
    of files, tokens and options may come from a stranger.
    """
    return "".join(
        c if unicodedata.category(c) not in _UNPRINTABLE and c not in _DIRECTION else ascii(c)[1:-1]
        for c in text
    )


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean ...?` with the shortest known word that starts so, or one like it.

    If no word is similar, return an empty string.
    """
    words = list(known)
    begun = [name for name in words if len(word) > 2 and name.startswith(word)]
    found = [min(begun, key=len)] if begun else []
    if not found:
        found = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else ""


def counted(number: int, noun: str) -> str:
    """Return `1 sentence`, `2,000 sentences`, `0 batches` or `3 epochs`."""
    plural = "es" if noun.endswith(("tch", "s", "x")) else "s"
    return f"{number:,} {noun}" + plural * (number != 1)
