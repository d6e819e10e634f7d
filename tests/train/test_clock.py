"""`max_seconds` ends a training in time for its last validation and checkpoint.

Trainings read a fake clock here. Updates, validations and checkpoints move it by the seconds that a
test gives, so each expected time is a sum.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train import clock as clock_module
from onmt_entmax.train.clock import Clock
from onmt_entmax.train.run_folder import RunFolder
from onmt_entmax.train.trainer import Trainer
from tests.train import trainers
from tests.train.clocks import FakeClock, replace_clock
from tests.train.trainers import after_each_update, give_dev_losses, resumed_trainer, trainer_of

WARM_UP = 2  # updates
PEAK = 0.005  # the learning rate after them
TIMED = {
    "rnn_size": 8,
    "learning_rate": PEAK,
    "decay_method": "cosine",
    "warmup_steps": WARM_UP,
    "train_steps": None,
}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock that trainings read."""
    return replace_clock(monkeypatch, clock_module, now=1e6)


class Durations(NamedTuple):
    """Seconds of the first, the second, ... of each; the last number is of all later ones, too."""

    updates: Sequence[float]
    validations: Sequence[float]
    checkpoints: Sequence[float]


def endless(seconds: Sequence[float]) -> Iterator[float]:
    """Yield these seconds, and the last of them for ever."""
    return chain(seconds, repeat(seconds[-1]))


def move_clock(
    patch: pytest.MonkeyPatch, fake: FakeClock, run: Trainer, durations: Durations
) -> list[float]:
    """Let the parts of a training move the clock; the losses of its validations are all 1.

    Returns:
        A list to which each update adds its learning rate.
    """
    rates: list[float] = []

    def moving(seconds: Iterator[float], do: Callable[..., object]) -> Callable[..., object]:
        def do_slowly(*arguments: object) -> object:
            fake.now += next(seconds)
            return do(*arguments)

        return do_slowly

    # An update computes one loss; after it, it reports the time.
    update = run.training_step.update
    patch.setattr(update, "loss", moving(endless(durations.updates), update.loss))
    validate = moving(endless(durations.validations), lambda _: {"loss": 1.0})
    patch.setattr(run.validation, "evaluate", validate)
    # Patched for all runs: a function set on a class gets the run's folder as its first argument.
    patch.setattr(RunFolder, "save", moving(endless(durations.checkpoints), RunFolder.save))
    after_each_update(run, lambda: rates.append(run.state.optimizer.param_groups[0]["lr"]))
    return rates


# --- the end ---------------------------------------------------------------------------------


class TimedRun(NamedTuple):
    """A run that its limit of 200 seconds ended."""

    reason: str
    step: int
    """Its last update."""
    validated: int
    """The update after which it was validated last."""
    seconds: float
    """From the command's beginning to the end."""
    rates: list[float]
    """The learning rate of each update; that of the first is `rates[0]`."""


def timed_run(folder: Path, updates: Sequence[float]) -> TimedRun:
    """Train with a limit of 200 seconds, 5 of which the command takes before the training.

    A validation of 6 seconds and a checkpoint of 2 follow every 20 updates, and the last one.

    Args:
        folder: for the run.
        updates: seconds of the first update, the second, ...; the last number is of all later ones.
    """
    every = {"valid_steps": 20, "save_checkpoint_steps": 20, "report_every": 1000}
    with pytest.MonkeyPatch.context() as patch:
        fake = replace_clock(patch, clock_module, now=1e6)
        began = fake.now - 5
        run = trainer_of(folder, max_seconds=200, **every, **TIMED)
        rates = move_clock(patch, fake, run, Durations(updates, [6.0], [2.0]))
        outcome = run.train(began)
        validated = run.state.counters.validated
        return TimedRun(outcome.reason, outcome.step, validated, fake.now - began, rates)


@pytest.fixture(scope="module")
def steady_run(tmp_path_factory: pytest.TempPathFactory) -> TimedRun:
    """A run with updates of 3 seconds."""
    return timed_run(tmp_path_factory.mktemp("steady"), [3.0])


def test_the_limit_is_the_reason_of_the_end(steady_run: TimedRun) -> None:
    assert steady_run.reason == "max_seconds"


# Seconds of the first 40 updates of 3 s, with the command's beginning.
FIRST_40 = 5 + (20 * 3 + 6 + 2) + (20 * 3 + 6 + 2)


@pytest.mark.parametrize(
    ("later", "step", "seconds"),
    [
        pytest.param(3.0, 40 + 17, FIRST_40 + 17 * 3 + (6 + 2), id="steady"),  # 200
        pytest.param(4.0, 40 + 13, FIRST_40 + 13 * 4 + (6 + 2), id="slower"),  # 201
        pytest.param(
            2.0, 40 + 20 + 2, FIRST_40 + (20 * 2 + 6 + 2) + 2 * 2 + (6 + 2), id="faster"
        ),  # 201
    ],
)
def test_the_end_comes_with_the_first_update_that_leaves_no_more_than_it_takes(
    tmp_path: Path, later: float, step: int, seconds: float
) -> None:
    """The end takes 6 + 2 of the 200 seconds, the last validation and checkpoint."""
    run = timed_run(tmp_path, [3.0] * 40 + [later])
    assert (run.step, run.seconds) == (step, seconds)


def test_the_last_update_is_validated(steady_run: TimedRun) -> None:
    assert steady_run.validated == steady_run.step


# --- the learning rate -----------------------------------------------------------------------


def test_the_rate_only_falls_after_the_warm_up(steady_run: TimedRun) -> None:
    rates = steady_run.rates[WARM_UP - 1 :]
    assert all(later < earlier for earlier, later in pairwise(rates))


def test_the_rate_is_halved_at_half_of_the_time_for_updates(steady_run: TimedRun) -> None:
    """That is at (200 - 6 - 2) / 2 = 96 seconds, since the end takes 6 + 2.

    Update 28 begins at 5 + (20 * 3 + 6 + 2) + 7 * 3 = 94 seconds, and update 29 at 97.
    """
    update_28, update_29 = steady_run.rates[27:29]
    assert update_29 < PEAK / 2 < update_28


def test_the_last_rate_is_nearly_zero(steady_run: TimedRun) -> None:
    """It is not zero, since the last update's own 3 of 192 seconds were left."""
    assert 0 < steady_run.rates[-1] < 0.01 * PEAK


# --- runs that go on -------------------------------------------------------------------------

MINUTE = {**TIMED, "max_seconds": 60, "save_checkpoint_steps": 10}


def test_a_resumed_run_continues_at_its_time(tmp_path: Path, fake: FakeClock) -> None:
    """The time between the two runs does not count."""
    options = {**MINUTE, "valid_steps": 10}
    durations = Durations([1.0], [4.0], [0.0])

    def rates_of(run: Trainer) -> list[float]:
        with pytest.MonkeyPatch.context() as patch:
            rates = move_clock(patch, fake, run, durations)
            run.train()
        return rates

    uninterrupted = rates_of(trainer_of(tmp_path, **options))
    fake.now += 1000
    assert rates_of(resumed_trainer(tmp_path, 20, **options)) == uninterrupted[20:]


def test_a_resumed_clock_expects_an_end_as_long_as_before(fake: FakeClock) -> None:
    clock, resumed = Clock(60, Processes()), Clock(60, Processes())
    clock.seconds, clock.validating, clock.saving = 30.0, 9.0, 1.0
    resumed.load_state_dict(clock.state_dict())
    assert resumed.at_end() == clock.at_end() == 30 + 9 + 1


@pytest.mark.parametrize(
    ("last_validation", "later_checkpoints", "last_step"),
    [
        # Updates end since 10 + 1 + 10 + (9 + 1) + 10 + 1 + 8 = 50 seconds leave as many as the
        # end took before, 9 + 1.
        pytest.param(2.0, 1.0, 38, id="quicker end"),
        # Also 10 + 1 + 10 + (9 + 1) + 10 + 9 = 50 seconds. The end is still expected to take 9 + 1:
        # the checkpoint of 9 seconds counts from the next update on.
        pytest.param(9.0, 9.0, 30, id="slower checkpoints"),
    ],
)
def test_a_run_that_ended_by_time_has_nothing_left(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fake: FakeClock,
    last_validation: float,
    later_checkpoints: float,
    last_step: int,
) -> None:
    """Though its end took less time than was kept for it, or more.

    Updates take 1 second; a checkpoint follows every 10, and a validation every 20. The first
    validation takes 9 seconds, the first two checkpoints 1 second.
    """
    options = {**MINUTE, "valid_steps": 20}
    durations = Durations([1.0], [9.0, last_validation], [1.0, 1.0, later_checkpoints])
    run = trainer_of(tmp_path, **options)
    move_clock(monkeypatch, fake, run, durations)
    outcome = run.train()
    assert (outcome.step, outcome.reason) == (last_step, "max_seconds")
    resumed = resumed_trainer(tmp_path, last_step, **options)
    assert resumed.train().step == last_step


# --- several processes -----------------------------------------------------------------------


class SecondProcess(Processes):
    """One whose own clock stands still; by the first one's, all that is timed takes 77 seconds."""

    def from_first(self, value: object) -> object:
        return 77.0 if isinstance(value, float) else value


def test_seconds_are_those_of_the_first_process(fake: FakeClock) -> None:
    clock = Clock(100, SecondProcess())
    clock.share()
    assert clock.seconds == 77


def test_a_checkpoint_takes_what_it_took_the_first_process(fake: FakeClock) -> None:
    """It counts from the next update on; see `Clock.saved`."""
    clock = Clock(100, SecondProcess())
    clock.saved(0.0)
    clock.begin_update()
    assert clock.saving == 77


def test_all_processes_end_by_the_time_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: FakeClock
) -> None:
    """Else they would disagree on the rate and on the end.

    Each update is validated and saved. After the first, 77 of 100 seconds have passed; from the
    second on, the end is known to take 77 more.
    """
    monkeypatch.setattr(trainers, "Processes", SecondProcess)
    run = trainer_of(tmp_path, max_seconds=100, valid_steps=1, **TIMED)
    give_dev_losses(run, 9.0, 8.0)
    outcome = run.train()
    assert (outcome.step, outcome.reason) == (2, "max_seconds")
