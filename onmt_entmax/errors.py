"""The base class of errors that a user can fix, and a hint for misspelt words."""

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """An error that the user can fix; the message says in one line what is wrong and where.

    Commands print it without a traceback. Each module derives its own errors from it.
    """


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean ...?` with the most similar known word, or an empty string."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else ""
