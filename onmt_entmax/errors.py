"""The base class of errors that a user can fix, and a hint for misspelt words."""

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """An error that the user can fix; the message says in one line what is wrong and where.

    Commands print it without a traceback. Each module derives its own errors from it.
    """


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean ...?` with the only known word that starts so, else the most similar.

    If no word is similar, return an empty string.
    """
    words = list(known)
    found = [name for name in words if len(word) > 2 and name.startswith(word)]
    if len(found) != 1:
        found = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else ""
