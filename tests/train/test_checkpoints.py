"""Which steps of a run have a checkpoint, and what the last one records of the run."""

from pathlib import Path

from onmt_entmax.checkpoint import checkpoint_steps, read_training_state
from tests.train.changed_trainers import give_dev_losses
from tests.train.trainers import trainer_of


def test_without_a_development_set_validations_only_save(tmp_path: Path) -> None:
    """In batches of 120, the 240 pairs of the toy task are an epoch of two updates."""
    epochs = {"train_steps": None, "valid_steps": None, "train_epochs": 3, "valid_epochs": 1}
    run = trainer_of(tmp_path, rnn_size=8, batch_size=120, save_checkpoint_steps=100, **epochs)
    run.validation = None
    run.train()
    assert checkpoint_steps(tmp_path / "run") == [2, 4, 6]


def test_the_last_checkpoint_has_the_last_validation(tmp_path: Path) -> None:
    """It was saved before the run ended, and was then validated once more."""
    run = trainer_of(tmp_path, rnn_size=8, train_steps=2, valid_steps=100, save_checkpoint_steps=2)
    give_dev_losses(run, 1.0)
    run.train()
    saved = read_training_state(tmp_path / "run" / "step_2")["run"]
    assert (saved["validated"], saved["best"], saved["best_step"]) == (2, 1.0, 2)


def test_a_state_is_saved_once(tmp_path: Path) -> None:
    """Step 2 is validated and saved by its plan, and the run ends with it."""
    run = trainer_of(tmp_path, rnn_size=8, train_steps=2, valid_steps=2, save_checkpoint_steps=2)
    give_dev_losses(run, 1.0)
    run.train()
    state_file = tmp_path / "run" / "step_2" / "training" / "state.pt"
    written = state_file.stat().st_mtime_ns
    run.checkpoints.save()
    assert state_file.stat().st_mtime_ns == written
