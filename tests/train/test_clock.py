"""The clock of a run keeps its durations when it is resumed, and is the first process's."""

from pathlib import Path

import pytest

from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.clock import Clock
from tests.train import trainers
from tests.train.changed_trainers import give_dev_losses
from tests.train.clocks import replace_clock
from tests.train.timed_trainings import TIMED
from tests.train.trainers import trainer_of


@pytest.fixture(autouse=True)
def _no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_clock(monkeypatch, now=1e6)


def test_a_resumed_clock_expects_an_end_as_long_as_before() -> None:
    clock, resumed = Clock(60, Processes()), Clock(60, Processes())
    clock.seconds, clock.validating, clock.saving = 30.0, 9.0, 1.0
    resumed.load_state_dict(clock.state_dict())
    assert resumed.at_end() == clock.at_end() == 30 + 9 + 1


class SecondProcess(Processes):
    """One whose own clock stands still; by the first one's, all that is timed takes 77 seconds."""

    def from_first(self, value: object) -> object:
        return 77.0 if isinstance(value, float) else value


def test_seconds_are_those_of_the_first_process() -> None:
    clock = Clock(100, SecondProcess())
    clock.share()
    assert clock.seconds == 77


def test_a_checkpoint_takes_what_it_took_the_first_process() -> None:
    """It counts from the next update on; see `Clock.saved`."""
    clock = Clock(100, SecondProcess())
    clock.saved(0.0)
    clock.begin_update()
    assert clock.saving == 77


def test_all_processes_end_by_the_time_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their own times, they would disagree on the rate and on the end.

    Each update is validated and saved. After the first, 77 of 100 seconds have passed; from the
    second on, the end is known to take 77 more.
    """
    monkeypatch.setattr(trainers, "Processes", SecondProcess)
    run = trainer_of(tmp_path, max_seconds=100, valid_steps=1, **TIMED)
    give_dev_losses(run, 9.0, 8.0)
    outcome = run.train()
    assert (outcome.step, outcome.reason) == (2, "max_seconds")
