"""What goes on beside a run: signals that ask it to end, and the garbage collector."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def collected_signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM instead of dying of them; a second one of either kills as usual.

    What is ignored stays so: SIGINT by what a script has put into the background.
    """
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {n: handler for n, handler in handlers.items() if handler is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, handle)
    try:
        yield received
    finally:
        restore()


@contextmanager
def resting_collector() -> Iterator[None]:
    """Keep the garbage collector from walking over what is loaded by now, and stays."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
