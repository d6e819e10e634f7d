"""The clock of a run: what is kept for its end, the share that has passed, several processes."""

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


def resumed(clock: Clock, limit: float) -> Clock:
    """Return the clock of a run that is resumed with a limit."""
    clock_after = Clock(limit, Processes())
    clock_after.load_state_dict(clock.state_dict())
    return clock_after


def test_a_resumed_clock_expects_an_end_as_long_as_before() -> None:
    clock = Clock(60, Processes())
    clock.seconds, clock.validating, clock.saving = 30.0, 9.0, 1.0
    assert resumed(clock, limit=60).at_end() == clock.at_end() == 30 + 9 + 1


# --- the share of the time for updates ---


def clock_at(seconds: float, validating: float, limit: float = 100) -> Clock:
    """Return the clock of a run after an update at this time, and a validation of this duration."""
    clock = Clock(limit, Processes())
    clock.seconds, clock.validating = seconds, validating
    clock.begin_update()
    return clock


def test_the_time_of_the_last_validation_is_not_for_updates() -> None:
    assert clock_at(40, validating=20).passed() == 40 / (100 - 20)


def test_the_share_that_has_passed_does_not_fall_after_a_quicker_validation() -> None:
    """By the quicker one alone, it would be 42 / 90, which is less than 40 / 80."""
    clock = clock_at(40, validating=20)
    clock.seconds, clock.validating = 42, 10
    assert clock.passed() == 40 / 80


def test_after_a_quicker_validation_the_share_rises_once_the_time_has_caught_up() -> None:
    clock = clock_at(40, validating=20)
    clock.seconds, clock.validating = 63, 10
    assert clock.passed() == 63 / 90


def test_the_share_that_has_passed_does_not_fall_when_a_run_is_resumed() -> None:
    clock = clock_at(40, validating=20)
    clock.seconds, clock.validating = 42, 10
    assert resumed(clock, limit=100).passed() == 40 / 80


def test_a_run_that_is_resumed_with_a_higher_limit_has_passed_less_of_it() -> None:
    assert resumed(clock_at(40, validating=20), limit=220).passed() == 40 / (220 - 20)


# --- several processes ---


class SecondProcess(Processes):
    """The second process of a run: by the first one's clock, all that is timed takes 77 seconds.

    Its own clock stands still, as that of all tests here.
    """

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
    """Each update is validated and saved.

    After the first, 77 of 100 seconds have passed. From the second on, the end is known to take 77
    more, which are not left.
    """
    monkeypatch.setattr(trainers, "Processes", SecondProcess)
    run = trainer_of(tmp_path, max_seconds=100, valid_steps=1, **TIMED)
    give_dev_losses(run, 9.0, 8.0)
    outcome = run.train()
    assert (outcome.step, outcome.reason) == (2, "max_seconds")
