"""Signals while training: each ends the run, and nothing that was trained is lost."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import checkpoint_steps, load
from onmt_entmax.cli.train import main as train
from onmt_entmax.train import graphs
from tests.commands import CONSOLE, ENVIRONMENT
from tests.toy import write_config
from tests.train.test_run_folder import while_evaluating


def endless(folder: Path, **changes: object) -> list[str]:
    """Return the arguments of a run without an end, which saves nothing before it ends."""
    settings = {"train_steps": 10**6, "save_checkpoint_steps": 10**6, "valid_steps": 5}
    path = write_config(folder, rnn_size=8, selection="token_accuracy", **settings | changes)
    return ["-config", str(path)]


@contextmanager
def on_a_terminal(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run `onmt-entmax` on a terminal; yield its process and the other end of the terminal."""
    terminal, inner = pty.openpty()
    process = subprocess.Popen(
        [*CONSOLE, *arguments],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env=ENVIRONMENT,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(inner)
    try:
        yield process, terminal
    finally:
        process.kill()
        process.wait()


def read_until(terminal: int, text: str) -> None:
    """Read what a terminal shows, up to a text."""
    shown = b""
    while text.encode() not in shown:
        try:
            shown += os.read(terminal, 10_000)
        except OSError:  # as when the process has ended
            pytest.fail(f"ended: {shown.decode()}")


@pytest.mark.skipif(sys.platform != "linux", reason="closes a terminal as Linux does")
def test_a_closed_terminal_loses_nothing(tmp_path: Path) -> None:
    """All processes get SIGHUP, and nothing can be printed any more."""
    with on_a_terminal("train", *endless(tmp_path)) as (process, terminal):
        read_until(terminal, "validation  step      10/1000000")
        os.close(terminal)
        assert process.wait(60) == 128 + signal.SIGHUP
    (*_, last) = checkpoint_steps(tmp_path / "run")
    assert last > 10
    load(tmp_path / "run" / f"step_{last}")
    assert (tmp_path / "run" / f"step_{last}" / "training" / "state.pt").is_file()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("padded", [False, True])
def test_a_signal_in_a_validation_ends_the_run_after_it(
    tmp_path: Path, monkeypatch, number: signal.Signals, padded: bool
) -> None:
    monkeypatch.setattr(graphs, "ON_CPU", padded)
    while_evaluating(monkeypatch, lambda: os.kill(os.getpid(), number))
    assert train(endless(tmp_path)) == 128 + number
    assert checkpoint_steps(tmp_path / "run")[-1] == 6
    assert train([*endless(tmp_path, train_steps=7), "-train_from", str(tmp_path / "run")]) == 0


def test_the_time_limit_and_a_signal(tmp_path: Path, monkeypatch) -> None:
    """The signal is the status; the time that has passed counts when the run is resumed."""
    while_evaluating(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGTERM))
    arguments = endless(tmp_path, max_seconds=0.01, valid_steps=1)
    assert train(arguments) == 0
    assert checkpoint_steps(tmp_path / "run") == [1]
    assert train([*arguments, "-train_from", str(tmp_path / "run")]) == 0
    assert checkpoint_steps(tmp_path / "run") == [1]


def test_after_nohup_a_closed_terminal_changes_nothing(tmp_path: Path, monkeypatch) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        while_evaluating(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGHUP))
        assert train(endless(tmp_path, train_steps=7)) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    assert checkpoint_steps(tmp_path / "run")[-1] == 7


def while_saving(monkeypatch: pytest.MonkeyPatch, *numbers: signal.Signals) -> None:
    """Send signals to this process while it writes its second checkpoint."""
    save, times = torch.save, []

    def saving(*arguments: object) -> None:
        save(*arguments)
        times.append(True)
        for number in numbers if len(times) == 2 else ():
            os.kill(os.getpid(), number)

    monkeypatch.setattr(torch, "save", saving)


@pytest.mark.parametrize(
    "numbers",
    [
        (signal.SIGTERM, signal.SIGTERM),  # from a scheduler, and passed on by torchrun
        (signal.SIGHUP, signal.SIGHUP),  # from the kernel and the shell
        (signal.SIGINT, signal.SIGTERM),
    ],
)
def test_signals_while_saving_let_it_be_saved(tmp_path: Path, monkeypatch, numbers) -> None:
    while_saving(monkeypatch, *numbers)
    arguments = endless(tmp_path, valid_steps=100, save_checkpoint_steps=2)
    assert train(arguments) == 128 + numbers[0]
    assert checkpoint_steps(tmp_path / "run") == [2, 4, 5]


def test_a_second_interrupt_while_saving_leaves_the_checkpoint_before(
    tmp_path: Path, monkeypatch
) -> None:
    while_saving(monkeypatch, signal.SIGINT, signal.SIGINT)
    arguments = endless(tmp_path, valid_steps=100, save_checkpoint_steps=2)
    with pytest.raises(KeyboardInterrupt):
        train(arguments)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {".lock", "metrics.jsonl", "step_2"}
    monkeypatch.undo()
    assert train([*arguments, "-train_from", str(tmp_path / "run"), "-train_steps", "3"]) == 0
