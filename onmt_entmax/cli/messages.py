"""Warnings, notes and errors for the user: each is one line of stderr."""

import sys
import warnings

from onmt_entmax.errors import printable

# Characters that a long message keeps at its beginning and at its end.
_KEPT_OF_ERRORS = 200
_KEPT_OF_WARNINGS = 600  # they may list many tokens


def warn(*messages: str) -> None:
    """Print each warning on one line of stderr."""
    for message in messages:
        print(f"warning: {one_line(message, _KEPT_OF_WARNINGS)}", file=sys.stderr)


def note(*messages: str) -> None:
    """Print each note, whole, on one line of stderr."""
    for message in messages:
        print(f"note: {printable(message)}", file=sys.stderr)


def show_warnings_in_one_line() -> None:
    """Print each Python warning as one line, without the source code it came from."""
    warnings.showwarning = lambda message, *_, **__: warn(str(message))


def one_line(message: str, kept: int = _KEPT_OF_ERRORS) -> str:
    """Return a message in one line; shorten a long one in the middle, since advice is at its end.

    Control characters are escaped, since names and tokens in a message may come from a stranger.

    Args:
        message: message of any length.
        kept: characters to keep at the beginning and at the end.
    """
    if len(message) > 2 * kept:
        message = f"{message[:kept]} ... {message[-kept:]}"
    return printable(message)
