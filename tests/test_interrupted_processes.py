"""Training in several processes, of which one is killed, or all get a signal."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.commands import succeed
from tests.torchrun import children, needs_proc, settings, training
from tests.toy import write_config

pytestmark = [needs_proc, pytest.mark.slow]


def test_a_run_whose_worker_was_killed_ends_and_resumes(tmp_path: Path) -> None:
    run = tmp_path / "run"
    config = write_config(tmp_path, **settings(run, train_steps=100000))
    with training(config) as process:
        *_, worker = children(process.pid)
        os.kill(worker, signal.SIGKILL)
        killed = time.monotonic()
        printed = process.stderr.read()
        assert process.wait(120) != 0
        assert time.monotonic() - killed < 100
    assert "this or another process of the run has failed" in printed
    newest = max(int(path.name.removeprefix("step_")) for path in run.glob("step_*"))
    assert newest >= 20  # the report of step 30 comes before its checkpoint
    printed = succeed("train.py", "-config", config, "-train_from", run, "-train_steps", newest + 5)
    assert f"continuing from {run / f'step_{newest}'}" in printed


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_training_saves_when_torchrun_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    """A terminal or a scheduler signals all processes, and `torchrun` passes that on once more.

    SIGKILL ends `torchrun` alone.
    """
    changes = dict.fromkeys(("train_steps", "valid_steps", "save_checkpoint_steps"), 10**6)
    config = write_config(tmp_path, **settings(tmp_path / "run", **changes))
    with training(config) as process:
        workers = children(process.pid)
        for pid in [process.pid, *(workers if number != signal.SIGKILL else [])]:
            os.kill(pid, number)
        printed = process.stderr.read()  # up to the end of the last process
    (folder,) = (tmp_path / "run").glob("step_*")
    assert f"stopped at {folder.name.replace('_', ' ')} (" in printed
