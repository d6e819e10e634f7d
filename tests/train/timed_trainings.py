"""Trainings of a given duration, by a fake clock."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import NamedTuple

import pytest

from onmt_entmax.train.run_folder import RunFolder
from onmt_entmax.train.trainer import Trainer
from tests.train.changed_trainers import after_each_update
from tests.train.clocks import FakeClock

WARM_UP = 2  # updates
PEAK = 0.005  # the learning rate after them
# Options of a small network whose learning rate falls by the time that is left.
TIMED = {
    "rnn_size": 8,
    "learning_rate": PEAK,
    "decay_method": "cosine",
    "warmup_steps": WARM_UP,
    "train_steps": None,
}


class Durations(NamedTuple):
    """Seconds that the first, the second, ... take; the last number holds for all later ones."""

    updates: Sequence[float]
    validations: Sequence[float]
    checkpoints: Sequence[float]


class TimedUpdate(NamedTuple):
    """What an update recorded."""

    rate: float
    """Its learning rate."""
    end: float
    """When it ended, in seconds of the clock."""


def move_clock(
    patch: pytest.MonkeyPatch, clock: FakeClock, run: Trainer, durations: Durations
) -> list[TimedUpdate]:
    """Let the parts of a training move the clock; the losses of its validations are all 1.

    Returns:
        A list to which each update of the training is added.
    """
    updates: list[TimedUpdate] = []

    def moving(seconds: Sequence[float], do: Callable[..., object]) -> Callable[..., object]:
        """Return a function that moves the clock before it does what `do` does."""
        remaining: Iterator[float] = chain(seconds, repeat(seconds[-1]))

        def do_slowly(*arguments: object) -> object:
            clock.now += next(remaining)
            return do(*arguments)

        return do_slowly

    # An update computes one loss; it reads the clock only later.
    update = run.training_step.update
    patch.setattr(update, "loss", moving(durations.updates, update.loss))
    validate = moving(durations.validations, lambda _: {"loss": 1.0})
    patch.setattr(run.validation, "evaluate", validate)
    # Patched for all runs: a function set on a class gets the run's folder as its first argument.
    patch.setattr(RunFolder, "save", moving(durations.checkpoints, RunFolder.save))
    optimizer = run.state.optimizer
    after_each_update(
        run, lambda: updates.append(TimedUpdate(optimizer.param_groups[0]["lr"], clock.now))
    )
    return updates
