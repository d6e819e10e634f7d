"""Trainings with a limit of time, by a clock that the tests move."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from onmt_entmax.train import clock as clock_module
from onmt_entmax.train.run_folder import RunFolder
from onmt_entmax.train.trainer import Trainer
from tests.train.trainers import after_each_update, give_dev_losses, resumed_trainer, trainer_of

TIMED = {"rnn_size": 8, "decay_method": "cosine", "warmup_steps": 2, "train_steps": None}


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 1e6


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of trainings."""
    clock = Clock()
    monkeypatch.setattr(clock_module.time, "monotonic", lambda: clock.now)
    return clock


def take_time(
    run: Trainer,
    clock: Clock,
    update: Callable[[], float],
    validation: Callable[[], float],
) -> list[float]:
    """Make updates and validations take some seconds; return the learning rates of the updates."""
    rates: list[float] = []

    def after_an_update() -> None:
        rates.append(run.optimizer.param_groups[0]["lr"])
        clock.now += update()

    def evaluate(_: object) -> dict[str, float]:
        clock.now += validation()
        return {"loss": 1.0}

    after_each_update(run, after_an_update)
    run.evaluate = evaluate
    return rates


def let_saving_take_time(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, seconds: Callable[[], float]
) -> None:
    save = RunFolder.save

    def save_slowly(*arguments: object) -> None:
        clock.now += seconds()
        save(*arguments)

    monkeypatch.setattr(RunFolder, "save", save_slowly)


@pytest.mark.parametrize("load", [1.0, 3.0, 0.5], ids=["as planned", "loaded", "faster"])
def test_a_run_ends_in_time_at_rate_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock, load: float
) -> None:
    """The last validation and checkpoint have their time, and so has the command's beginning.

    From the middle on, updates take longer, or less.
    """
    command_began, training_began = clock.now - 5.0, clock.now
    let_saving_take_time(monkeypatch, clock, lambda: 2.0)
    run = trainer_of(
        tmp_path, command_began, max_seconds=200, valid_steps=20, report_every=1000, **TIMED
    )

    def seconds_of_update() -> float:
        return 3.0 if clock.now < training_began + 100 else 3.0 * load

    rates = take_time(run, clock, seconds_of_update, lambda: 6.0)
    outcome = run.train()
    assert outcome.reason == "max_seconds"
    assert run.state.validated == outcome.step
    assert 200 <= clock.now - command_began < 200 + 2 * 3 * load
    assert rates[-1] < 0.02 * max(rates)
    # Half of the time is over after 96 seconds, of which 5 + 6 + 2 were for other things.
    assert sum(rate > 0.5 * max(rates) for rate in rates) == pytest.approx((96 - 13) / 3, abs=1.5)
    assert all(later <= earlier for earlier, later in pairwise(rates[2:]))


def test_a_resumed_run_continues_at_its_time(tmp_path: Path, clock: Clock) -> None:
    def rates_of(run: Trainer) -> list[float]:
        rates = take_time(run, clock, lambda: 1.0, lambda: 4.0)
        run.train()
        return rates

    changes = {**TIMED, "max_seconds": 60, "valid_steps": 10, "save_checkpoint_steps": 10}
    uninterrupted = rates_of(trainer_of(tmp_path, **changes))
    clock.now += 1000
    assert rates_of(resumed_trainer(tmp_path, 20, **changes)) == uninterrupted[20:]
    assert 0 < uninterrupted[-1] < 0.05 * max(uninterrupted)


@pytest.mark.parametrize(
    ("last_validation", "last_save"),
    [(2.0, 1.0), (9.0, 8.0)],
    ids=["quicker validation", "slower save"],
)
def test_a_run_that_ended_by_time_has_nothing_left(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
    last_validation: float,
    last_save: float,
) -> None:
    """Though its end took less time than was kept for it, or more."""
    the_end = clock.now + 45  # of 60 seconds, before the last validation and checkpoint

    def seconds_of_save() -> float:
        return 1.0 if clock.now < the_end else last_save

    def seconds_of_validation() -> float:
        return 9.0 if clock.now + 9.0 <= the_end else last_validation

    let_saving_take_time(monkeypatch, clock, seconds_of_save)
    changes = {**TIMED, "max_seconds": 60, "valid_steps": 12, "save_checkpoint_steps": 1}
    run = trainer_of(tmp_path, **changes)
    take_time(run, clock, lambda: 1.0, seconds_of_validation)
    assert run.train().reason == "max_seconds"
    again = resumed_trainer(tmp_path, run.state.step, **changes)
    after_each_update(again, lambda: pytest.fail("made another update"))
    assert again.train().step == run.state.step


def test_all_processes_have_the_time_of_the_first(tmp_path: Path, clock: Clock) -> None:
    """Else they would disagree on the rate and on the end.

    This clock stands still; the first process's says 77 seconds for the run and for a checkpoint.
    """
    run = trainer_of(tmp_path, max_seconds=100, valid_steps=1, **TIMED)
    give_dev_losses(run, 9.0, 8.0)
    run.processes.from_first = lambda value: 77.0 if isinstance(value, float) else value
    outcome = run.train()
    # The first update's checkpoint counts from the second one on.
    assert (outcome.step, outcome.reason) == (2, "max_seconds")
    assert (run.clock.saving, run.clock.seconds) == (77.0, 77.0)
