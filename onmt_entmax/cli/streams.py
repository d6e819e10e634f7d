"""The standard streams of a command: closed ones, lost terminals and closed pipes."""

import errno
import io
import os
import sys
from pathlib import Path
from typing import Any

STDIN = Path("-")
"""The argument that stands for the standard input"""
STDIN_NAME = "standard input"
"""Name of the standard input in messages"""


def open_streams() -> None:
    """Replace closed streams, and let messages to a lost terminal vanish.

    A shell closes streams by `>&-`. Python sets them to None, and the next file that is opened gets
    their descriptor. Here, a closed stdin or stdout raises an OSError when it is used, since the
    command cannot do its work; messages to a closed stderr vanish.
    """
    if sys.stdin is None:
        os.open(os.devnull, os.O_WRONLY)  # so that no other file gets the descriptor
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_ClosedInput()), encoding="utf-8")
    if sys.stdout is None:  # opened for reading, the null device raises an error when written
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    stderr = sys.stderr
    if stderr is sys.__stderr__ and stderr is not None:  # not one that a test replaced
        # A lost terminal must not end a training.
        messages = io.BufferedWriter(_Messages(stderr.fileno(), "w", closefd=False))
        sys.stderr = io.TextIOWrapper(messages, stderr.encoding, stderr.errors, line_buffering=True)


def discard_output() -> None:
    """Discard pending output that cannot be written; Python would report it at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _ClosedInput(io.RawIOBase):
    """A closed standard input. Its error names the stream, which the system's error does not."""

    def readable(self) -> bool:
        """Return True, since `BufferedReader` refuses other files."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Raise an error.

        Raises:
            OSError: always.
        """
        raise OSError(errno.EBADF, "is closed", STDIN_NAME)


class _Messages(io.FileIO):
    """A file that discards what cannot be written, as after its terminal was closed."""

    def write(self, content: Any) -> int:
        """Write bytes, or discard them all if that fails.

        Returns:
            The number of bytes that are written or discarded.
        """
        try:
            return super().write(content)
        except OSError:
            return memoryview(content).nbytes
