"""Training in several processes: the same updates as with one, one writer, and resuming."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from onmt_entmax.cli.train import main as train
from onmt_entmax.parallel.processes import ProcessError
from tests.commands import ENVIRONMENT, ROOT, succeed, weights
from tests.torchrun import children, needs_proc, settings, torchrun, training
from tests.toy import write_config


def assert_close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    """Fail unless weights are the same but for the order in which gradients are summed."""
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


# Trains, and fails if threads of the process group remain: they may abort Python while it ends.
_TRAIN = """
import sys
from pathlib import Path
from onmt_entmax.cli.train import main
status = main(sys.argv[1:])
threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
sys.exit(status or [name for name in threads if "gloo" in name] or 0)
"""


class Runs(NamedTuple):
    """Trainings of the same batches by one process and by two.

    Attributes:
        config: of both; it names the folder of the second.
        one: the run folder of one process.
        two: the run folder of two processes.
        errors: what the two processes wrote to the standard error.
    """

    config: Path
    one: Path
    two: Path
    errors: str


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("processes")
    one, two = folder / "one", folder / "two"
    succeed("train.py", "-config", write_config(folder, **settings(one, world_size=2)))
    config = write_config(folder, **settings(two))
    script = folder / "train.py"
    script.write_text(_TRAIN)
    command = torchrun(2, "-config", config, script=str(script))
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return Runs(config, one, two, done.stderr)


def test_two_processes_train_the_weights_of_one_with_the_same_batches(runs: Runs) -> None:
    assert_close(weights(runs.one, 20), weights(runs.two, 20))


def test_one_of_two_processes_reports(runs: Runs) -> None:
    assert runs.errors.count("validation  step 20/20") == 1


def test_one_process_continues_what_two_began(runs: Runs) -> None:
    """To the same weights as what one began."""
    longer = ["-config", runs.config, "-train_steps", 30, "-world_size", 2]
    for run in (runs.two, runs.one):
        succeed("train.py", *longer, "-train_from", run, "-save_model", run)
    assert_close(weights(runs.one, 30), weights(runs.two, 30))


# --- refused starts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transforms": ["sentencepiece"], "tgt_subword_nbest": -1}, "nbest: the transform sen"),
        ({"world_size": 3}, "takes 3 batches .*, which 2 processes cannot share evenly"),
    ],
    ids=["random subwords", "a batch is left over"],
)
def test_several_processes_refuse_what_they_cannot_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], message: str
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    config = write_config(tmp_path, **changes)
    with pytest.raises(ProcessError, match=message):
        train(["-config", str(config)])
    assert not (tmp_path / "run").exists()


def test_several_processes_that_nobody_started_are_one_line(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "train.py", "-config", write_config(tmp_path)]
    done = subprocess.run(
        command, env=ENVIRONMENT | {"WORLD_SIZE": "2"}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("train.py: error: WORLD_SIZE says that there are 2 processes")
    assert "Traceback" not in done.stderr


# --- runs that are ended ---------------------------------------------------------------------


@needs_proc
@pytest.mark.slow
def test_a_killed_worker_ends_the_run_and_it_resumes(tmp_path: Path) -> None:
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


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_what_ends_torchrun_lets_training_save(tmp_path: Path, number: signal.Signals) -> None:
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
