"""`max_seconds` ends a training in time for its last validation and checkpoint.

By the fake clock that trainings read here, updates, validations and checkpoints take the seconds
that a test gives.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.train.clocks import replace_clock
from tests.train.timed_trainings import PEAK, TIMED, WARM_UP, Durations, TimedUpdate, move_clock
from tests.train.trainers import trainer_of

# Seconds.
LIMIT = 200  # of the run
BEGINNING = 5  # of the command, before the training
VALIDATION, CHECKPOINT = 6, 2
END = VALIDATION + CHECKPOINT

EVERY = 20  # updates from one validation and checkpoint to the next


class TimedRun(NamedTuple):
    """A run that its time limit ended."""

    reason: str
    step: int
    """Its last update."""
    validated: int
    """The update after which it was validated last."""
    seconds: float
    """From the command's beginning to the end."""
    updates: list[TimedUpdate]
    """They end in seconds since the command's beginning."""


def timed_run(folder: Path, seconds: Sequence[float]) -> TimedRun:
    """Train up to the limit.

    Args:
        folder: for the run.
        seconds: of the first update, the second, ...; the last number is of all later ones.
    """
    every = {"valid_steps": EVERY, "save_checkpoint_steps": EVERY, "report_every": 1000}
    with pytest.MonkeyPatch.context() as patch:
        clock = replace_clock(patch, now=BEGINNING)
        run = trainer_of(folder, max_seconds=LIMIT, **every, **TIMED)
        updates = move_clock(patch, clock, run, Durations(seconds, [VALIDATION], [CHECKPOINT]))
        outcome = run.train(began=0.0)
        validated = run.state.counters.validated
        return TimedRun(outcome.reason, outcome.step, validated, clock.now, updates)


UPDATE = 3  # seconds of each update of the steady run


@pytest.fixture(scope="module")
def steady_run(tmp_path_factory: pytest.TempPathFactory) -> TimedRun:
    return timed_run(tmp_path_factory.mktemp("steady"), [UPDATE])


def test_the_limit_is_the_reason_of_the_end(steady_run: TimedRun) -> None:
    assert steady_run.reason == "max_seconds"


@pytest.mark.parametrize(
    ("later", "last_step"),
    [
        pytest.param(3, 57, id="steady"),
        pytest.param(4, 53, id="slower"),
        pytest.param(2, 62, id="faster"),
    ],
)
def test_the_last_update_is_the_first_that_leaves_no_more_than_the_end_takes(
    tmp_path: Path, later: int, last_step: int
) -> None:
    """The time after the first forty updates is known only when they are made."""
    run = timed_run(tmp_path, [3] * 40 + [later])
    *before, last = [LIMIT - update.end for update in run.updates]  # seconds that they leave
    assert min(before) > END >= last
    assert run.step == last_step


def test_after_the_last_update_follow_a_validation_and_a_checkpoint(steady_run: TimedRun) -> None:
    assert steady_run.validated == steady_run.step
    assert steady_run.seconds == steady_run.updates[-1].end + END


# --- the learning rate -----------------------------------------------------------------------


def test_the_rate_only_falls_after_the_warm_up(steady_run: TimedRun) -> None:
    rates = [update.rate for update in steady_run.updates[WARM_UP - 1 :]]
    assert all(later < earlier for earlier, later in pairwise(rates))


def test_the_rate_is_halved_at_half_of_the_time_for_updates(steady_run: TimedRun) -> None:
    """An update has the rate of the time at which it begins."""
    half = (LIMIT - END) / 2
    first_updates, later = steady_run.updates[WARM_UP - 1 : EVERY], steady_run.updates[EVERY:]
    assert min(update.rate for update in first_updates) > PEAK / 2
    assert [update.rate < PEAK / 2 for update in later] == [
        update.end - UPDATE > half for update in later
    ]


def test_the_last_rate_is_nearly_zero(steady_run: TimedRun) -> None:
    """It is not zero, since the last update's own 3 of 192 seconds were left."""
    assert 0 < steady_run.updates[-1].rate < 0.01 * PEAK
