"""A clock that only tests move."""

import time

import pytest


class FakeClock:
    """Stands still until a test moves it.

    Attributes:
        now: seconds, as of `time.monotonic`.
    """

    def __init__(self, now: float) -> None:
        self.now = now


def replace_clock(monkeypatch: pytest.MonkeyPatch, now: float) -> FakeClock:
    """Make `time.monotonic` read a fake clock, whichever module calls it; return the clock."""
    clock = FakeClock(now)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock
