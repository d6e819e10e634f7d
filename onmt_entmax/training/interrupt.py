"""Signals that ask a run to end: it finishes its step, saves, and goes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def collected_signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM instead of dying of them; a second one kills as usual."""
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, before[signal.Signals(number)])

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        signal.signal(number, handle)
    try:
        yield received
    finally:
        for number in numbers:
            signal.signal(number, before[number])
