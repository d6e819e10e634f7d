"""`ended_by_exception`: signals that end a process become an exception; no handler stays behind."""

import os
import signal
from collections.abc import Callable

import pytest

from onmt_entmax.files import ended_by_exception

ENDING = (signal.SIGTERM, signal.SIGHUP)


def handlers() -> list[object]:
    """Return what the signals that end a process do now."""
    return [signal.getsignal(number) for number in ENDING]


def end_in_block() -> None:
    """Receive SIGTERM in a block."""
    with ended_by_exception():
        os.kill(os.getpid(), signal.SIGTERM)


def test_the_exit_status_is_that_of_a_shell() -> None:
    with pytest.raises(SystemExit) as exit_:
        end_in_block()
    assert exit_.value.code == 128 + signal.SIGTERM


def test_after_the_block_signals_do_what_they_did_before() -> None:
    before = handlers()
    with pytest.raises(SystemExit):
        end_in_block()
    assert handlers() == before


def test_a_signal_that_comes_before_all_handlers_are_set_leaves_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = handlers()
    set_handler = signal.signal

    def set_and_receive(number: int, handler: Callable[..., object] | signal.Handlers) -> None:
        set_handler(number, handler)
        if callable(handler):  # not one of Python's own, which restore or ignore
            os.kill(os.getpid(), number)

    monkeypatch.setattr(signal, "signal", set_and_receive)
    with pytest.raises(SystemExit), ended_by_exception():
        pytest.fail("the block began")
    assert handlers() == before
