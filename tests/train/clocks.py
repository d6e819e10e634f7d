"""A clock that only tests move."""

from types import ModuleType

import pytest


class FakeClock:
    """Stands still until a test moves it.

    Attributes:
        now: seconds, as of `time.monotonic`.
    """

    def __init__(self, now: float) -> None:
        self.now = now


def replace_clock(monkeypatch: pytest.MonkeyPatch, module: ModuleType, now: float) -> FakeClock:
    """Let a module that imports `time` read a clock of tests; return the clock."""
    clock = FakeClock(now)
    monkeypatch.setattr(module.time, "monotonic", lambda: clock.now)
    return clock
