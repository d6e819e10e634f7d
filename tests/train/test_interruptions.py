"""A run that was interrupted and resumed ends as the run that was not."""

from pathlib import Path

import pytest

from onmt_entmax.checkpoint import best_step, checkpoint_steps
from onmt_entmax.train.run_folder import RunFolder
from onmt_entmax.train.trainer import Outcome, Trainer
from tests.train.changed_trainers import give_dev_losses
from tests.train.trainers import (
    LEARNED_ALPHAS,
    assert_equal,
    resumed_trainer,
    trainer_of,
    weights_of,
)


def assert_same_end(resumed: Trainer, whole: Trainer) -> None:
    """Fail unless two trainings that have ended have the same weights and state."""
    assert_equal(weights_of(resumed.model), weights_of(whole.model))
    with whole.state.average.applied(), resumed.state.average.applied():
        assert_equal(weights_of(resumed.model), weights_of(whole.model))
    assert resumed.state.batches.position == whole.state.batches.position
    assert resumed.state.selection.state_dict() == whole.state.selection.state_dict()
    assert resumed.state.counters.decay == whole.state.counters.decay
    assert resumed.state.counters.output_factor == whole.state.counters.output_factor
    assert resumed.state.counters.previous_loss == whole.state.counters.previous_loss


CHANGES = {
    "average, several batches, plateau, dropout": {
        "average_decay": 0.05, "accum_count": 2, "decay_method": "plateau", "dropout": 0.2,
    },
    "average of every second update, warm-up, buckets, Adafactor": {
        "average_decay": 0.3, "average_every": 2, "attention_warmup_steps": 9,
        "bucket_size": 50, "optim": "adafactor",
    },
    "learned alphas": {**LEARNED_ALPHAS, "alpha_learning_rate": 0.05, "average_decay": 0.05},
    "Adagrad, a random transform": {
        "optim": "adagrad", "transforms": ["tokendrop"], "tokendrop_temperature": 5.0,
    },
}  # fmt: skip
# What is calibrated does not depend on the batches that were trained on, padded or not.
CALIBRATED = {
    "calibration": {"calibrate": True},
    "calibration of an average": {"calibrate": True, "average_decay": 0.05},
}


@pytest.mark.parametrize(
    ("padded", "changes"),
    [
        *(
            pytest.param(padded, changes, id=f"{'padded' if padded else 'packed'}-{name}")
            for padded in (False, True)
            for name, changes in CHANGES.items()
        ),
        *(pytest.param(False, changes, id=name) for name, changes in CALIBRATED.items()),
    ],
    indirect=["padded"],
)
@pytest.mark.usefixtures("padded")
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path: Path, changes: dict[str, object]) -> None:
    """It is resumed at step 7, where a checkpoint is due, and at step 10 if that is the best.

    In most cases a second epoch begins after that: the 240 pairs are ten batches of 24.
    """
    changes = {
        "batch_size": 24, "save_checkpoint_steps": 7, "train_steps": 12, "valid_steps": 5, **changes
    }  # fmt: skip
    whole = trainer_of(tmp_path, **changes)
    whole.train()
    steps = {7, 10}.intersection(checkpoint_steps(tmp_path / "run"))
    assert 7 in steps
    for step in steps:
        resumed = resumed_trainer(tmp_path, step, **changes)
        assert resumed.state.counters.step == step
        resumed.train()
        assert_same_end(resumed, whole)


# --- the validation at an interruption ---

PLAN = {
    "rnn_size": 8, "valid_steps": 2, "early_stopping": 2, "save_checkpoint_steps": 5,
    "decay_method": "plateau",
}  # fmt: skip
# By step. The validation at step 5 takes place only in a run that ends there; it is the best before
# the early end.
LOSSES = {2: 1.0, 4: 0.9, 5: 0.5, 6: 0.91, 8: 0.7, 10: 0.6, 12: 0.8, 14: 0.9, 16: 0.1}


def train_by_losses(run: Trainer) -> Outcome:
    """Train with these development losses."""
    run.validation.evaluate = lambda model: {"loss": LOSSES[run.state.counters.step]}
    return run.train()


@pytest.fixture
def interrupted_at_5(tmp_path: Path) -> Trainer:
    """A run that has ended at step 5, and was resumed there up to its early end."""
    train_by_losses(trainer_of(tmp_path, train_steps=5, **PLAN))
    run = resumed_trainer(tmp_path, 5, train_steps=20, **PLAN)
    assert train_by_losses(run).reason == "early_stopping"
    return run


def test_the_validation_at_an_interruption_does_not_count_for_what_follows(
    tmp_path: Path, interrupted_at_5: Trainer
) -> None:
    """Early stopping and the plateau are as in a run without the interruption."""
    whole = trainer_of(tmp_path / "whole", train_steps=20, **PLAN)
    assert train_by_losses(whole).step == interrupted_at_5.state.counters.step == 14
    assert interrupted_at_5.state.counters.decay == whole.state.counters.decay < 1


def test_the_validation_at_an_interruption_may_find_the_best_model(
    interrupted_at_5: Trainer,
) -> None:
    assert interrupted_at_5.state.selection.best_step == 5


# --- a kill ---


def test_a_kill_before_the_best_is_named_is_repaired_on_resuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"train_steps": 4, "valid_steps": 2, "save_checkpoint_steps": 2}
    monkeypatch.setattr(RunFolder, "name_best", lambda *_, **__: None)
    run = trainer_of(tmp_path, **changes)
    give_dev_losses(run, 2.0, 1.0)
    run.train()
    assert best_step(tmp_path / "run") is None
    monkeypatch.undo()
    assert resumed_trainer(tmp_path, 4, **changes).train().step == 4
    assert best_step(tmp_path / "run") == 4
