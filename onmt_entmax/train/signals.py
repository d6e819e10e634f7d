"""Signals that end a training: it saves its state before it ends."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from onmt_entmax.systems import ending_signals


@contextmanager
def collected_signals(alone: bool) -> Iterator[list[int]]:
    """Collect SIGINT, SIGTERM and SIGHUP in a list, so that a run saves its state before it ends.

    Ignored signals stay ignored, such as SIGHUP after `nohup` or SIGINT in a script's background
    job. A second signal has no effect, since many come twice: if a terminal closes, the kernel and
    the shell both send SIGHUP; `torchrun` and job schedulers pass on what a user has sent to all
    processes. Only in a run of one process, a SIGINT that comes second has its usual effect, for a
    user who does not want to wait.

    Args:
        alone: whether this is the only process of the run.

    Yields:
        The list of the numbers of the signals received so far; it grows.
    """
    received: list[int] = []
    handlers = {number: signal.getsignal(number) for number in ending_signals()}
    before = {
        number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN
    }

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
