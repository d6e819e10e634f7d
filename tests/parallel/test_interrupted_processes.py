"""Training in two processes that `torchrun` started: one is killed, or all get a signal."""

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.child_processes import children_of
from tests.commands import succeed
from tests.parallel.torchrun import needs_proc, started_training, training_options
from tests.toy import write_config

pytestmark = [needs_proc, pytest.mark.slow]

ENDLESS = 10**6  # more updates than a training makes before it is stopped


class KilledWorker(NamedTuple):
    """A training that has ended since one of its two processes was killed."""

    config: Path
    run: Path
    """The folder of the run."""
    status: int
    """The exit status of `torchrun`."""
    seconds: float
    """From the kill to the end of `torchrun`."""
    printed: str

    def newest_step(self) -> int:
        """Return the step of the last checkpoint."""
        return max(int(path.name.removeprefix("step_")) for path in self.run.glob("step_*"))


class TestAKilledWorker:
    @pytest.fixture(scope="class")
    def killed(self, tmp_path_factory: pytest.TempPathFactory) -> KilledWorker:
        folder = tmp_path_factory.mktemp("killed")
        run = folder / "run"
        config = write_config(folder, **training_options(run, train_steps=ENDLESS))
        with started_training(config) as process:
            *_, worker = children_of(process.pid)
            os.kill(worker, signal.SIGKILL)
            start = time.monotonic()
            printed = process.stderr.read()
            status = process.wait(120)
            return KilledWorker(config, run, status, time.monotonic() - start, printed)

    def test_ends_the_training_with_an_error(self, killed: KilledWorker) -> None:
        assert killed.status != 0
        assert "this or another process of the run has failed" in killed.printed

    def test_ends_the_training_before_a_silent_process_would_count_as_lost(
        self, killed: KilledWorker
    ) -> None:
        """That takes five minutes; `torchrun` notices a process that ended."""
        assert killed.seconds < 100

    def test_leaves_the_checkpoint_before_the_kill(self, killed: KilledWorker) -> None:
        """The report of step 30 comes before its checkpoint, so the last one may be of step 20."""
        assert killed.newest_step() >= 20

    def test_leaves_a_run_that_one_process_continues(self, killed: KilledWorker) -> None:
        newest = killed.newest_step()
        more = ("-train_from", killed.run, "-train_steps", newest + 5)
        printed = succeed("train.py", "-config", killed.config, *more)
        assert f"continuing from {killed.run / f'step_{newest}'}" in printed


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_training_saves_when_torchrun_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    """A terminal or a scheduler signals all processes, and `torchrun` passes its signal on.

    SIGKILL ends `torchrun` alone.
    """
    changes = dict.fromkeys(("train_steps", "valid_steps", "save_checkpoint_steps"), ENDLESS)
    config = write_config(tmp_path, **training_options(tmp_path / "run", **changes))
    with started_training(config) as process:
        workers = children_of(process.pid)
        signalled = [process.pid] if number == signal.SIGKILL else [process.pid, *workers]
        for pid in signalled:
            os.kill(pid, number)
        printed = process.stderr.read()  # up to the end of the last process
    (folder,) = (tmp_path / "run").glob("step_*")
    assert f"stopped at {folder.name.replace('_', ' ')} (" in printed
