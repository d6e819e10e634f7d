"""Differences between operating systems, in one file so that tests on Linux can imitate others."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def ending_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that ask a process to end: SIGINT, SIGTERM and SIGHUP.

    Windows has no SIGHUP.
    """
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


@contextmanager
def blocked_signals() -> Iterator[None]:
    """Block the ending signals in this thread, and in processes that it starts, during a block.

    On Windows, which cannot block signals, this does nothing.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ending_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore_signals() -> None:
    """Ignore the ending signals, also those that were blocked when this process started."""
    for number in ending_signals():
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ending_signals())


def start_method() -> str:
    """Return how new processes start: by a fork on Linux, anew elsewhere.

    Python's default depends on its version: since 3.14, processes on Linux are forks of a server,
    which are slower to start and no children of this process. On macOS, libraries of the system may
    crash after a fork.
    """
    return "fork" if sys.platform == "linux" else "spawn"
