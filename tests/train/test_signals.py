"""Signals in a training: it ends after the next update, unless they are ignored."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.cli.train import main as train
from onmt_entmax.systems import ending_signals
from onmt_entmax.train.signals import collected_signals
from tests.train.changed_trainers import on_padded_batches
from tests.train.endless_runs import endless, while_evaluating


@pytest.mark.parametrize(
    ("number", "padded"),
    [(signal.SIGINT, False), (signal.SIGTERM, True), (signal.SIGHUP, False)],
    ids=["SIGINT", "SIGTERM, padded", "SIGHUP"],
)
def test_a_signal_in_a_validation_ends_the_run_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, padded: bool
) -> None:
    """The validation is that of step 5; the signal is acted on after the next update."""
    while_evaluating(monkeypatch, lambda: os.kill(os.getpid(), number))
    with on_padded_batches(padded):
        assert train(endless(tmp_path)) == 128 + number
        assert checkpoint_steps(tmp_path / "run")[-1] == 6
        more = ["-train_from", str(tmp_path / "run")]
        assert train([*endless(tmp_path, train_steps=7), *more]) == 0


def test_after_nohup_a_closed_terminal_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        while_evaluating(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGHUP))
        assert train(endless(tmp_path, train_steps=7)) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    assert checkpoint_steps(tmp_path / "run")[-1] == 7


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


def test_several_processes_collect_a_second_interrupt_as_any_signal(
    harmless_signals: list[int],
) -> None:
    """In a run of one process, the second SIGINT would have its usual effect."""
    numbers = [signal.SIGHUP, signal.SIGINT, signal.SIGINT]
    with collected_signals(alone=False) as received:
        for number in numbers:
            signal.raise_signal(number)
    assert received == numbers
    assert harmless_signals == []


def test_a_signal_that_c_code_handles_is_left_to_it(
    monkeypatch: pytest.MonkeyPatch, harmless_signals: list[int]
) -> None:
    """Python has None for such a handler, here that of SIGHUP, and could not set it again."""
    handler_of = signal.getsignal
    monkeypatch.setattr(
        signal, "getsignal", lambda number: None if number == signal.SIGHUP else handler_of(number)
    )
    with collected_signals(alone=True) as received:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGINT)
    assert received == [signal.SIGINT]
    assert harmless_signals == [signal.SIGHUP]


def handlers() -> list[object]:
    """Return the handlers of the signals that end a process."""
    return [signal.getsignal(number) for number in ending_signals()]


def handlers_while_collecting() -> list[object]:
    """Return the handlers inside `collected_signals`."""
    with collected_signals(alone=True):
        return handlers()


def test_the_main_thread_collects_signals() -> None:
    """So the test after this one does not pass because nothing is ever collected."""
    before = handlers()
    assert set(handlers_while_collecting()).isdisjoint(before)
    assert handlers() == before


def test_another_thread_collects_no_signals() -> None:
    """Python would refuse to set handlers there, and the training with it."""
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(handlers_while_collecting).result() == handlers()
