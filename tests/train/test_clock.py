"""Trainings with a limit of time, by a clock that the tests move."""

from collections.abc import Callable
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.train import clock as clock_module
from onmt_entmax.train.run_folder import RunFolder
from onmt_entmax.train.trainer import Trainer
from tests.train.clocks import Clock, replace_clock
from tests.train.trainers import after_each_update, give_dev_losses, resumed_trainer, trainer_of

WARM_UP = 2  # updates
TIMED = {"rnn_size": 8, "decay_method": "cosine", "warmup_steps": WARM_UP, "train_steps": None}

Seconds = Callable[[], float]
"""Returns how long something takes that begins now."""


def lasting(*first: float, then: float) -> Seconds:
    """Let something take the seconds `first`, one after the other, and `then` from then on."""
    seconds = chain(first, repeat(then))
    return lambda: next(seconds)


def simulated_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Let trainings read a clock that only tests move."""
    return replace_clock(monkeypatch, clock_module, now=1e6)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of trainings."""
    return simulated_clock(monkeypatch)


def simulate(
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
    run: Trainer,
    *,
    update: Seconds,
    validation: Seconds,
    saving: Seconds,
) -> list[float]:
    """Let the parts of a training move the clock; the losses of its validations are all 1.

    An update's seconds pass after it has reported the time, so they count with the next one.

    Args:
        monkeypatch: undoes it for checkpoints.
        clock: of the training.
        run: the training.
        update: seconds of an update.
        validation: seconds of a validation.
        saving: seconds of a checkpoint.

    Returns:
        A list to which each update adds its learning rate.
    """
    rates: list[float] = []
    save = RunFolder.save

    def end_update() -> None:
        rates.append(run.optimizer.param_groups[0]["lr"])
        clock.now += update()

    def evaluate(_: object) -> dict[str, float]:
        clock.now += validation()
        return {"loss": 1.0}

    def save_slowly(*arguments: object) -> None:
        clock.now += saving()
        save(*arguments)

    after_each_update(run, end_update)
    run.evaluate = evaluate
    monkeypatch.setattr(RunFolder, "save", save_slowly)
    return rates


# --- the end ---


LIMIT = 200
# Seconds: from the command's beginning to the training's, of an update, of a validation, and of a
# checkpoint.
BEGINNING, UPDATE, VALIDATION, SAVING = 5.0, 3.0, 6.0, 2.0


class TimedRun(NamedTuple):
    """A run that ended after `LIMIT` seconds.

    Attributes:
        reason: why it ended.
        step: its last update.
        validated: the update after which it was validated last.
        seconds: from the command's beginning to the end.
        last_updates: seconds of each of its last updates.
        rates: the learning rate of each update.
    """

    reason: str
    step: int
    validated: int
    seconds: float
    last_updates: float
    rates: list[float]


class TestTheEnd:
    @pytest.fixture(scope="class", params=[1.0, 3.0, 0.5], ids=["as planned", "loaded", "faster"])
    def timed_run(
        self, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
    ) -> TimedRun:
        """A run whose updates take so many times as long after 100 seconds, half of the limit."""
        last_updates = UPDATE * request.param
        with pytest.MonkeyPatch.context() as patch:
            clock = simulated_clock(patch)
            training_began = clock.now
            command_began = training_began - BEGINNING
            run = trainer_of(
                tmp_path_factory.mktemp("timed"),
                command_began,
                max_seconds=LIMIT,
                valid_steps=20,
                report_every=1000,
                **TIMED,
            )

            def seconds_of_update() -> float:
                return UPDATE if clock.now < training_began + 100 else last_updates

            rates = simulate(
                patch,
                clock,
                run,
                update=seconds_of_update,
                validation=lasting(then=VALIDATION),
                saving=lasting(then=SAVING),
            )
            outcome = run.train()
            return TimedRun(
                reason=outcome.reason,
                step=outcome.step,
                validated=run.state.validated,
                seconds=clock.now - command_began,
                last_updates=last_updates,
                rates=rates,
            )

    def test_is_that_of_the_time(self, timed_run: TimedRun) -> None:
        """The last validation and checkpoint have their time, and so has the beginning."""
        assert timed_run.reason == "max_seconds"
        assert LIMIT <= timed_run.seconds < LIMIT + 2 * timed_run.last_updates

    def test_has_a_validation(self, timed_run: TimedRun) -> None:
        assert timed_run.validated == timed_run.step

    def test_has_a_learning_rate_of_nearly_zero(self, timed_run: TimedRun) -> None:
        assert timed_run.rates[-1] < 0.02 * max(timed_run.rates)

    def test_is_neared_by_a_rate_that_only_falls(self, timed_run: TimedRun) -> None:
        assert all(later <= earlier for earlier, later in pairwise(timed_run.rates[WARM_UP:]))

    def test_has_half_the_rate_at_half_of_the_time_for_updates(self, timed_run: TimedRun) -> None:
        """That time ends before the last validation and checkpoint.

        Its first half has the beginning, one validation and its checkpoint, and updates.
        """
        half = (LIMIT - VALIDATION - SAVING) / 2
        updates = (half - BEGINNING - VALIDATION - SAVING) / UPDATE
        rates = timed_run.rates
        assert sum(rate > 0.5 * max(rates) for rate in rates) == pytest.approx(updates, abs=1.5)


# --- runs that go on ---


def test_a_resumed_run_continues_at_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """The time between the two runs does not count."""

    def rates_of(run: Trainer) -> list[float]:
        with monkeypatch.context() as patch:
            rates = simulate(
                patch,
                clock,
                run,
                update=lasting(then=1.0),
                validation=lasting(then=4.0),
                saving=lasting(then=0.0),
            )
            run.train()
        return rates

    changes = {**TIMED, "max_seconds": 60, "valid_steps": 10, "save_checkpoint_steps": 10}
    uninterrupted = rates_of(trainer_of(tmp_path, **changes))
    clock.now += 1000
    assert rates_of(resumed_trainer(tmp_path, 20, **changes)) == uninterrupted[20:]
    assert 0 < uninterrupted[-1] < 0.05 * max(uninterrupted)


@pytest.mark.parametrize(
    ("last_validation", "last_saves", "last_step"),
    [pytest.param(2.0, 1.0, 39, id="quicker end"), pytest.param(9.0, 9.0, 30, id="slower saves")],
)
def test_a_run_that_ended_by_time_has_nothing_left(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
    last_validation: float,
    last_saves: float,
    last_step: int,
) -> None:
    """Though its end took less time than was kept for it, or more.

    | update | then | seconds |
    |---|---|---|
    | 10 | a checkpoint of 1 s | 11 |
    | 20 | a validation of 9 s and a checkpoint of 1 s: 10 s are kept for the end | 31 |
    | 30 | a checkpoint of 1 s, or of 9 s: then updates end here | 42, or 50 |
    | 39 | updates end, since those before this one took all of the other 50 s | 51 |
    """
    changes = {**TIMED, "max_seconds": 60, "valid_steps": 20, "save_checkpoint_steps": 10}
    run = trainer_of(tmp_path, **changes)
    simulate(
        monkeypatch,
        clock,
        run,
        update=lasting(then=1.0),
        validation=lasting(9.0, then=last_validation),
        saving=lasting(1.0, 1.0, then=last_saves),
    )
    outcome = run.train()
    assert (outcome.step, outcome.reason) == (last_step, "max_seconds")
    again = resumed_trainer(tmp_path, last_step, **changes)
    after_each_update(again, lambda: pytest.fail("made another update"))
    assert again.train().step == last_step


# --- several processes ---


def as_in_first(value: object) -> object:
    """Return what the first process says: 77 of seconds, which alone are sent as a number."""
    return 77.0 if isinstance(value, float) else value


def test_all_processes_have_the_time_of_the_first(tmp_path: Path, clock: Clock) -> None:
    """Else they would disagree on the rate and on the end.

    This process's clock stands still. By the first one's, the run has 77 seconds, as has the
    checkpoint after each validation. That of the first update counts from the second one on, which
    with it exceeds the limit.
    """
    run = trainer_of(tmp_path, max_seconds=100, valid_steps=1, **TIMED)
    give_dev_losses(run, 9.0, 8.0)
    run.processes.from_first = as_in_first
    outcome = run.train()
    assert (outcome.step, outcome.reason) == (2, "max_seconds")
    assert (run.clock.saving, run.clock.seconds) == (77.0, 77.0)
