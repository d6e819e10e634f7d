"""A run with `max_seconds` that is resumed: it continues at its own time, if there is any left."""

from pathlib import Path

import pytest

from onmt_entmax.train.trainer import Trainer
from tests.train.clocks import FakeClock, replace_clock
from tests.train.timed_trainings import TIMED, Durations, TimedUpdate, move_clock
from tests.train.trainers import resumed_trainer, trainer_of

MINUTE = {**TIMED, "max_seconds": 60, "save_checkpoint_steps": 10}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock that trainings read."""
    return replace_clock(monkeypatch, now=1e6)


def train_by_clock(run: Trainer, clock: FakeClock, durations: Durations) -> list[TimedUpdate]:
    """Train to the end, in the time that the parts of the training take; return its updates."""
    with pytest.MonkeyPatch.context() as patch:
        updates = move_clock(patch, clock, run, durations)
        run.train()
    return updates


def test_a_resumed_run_continues_at_its_time(tmp_path: Path, clock: FakeClock) -> None:
    """The time between the two runs does not count: learning rates are those of one run."""
    options = {**MINUTE, "valid_steps": 10}
    durations = Durations(updates=[1.0], validations=[4.0], checkpoints=[0.0])
    whole = train_by_clock(trainer_of(tmp_path, **options), clock, durations)
    clock.now += 1000
    resumed = train_by_clock(resumed_trainer(tmp_path, 20, **options), clock, durations)
    assert len(resumed) > 0
    assert [update.rate for update in resumed] == [update.rate for update in whole[20:]]


# --- a run that its limit has ended ----------------------------------------------------------

LESS_VALIDATED = {**MINUTE, "valid_steps": 20}


def assert_nothing_left(
    folder: Path, clock: FakeClock, durations: Durations, last_step: int
) -> None:
    """Train to the limit of time, which ends the run at a step, and resume the run there."""
    run = trainer_of(folder, **LESS_VALIDATED)
    train_by_clock(run, clock, durations)
    assert run.state.counters.step == last_step
    assert resumed_trainer(folder, last_step, **LESS_VALIDATED).train().step == last_step


def test_a_run_whose_end_was_quick_has_nothing_left(tmp_path: Path, clock: FakeClock) -> None:
    """Ten seconds are kept for the end, as the validation and the checkpoint before took.

    step    seconds of updates    validation    checkpoint    all
    10      10                                  1             11
    20      10                    9             1             31
    30      10                                  1             42
    38      8                                                 50
    38                            2             1             53
    """
    durations = Durations(updates=[1.0], validations=[9.0, 2.0], checkpoints=[1.0])
    assert_nothing_left(tmp_path, clock, durations, last_step=38)


def test_a_run_that_ended_after_a_slow_checkpoint_has_nothing_left(
    tmp_path: Path, clock: FakeClock
) -> None:
    """The run ends after 50 seconds, with 10 for the end. It does not know that it takes 18.

    step    seconds of updates    validation    checkpoint    all
    10      10                                  1             11
    20      10                    9             1             31
    30      10                                  9             50
    """
    durations = Durations(updates=[1.0], validations=[9.0], checkpoints=[1.0, 1.0, 9.0])
    assert_nothing_left(tmp_path, clock, durations, last_step=30)
