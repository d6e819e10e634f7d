"""A run with `max_seconds` that is resumed: it continues at its own time, if there is any left."""

from pathlib import Path

import pytest

from onmt_entmax.train.trainer import Trainer
from tests.train.clocks import FakeClock, replace_clock
from tests.train.timed_trainings import TIMED, Durations, move_clock
from tests.train.trainers import resumed_trainer, trainer_of

MINUTE = {**TIMED, "max_seconds": 60, "save_checkpoint_steps": 10}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock that trainings read."""
    return replace_clock(monkeypatch, now=1e6)


def test_a_resumed_run_continues_at_its_time(tmp_path: Path, clock: FakeClock) -> None:
    """The time between the two runs does not count: learning rates are those of one run."""
    options = {**MINUTE, "valid_steps": 10}
    durations = Durations([1.0], [4.0], [0.0])

    def rates_of(run: Trainer) -> list[float]:
        with pytest.MonkeyPatch.context() as patch:
            updates = move_clock(patch, clock, run, durations)
            run.train()
        return [update.rate for update in updates]

    uninterrupted = rates_of(trainer_of(tmp_path, **options))
    clock.now += 1000
    rest = uninterrupted[20:]
    assert rest
    assert rates_of(resumed_trainer(tmp_path, 20, **options)) == rest


@pytest.mark.parametrize(
    ("last_validation", "later_checkpoints", "last_step"),
    [
        # step  updates  validation  checkpoint  seconds after these
        #   10       10                       1  11
        #   20       10           9           1  31
        #   30       10                       1  42
        #   38        8                          50, which leave as many as the end took before
        pytest.param(2.0, 1.0, 38, id="quicker end"),
        #   30       10                       9  50; only a later update would take into account
        #                                        that checkpoints have become slower
        pytest.param(9.0, 9.0, 30, id="slower checkpoints"),
    ],
)
def test_a_run_that_ended_by_time_has_nothing_left(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clock: FakeClock,
    last_validation: float,
    later_checkpoints: float,
    last_step: int,
) -> None:
    """Its end may have taken less time than was kept for it, or more.

    Updates take 1 second; a checkpoint follows every 10, and a validation every 20. The first
    validation takes 9 seconds, the first two checkpoints 1 second.
    """
    options = {**MINUTE, "valid_steps": 20}
    durations = Durations([1.0], [9.0, last_validation], [1.0, 1.0, later_checkpoints])
    run = trainer_of(tmp_path, **options)
    move_clock(monkeypatch, clock, run, durations)
    outcome = run.train()
    assert (outcome.step, outcome.reason) == (last_step, "max_seconds")
    resumed = resumed_trainer(tmp_path, last_step, **options)
    assert resumed.train().step == last_step
