"""What ends a run: validations that are not better, its time limit, or its number of epochs."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import best_step
from onmt_entmax.train.trainer import Trainer
from tests.train.changed_trainers import give_dev_losses
from tests.train.trainers import trainer_of


def give_accuracies(run: Trainer, accuracies: Sequence[float]) -> None:
    """Make validations return these accuracies."""
    remaining = iter(accuracies)
    run.validation.evaluate = lambda _: {"loss": 1.0, "exact_match": next(remaining)}


@pytest.mark.parametrize(
    ("accuracies", "patience", "last_step"),
    [
        pytest.param((10.0, 20.0, 15.0, 15.0, 30.0), 2, 4, id="two lower"),
        pytest.param((10.0, 20.0, 20.0, 20.0, 30.0), 2, 4, id="two equal"),
        pytest.param((10.0, 5.0, 20.0, 5.0, 5.0), 2, 5, id="a better one between"),
        pytest.param((0.0, 0.0, 0.0, 0.0, 5.0), 3, 4, id="three without a right output"),
    ],
)
def test_a_run_ends_after_so_many_validations_that_are_no_better(
    tmp_path: Path, accuracies: Sequence[float], patience: int, last_step: int
) -> None:
    """A validation follows each update."""
    limits = {"train_steps": 9, "valid_steps": 1, "early_stopping": patience}
    run = trainer_of(tmp_path, rnn_size=8, selection="exact_match", **limits)
    give_accuracies(run, accuracies)
    outcome = run.train()
    assert (outcome.step, outcome.reason) == (last_step, "early_stopping")


def test_a_run_names_its_best_model_not_its_last(tmp_path: Path) -> None:
    """`tests.train.test_selection` has the rules by which a model is the best."""
    run = trainer_of(tmp_path, rnn_size=8, train_steps=3, valid_steps=1)
    give_dev_losses(run, 3.0, 2.0, 2.5)
    run.train()
    assert best_step(tmp_path / "run") == 2


def test_a_limit_of_time_counts_the_time_before_resuming(tmp_path: Path) -> None:
    """The first update of the resumed run is its last."""
    run = trainer_of(tmp_path, rnn_size=8, train_steps=4, valid_steps=100, max_seconds=1000)
    give_dev_losses(run, 1.0)
    run.state.clock.seconds = 1000 - 1e-6  # as in a run that is resumed
    outcome = run.train()
    assert (outcome.step, outcome.reason) == (1, "max_seconds")


def test_a_limit_of_epochs_ends_a_run(tmp_path: Path) -> None:
    """In batches of 120, the 240 pairs of the toy task are an epoch of two updates."""
    changes = {"train_steps": None, "valid_steps": None, "train_epochs": 4, "valid_epochs": 2}
    run = trainer_of(tmp_path, rnn_size=8, batch_size=120, **changes)
    validations = give_dev_losses(run, 2.0, 1.0)
    outcome = run.train()
    assert validations == [4, 8]
    assert (outcome.step, outcome.reason) == (8, "train_epochs")
