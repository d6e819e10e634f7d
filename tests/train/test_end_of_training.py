"""Which validated model of a run is the best, and what ends the run."""

import math
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import best_step
from tests.train.trainers import give_dev_losses, trainer_of


@pytest.mark.parametrize(
    ("selection", "values", "patience", "end", "best"),
    [
        ("loss", (3.0, 3.5, 2.0, 2.0, 2.5, 1.0), 2, 5, 3),
        ("exact_match", (0.0, 0.0, 0.0, 0.0, 5.0), 3, 4, 4),
    ],
    ids=["an equal loss is no better", "without a right output the newest is best"],
)
def test_a_run_stops_after_so_many_validations_that_are_no_better(
    tmp_path: Path, selection: str, values: tuple[float, ...], patience: int, end: int, best: int
) -> None:
    """With a validation after each update; `end` and `best` are steps."""
    limits = {"train_steps": 9, "valid_steps": 1, "early_stopping": patience}
    run = trainer_of(tmp_path, rnn_size=8, selection=selection, **limits)
    remaining = iter(values)
    run.validation.evaluate = lambda _: {"loss": 1.0, selection: next(remaining)}
    outcome = run.train()
    assert (outcome.step, outcome.reason) == (end, "early_stopping")
    assert best_step(tmp_path / "run") == best


def test_a_measure_that_is_not_finite_is_worse_than_any_other(tmp_path: Path) -> None:
    run = trainer_of(tmp_path, rnn_size=8, train_steps=3, valid_steps=1)
    give_dev_losses(run, math.nan, 3.0, math.nan)
    run.train()
    assert (run.state.selection.best, best_step(tmp_path / "run")) == (3.0, 2)


def test_a_limit_of_time_counts_the_time_before_resuming(tmp_path: Path) -> None:
    run = trainer_of(tmp_path, rnn_size=8, train_steps=4, valid_steps=100, max_seconds=1000)
    give_dev_losses(run, 1.0)
    run.state.clock.seconds = 1000 - 1e-6  # as of a run that is resumed
    outcome = run.train()
    assert (outcome.step, outcome.reason) == (1, "max_seconds")


def test_a_limit_of_epochs(tmp_path: Path) -> None:
    """In batches of 120, the 240 pairs of the toy task are an epoch of two updates."""
    changes = {"train_steps": None, "valid_steps": None, "train_epochs": 4, "valid_epochs": 2}
    run = trainer_of(tmp_path, rnn_size=8, batch_size=120, **changes)
    validations = give_dev_losses(run, 2.0, 1.0)
    outcome = run.train()
    assert validations == [4, 8]
    assert (outcome.step, outcome.reason) == (8, "train_epochs")
