"""The one kind of error that is the user's to mend, and a hint for it."""

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """Something a user can put right; the message is one line that says what and where.

    The commands print it without a traceback. Every room derives its own errors from it.
    """


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean ...?` for the known word that looks most like `word`, or nothing."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else ""
