"""Signals while training: each ends the run, and nothing that was trained is lost."""

import fcntl
import os
import pty
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import checkpoint_steps, load
from onmt_entmax.cli.train import main as train
from onmt_entmax.files import locked
from onmt_entmax.train import run as training_run
from onmt_entmax.train.contexts import collected_signals
from onmt_entmax.train.validation import Evaluate
from tests.commands import CONSOLE, ENVIRONMENT, started, weights
from tests.in_process import exit_status
from tests.toy import write_config
from tests.train.trainers import on_padded_batches


def endless(folder: Path, **changes: object) -> list[str]:
    """Return the arguments of a run without an end, which saves nothing before it ends."""
    settings = {"train_steps": 10**6, "save_checkpoint_steps": 10**6, "valid_steps": 5}
    path = write_config(folder, rnn_size=8, selection="token_accuracy", **settings | changes)
    return ["-config", str(path)]


def while_evaluating(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Do something once, in the first validation; validations measure nothing."""
    validations = count(1)

    def make_evaluate(*_: object) -> Evaluate:
        def evaluate(model: object) -> dict[str, float]:
            if next(validations) == 1:
                do()
            return {"loss": 1.0, "token_accuracy": 50.0, "support": 2.0}

        return evaluate

    monkeypatch.setattr(training_run, "make_evaluate", make_evaluate)


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
        shown = b""
        while b"validation  step      10/1000000" not in shown:
            shown += os.read(terminal, 10_000)
        os.close(terminal)
        assert process.wait(60) == 128 + signal.SIGHUP
    run = tmp_path / "run"
    last = run / f"step_{checkpoint_steps(run)[-1]}"
    assert int(last.name.removeprefix("step_")) > 10
    load(last)
    assert (last / "training" / "state.pt").is_file()


def kill_training(arguments: list[str], checkpoint: Path) -> None:
    """Start a training, and kill it when it has written a checkpoint, or at its end."""
    with started(
        [*CONSOLE, "train", *arguments], env=ENVIRONMENT, stderr=subprocess.DEVNULL
    ) as process:
        end = time.monotonic() + 60
        while process.poll() is None and not checkpoint.is_dir():
            assert time.monotonic() < end
            time.sleep(0.01)


def test_kills_lose_no_update(tmp_path: Path) -> None:
    """SIGKILL at any time: the run continues, and its weights are those of an uninterrupted one."""
    changes = {"valid_steps": 8, "save_checkpoint_steps": 4, "train_steps": 24, "dropout": 0.3}
    arguments, run = endless(tmp_path, **changes), tmp_path / "run"
    kill_training(arguments, run / "step_4")
    kill_training([*arguments, "-train_from", str(run)], run / "step_12")
    assert train([*arguments, "-train_from", str(run)]) == 0
    assert train([*arguments, "-save_model", str(tmp_path / "whole")]) == 0
    whole = weights(tmp_path / "whole", 24)
    assert all(tensor.equal(whole[name]) for name, tensor in weights(run, 24).items())


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


def test_several_processes_ignore_a_second_interrupt() -> None:
    with collected_signals(alone=False) as received:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGINT):
            os.kill(os.getpid(), number)
    assert received == [signal.SIGHUP, signal.SIGINT, signal.SIGINT]


def test_a_training_whose_folder_was_replaced_writes_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was removed by `rm -r run`, and another training has begun there."""
    run, elsewhere = tmp_path / "run", tmp_path / "deleted"
    other = ExitStack()

    def replace() -> None:
        run.rename(elsewhere)
        other.enter_context(locked(run))

    while_evaluating(monkeypatch, replace)
    with other:
        assert exit_status(train, endless(tmp_path, save_checkpoint_steps=2)) == 2
        assert [path.name for path in run.iterdir()] == [".lock"]
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith(f"train.py: error: {run}: was deleted or replaced while")
    assert checkpoint_steps(elsewhere) == [2, 4]


def test_a_training_whose_folder_was_deleted_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    while_evaluating(monkeypatch, lambda: shutil.rmtree(tmp_path / "run"))
    assert exit_status(train, endless(tmp_path)) == 2
    assert "run: was deleted or replaced while" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "run").exists()
