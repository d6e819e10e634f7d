"""Signals that end a training run, after it has saved its state."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def collected_signals(alone: bool = True) -> Iterator[list[int]]:
    """Collect SIGINT, SIGTERM and SIGHUP in a list, so that a run saves its state before it ends.

    Ignored signals stay ignored, such as SIGHUP after `nohup` or SIGINT in a script's background
    job. Signals often come twice: SIGHUP from the kernel and from the shell of a closed terminal,
    the others from `torchrun` or a job scheduler and from who asked that. Only a SIGINT after
    another signal has its usual effect, for a user who does not want to wait.

    Args:
        alone: this is the only process of the run; otherwise a second SIGINT has no effect either.
    """
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if alone and signal.SIGINT in before:
            signal.signal(signal.SIGINT, before[signal.SIGINT])

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.getsignal(number) for number in numbers}
    before = {n: handler for n, handler in handlers.items() if handler is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, handle)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
