"""Warnings, notes and errors for the user: each is one line of stderr."""

import sys
import warnings

from onmt_entmax.errors import printable

_CUT = 200  # characters that a long message keeps at its beginning and at its end
_CUT_OF_WARNINGS = 3 * _CUT  # they may list many tokens


def warn(*messages: str) -> None:
    """Print each warning on one line of stderr."""
    for message in messages:
        print(f"warning: {one_line(message, _CUT_OF_WARNINGS)}", file=sys.stderr)


def note(*messages: str) -> None:
    """Print each note on one line of stderr."""
    for message in messages:
        print(f"note: {printable(message)}", file=sys.stderr)


def show_warnings_in_one_line() -> None:
    """Print each Python warning as one line, without the source code it came from."""
    warnings.showwarning = lambda message, *_, **__: warn(str(message))


def one_line(message: str, cut: int = _CUT) -> str:
    """Return a message as one line, of a long one its beginning and its end, which says what to do.

    Its tokens and names may be those of a stranger.

    Args:
        message: of any length.
        cut: characters to keep at the beginning and at the end.
    """
    if len(message) > 2 * cut:
        message = f"{message[:cut]} ... {message[-cut:]}"
    return printable(message)
