"""Trainings with a limit of time, by a clock that the tests move."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from onmt_entmax.train import clock as clock_module
from onmt_entmax.train.run_folder import RunFolder
from onmt_entmax.train.trainer import Trainer
from tests.train.clocks import Clock, replace_clock
from tests.train.trainers import after_each_update, give_dev_losses, resumed_trainer, trainer_of

TIMED = {"rnn_size": 8, "decay_method": "cosine", "warmup_steps": 2, "train_steps": None}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of trainings."""
    return replace_clock(monkeypatch, clock_module, now=1e6)


Seconds = Callable[[], float]
"""Returns how long something takes that begins now."""


def take_time(run: Trainer, clock: Clock, update: Seconds, validation: Seconds) -> list[float]:
    """Make updates and validations take some seconds.

    Returns:
        A list to which each update adds its learning rate.
    """
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


def let_saving_take_time(monkeypatch: pytest.MonkeyPatch, clock: Clock, seconds: Seconds) -> None:
    """Make checkpoints take some seconds."""
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

    After 100 seconds, updates take `load` times as long.
    """
    limit, beginning, update, validation, saving = 200, 5.0, 3.0, 6.0, 2.0  # seconds
    command_began, training_began = clock.now - beginning, clock.now
    let_saving_take_time(monkeypatch, clock, lambda: saving)
    run = trainer_of(
        tmp_path, command_began, max_seconds=limit, valid_steps=20, report_every=1000, **TIMED
    )

    def seconds_of_update() -> float:
        return update if clock.now < training_began + 100 else update * load

    rates = take_time(run, clock, seconds_of_update, lambda: validation)
    outcome = run.train()
    assert outcome.reason == "max_seconds"
    assert run.state.validated == outcome.step
    assert limit <= clock.now - command_began < limit + 2 * update * load
    assert rates[-1] < 0.02 * max(rates)
    # The cosine is at a half when half of the time before the last validation and checkpoint is
    # over. Until then, a validation and a checkpoint took time, and the command's beginning.
    half = (limit - validation - saving) / 2
    updates = (half - beginning - validation - saving) / update
    assert sum(rate > 0.5 * max(rates) for rate in rates) == pytest.approx(updates, abs=1.5)
    warm_up = TIMED["warmup_steps"]
    assert all(later <= earlier for earlier, later in pairwise(rates[warm_up:]))


def test_a_resumed_run_continues_at_its_time(tmp_path: Path, clock: Clock) -> None:
    """The time between the two runs does not count."""

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
    """Though its end took less time than was kept for it, or more.

    Before the end, a validation takes nine seconds and a checkpoint one; those are kept of sixty.
    """
    the_end = clock.now + 45  # no update begins later

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
