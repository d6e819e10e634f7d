"""Contexts of a training: collected signals, and a heap that garbage collection leaves alone."""

import gc
import signal
from collections.abc import Iterator

import pytest

from onmt_entmax.train.contexts import frozen_heap
from onmt_entmax.train.signals import collected_signals


@pytest.fixture
def harmless_signals() -> Iterator[list[int]]:
    """Signals that reach pytest's own process, which they do not end: they are only listed."""
    reached: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: reached.append(number))
        for number in (signal.SIGHUP, signal.SIGINT)
    }
    yield reached
    for number, handler in before.items():
        signal.signal(number, handler)


def test_several_processes_ignore_a_second_interrupt(
    harmless_signals: list[int],
) -> None:
    numbers = [signal.SIGHUP, signal.SIGINT, signal.SIGINT]
    with collected_signals(alone=False) as received:
        for number in numbers:
            signal.raise_signal(number)
    assert received == numbers
    assert harmless_signals == []


def test_objects_that_the_caller_has_frozen_stay_frozen() -> None:
    """conftest.py does so: it freezes the libraries' objects once, for all tests."""
    gc.freeze()
    with frozen_heap():
        pass
    assert gc.get_freeze_count() > 0
