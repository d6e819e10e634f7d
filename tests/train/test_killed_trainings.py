"""Trainings that are killed, or whose terminal is closed, lose no update that they have saved."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import checkpoint_steps, load
from onmt_entmax.cli.train import main as train
from tests.commands import CONSOLE, ENVIRONMENT, started, weights
from tests.train.endless_runs import endless

SECONDS = 60  # that a training may take to come to a point, on a busy machine


def read_until(terminal: int, text: bytes) -> None:
    """Read from a terminal until it has shown a text."""
    end = time.monotonic() + SECONDS
    shown = b""
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
        assert ready, f"{text!r} was not shown within {SECONDS} seconds: {shown!r}"
        shown += os.read(terminal, 10_000)


@pytest.mark.skipif(sys.platform != "linux", reason="closes a terminal as Linux does")
def test_a_training_saves_when_its_terminal_is_closed(tmp_path: Path) -> None:
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


def test_a_killed_training_continues_as_if_it_had_not_been_killed(tmp_path: Path) -> None:
    """It is killed twice; its weights are those of an uninterrupted training."""
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
