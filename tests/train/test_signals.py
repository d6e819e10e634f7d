"""Signals while training: nothing that was trained is lost, and ignored ones change nothing."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import checkpoint_steps, load
from onmt_entmax.cli.train import main as train
from onmt_entmax.train.signals import collected_signals
from tests.commands import CONSOLE, ENVIRONMENT, started, weights
from tests.train.endless_runs import endless, while_evaluating
from tests.train.trainers import on_padded_batches

SECONDS = 60  # that a training may take to come to a point, on a busy machine


def read_until(terminal: int, text: bytes) -> None:
    """Read from a terminal until it has shown a text."""
    end = time.monotonic() + SECONDS
    shown = b""
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
        assert ready, f"{text!r} was not shown within {SECONDS} seconds: {shown!r}"
        shown += os.read(terminal, 10_000)


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


@pytest.mark.skipif(sys.platform != "linux", reason="closes a terminal as Linux does")
def test_a_closed_terminal_loses_nothing(tmp_path: Path) -> None:
    """All processes get SIGHUP, and nothing can be printed any more."""
    terminal, inner = pty.openpty()
    with started(
        [*CONSOLE, "train", *endless(tmp_path)],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env=ENVIRONMENT,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as process:
        os.close(inner)
        read_until(terminal, b"validation  step      10/1000000")
        os.close(terminal)
        assert process.wait(SECONDS) == 128 + signal.SIGHUP
    run = tmp_path / "run"
    last = run / f"step_{checkpoint_steps(run)[-1]}"
    assert int(last.name.removeprefix("step_")) > 10
    load(last)
    assert (last / "training" / "state.pt").is_file()


def kill_training(arguments: list[str], run: Path, step: int) -> None:
    """Start a training without an end, and kill it when it has written a checkpoint.

    Args:
        arguments: of the training.
        run: its folder.
        step: of the checkpoint; it may have written later ones.
    """
    with started(
        [*CONSOLE, "train", *arguments], env=ENVIRONMENT, stderr=subprocess.DEVNULL
    ) as process:
        end = time.monotonic() + SECONDS
        while max(checkpoint_steps(run), default=0) < step:
            assert process.poll() is None, "the training ended by itself"
            assert time.monotonic() < end, f"no checkpoint of step {step} in {SECONDS} seconds"
            time.sleep(0.01)
    assert process.returncode == -signal.SIGKILL  # it was training until `started` killed it


def test_kills_lose_no_update(tmp_path: Path) -> None:
    """SIGKILL at any time: the run continues, and its weights are those of an uninterrupted one."""
    changes = {"valid_steps": 8, "save_checkpoint_steps": 4, "dropout": 0.3}
    arguments, run = endless(tmp_path, **changes), tmp_path / "run"
    kill_training(arguments, run, step=4)
    between = checkpoint_steps(run)[-1]
    kill_training([*arguments, "-train_from", str(run)], run, step=between + 8)
    last = checkpoint_steps(run)[-1] + 8
    arguments += ["-train_steps", str(last)]
    assert train([*arguments, "-train_from", str(run)]) == 0
    assert train([*arguments, "-save_model", str(tmp_path / "whole")]) == 0
    whole = weights(tmp_path / "whole", last)
    assert all(tensor.equal(whole[name]) for name, tensor in weights(run, last).items())


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


def while_saving(monkeypatch: pytest.MonkeyPatch, *numbers: signal.Signals) -> None:
    """Send signals to this process while it writes its second checkpoint."""
    save, checkpoints = torch.save, count(1)

    def save_and_signal(*arguments: object) -> None:
        save(*arguments)
        if next(checkpoints) == 2:
            for number in numbers:
                os.kill(os.getpid(), number)

    monkeypatch.setattr(torch, "save", save_and_signal)


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param((signal.SIGTERM, signal.SIGTERM), id="of a scheduler, and by torchrun"),
        pytest.param((signal.SIGHUP, signal.SIGHUP), id="of the kernel, and of the shell"),
        pytest.param((signal.SIGINT, signal.SIGTERM), id="a key, then a command"),
    ],
)
def test_signals_while_saving_let_it_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: tuple[int, ...]
) -> None:
    while_saving(monkeypatch, *numbers)
    arguments = endless(tmp_path, valid_steps=100, save_checkpoint_steps=2)
    assert train(arguments) == 128 + numbers[0]
    assert checkpoint_steps(tmp_path / "run") == [2, 4, 5]


def test_a_second_interrupt_while_saving_leaves_the_checkpoint_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_saving(monkeypatch, signal.SIGINT, signal.SIGINT)
    arguments = endless(tmp_path, valid_steps=100, save_checkpoint_steps=2)
    with pytest.raises(KeyboardInterrupt):
        train(arguments)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {".lock", "metrics.jsonl", "step_2"}
    monkeypatch.undo()
    assert train([*arguments, "-train_from", str(tmp_path / "run"), "-train_steps", "3"]) == 0


def test_several_processes_ignore_a_second_interrupt(
    harmless_signals: list[int],
) -> None:
    numbers = [signal.SIGHUP, signal.SIGINT, signal.SIGINT]
    with collected_signals(alone=False) as received:
        for number in numbers:
            signal.raise_signal(number)
    assert received == numbers
    assert harmless_signals == []
