"""An experiment that is killed, or whose terminal is closed: its trainings save, and end."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import checkpoint_steps
from tests.commands import CONSOLE, ENVIRONMENT, run
from tests.matrices import write_matrix
from tests.test_sharding import is_running
from tests.train.test_signals import on_a_terminal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="stops processes as Linux does"),
]


def endless(folder: Path) -> tuple[Path, Path]:
    """Write a matrix of one training without an end; return it and the run folder."""
    options = {"train_steps": 10**6, "valid_steps": 10**6, "save_checkpoint_steps": 10**6}
    path = write_matrix(folder, seeds=[1], options=options | {"report_every": 1})
    return path, folder / "runs" / "one" / "seed-1" / "model"


def training(model: Path) -> int:
    """Wait until a training has done an update; return its process."""
    while not (model / "metrics.jsonl").is_file() or not (model / "metrics.jsonl").stat().st_size:
        time.sleep(0.05)
    found = re.match(r"process (\d+) on ", (model / ".lock").read_text())
    assert found is not None
    return int(found[1])


def wait_for_end(process: int) -> None:
    until = time.monotonic() + 60
    while is_running(process):
        assert time.monotonic() < until, "the training goes on"
        time.sleep(0.05)


def test_a_training_ends_with_its_experiment(tmp_path: Path) -> None:
    path, model = endless(tmp_path)
    command = [*CONSOLE, "experiment", "run", str(path)]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL) as runner:
        child = training(model)
        os.kill(child, signal.SIGSTOP)  # so that it cannot end before it is looked for
        runner.kill()
    again = run("onmt_entmax", "experiment", "run", path)
    assert again.returncode == 1
    folder = model.parent
    assert f"one seed 1: left to another process: {folder}: process {child} on" in again.stderr
    assert "not done: one seed 1; the same command tries again" in again.stderr
    os.kill(child, signal.SIGCONT)
    wait_for_end(child)
    assert checkpoint_steps(model)[-1] > 0


def test_a_closed_terminal_loses_nothing(tmp_path: Path) -> None:
    path, model = endless(tmp_path)
    with on_a_terminal("experiment", "run", str(path)) as (process, terminal):
        child = training(model)
        os.close(terminal)
        assert process.wait(60) == 128 + signal.SIGHUP
    assert not is_running(child)
    assert checkpoint_steps(model)[-1] > 0
