"""The standard streams of a command: closed ones, lost terminals and closed pipes."""

import io
import os
import sys
from typing import Any


def open_streams() -> None:
    """Let work go on if stderr is gone, and fail in one line if it needs a closed stdin or stdout.

    Streams that a shell has closed, as by `>&-`, are None, and their numbers those of any file.
    """
    # Each can only do what the stream cannot, so that to use it is an error.
    for name, flags, mode in (
        ("stdin", os.O_WRONLY, "r"),
        ("stdout", os.O_RDONLY, "w"),
        ("stderr", os.O_WRONLY, "w"),  # but messages may go nowhere
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))
    stderr = sys.stderr
    if stderr is sys.__stderr__ and stderr is not None:  # not one that a test replaced
        messages = io.BufferedWriter(_Messages(stderr.fileno(), "w", closefd=False))
        sys.stderr = io.TextIOWrapper(messages, stderr.encoding, stderr.errors, line_buffering=True)


def discard_output() -> None:
    """Send pending output to nowhere if it cannot be written, else Python complains at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Messages(io.FileIO):
    """A file that discards what cannot be written, as after its terminal was closed."""

    def write(self, content: Any) -> int:
        """Return the length of `content`."""
        try:
            return super().write(content)
        except OSError:
            return memoryview(content).nbytes
