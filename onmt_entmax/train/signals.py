"""Signals that end a training: it saves its state before it ends."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from onmt_entmax.systems import ending_signals

Handler = Callable[[int, FrameType | None], object] | int
"""What Python does at a signal: a function, or `signal.SIG_DFL` or `signal.SIG_IGN`"""


@contextmanager
def collected_signals(alone: bool) -> Iterator[list[int]]:
    """Collect SIGINT, SIGTERM and SIGHUP in a list, so that a run saves its state before it ends.

    Ignored signals stay ignored, such as SIGHUP after `nohup` or SIGINT in a script's background
    job. A second signal has no effect, since many come twice: if a terminal closes, the kernel and
    the shell both send SIGHUP; `torchrun` and job schedulers pass on what a user has sent to all
    processes. Only in a run of one process, a SIGINT that comes second has its usual effect, for a
    user who does not want to wait.

    A training in another thread than the main one collects nothing: Python calls handlers in the
    main thread, where alone they can be set.

    Args:
        alone: whether this is the only process of the run.

    Yields:
        The list of the numbers of the signals received so far; it grows.
    """
    received: list[int] = []
    before = _replaceable_handlers()

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if alone and signal.SIGINT in before:
            signal.signal(signal.SIGINT, before[signal.SIGINT])

    for number in before:
        signal.signal(number, handle)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _replaceable_handlers() -> Mapping[int, Handler]:
    """Return the handlers that this thread may replace for a while, by their signals.

    The handler that C code has installed, for which Python has None, is not one: it could not be
    set again.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    handlers = {number: signal.getsignal(number) for number in ending_signals()}
    return {
        number: handler
        for number, handler in handlers.items()
        if handler is not None and handler is not signal.SIG_IGN
    }
