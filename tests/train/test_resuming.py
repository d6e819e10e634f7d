"""Where a run continues: in its folder or another one, and with nothing left to train.

`run` has six updates, of which steps 2, 4 and 6 are checkpoints.
"""

from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import CheckpointError, best_step, checkpoint_steps
from onmt_entmax.train.kept_checkpoints import remember_best, remove_checkpoint
from tests.commands import json_lines, weights
from tests.train.runs import State, change_run_state, change_state, train_again

# --- its last and its best checkpoint ---------------------------------------------------------


@pytest.fixture
def printed_without_best(
    arguments: list[str], run: Path, capsys: pytest.CaptureFixture[str]
) -> str:
    """What two more updates print if the best of `run` was step 2, which is deleted."""
    change_run_state(run / "step_6", best=0.0, best_step=2)  # no later loss can be below 0
    remember_best(run, 2, "loss", 0.0)
    remove_checkpoint(run, 2)
    capsys.readouterr()
    assert train_again(arguments, "-train_from", run, "-train_steps", 8, "-valid_steps", 8) == 0
    return capsys.readouterr().err


def test_a_best_checkpoint_that_was_deleted_is_named(run: Path, printed_without_best: str) -> None:
    warning = f"warning: {run}: step_2, the best checkpoint so far, is gone"
    assert warning in printed_without_best


def test_a_best_checkpoint_that_was_deleted_is_replaced(
    run: Path, printed_without_best: str
) -> None:
    assert f"best checkpoint: {run}/step_8" in printed_without_best
    assert best_step(run) == 8


def test_a_run_without_a_validation_names_its_last_checkpoint(
    arguments: list[str], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "best.json").unlink()
    change_run_state(run / "step_6", best=None, best_step=-1)  # as before the first validation
    assert train_again(arguments, "-train_from", run, "-valid_steps", 100) == 0
    assert f"last checkpoint: {run}/step_6" in capsys.readouterr().err


# --- an earlier version ----------------------------------------------------------------------


def forget_later_entries(state: State) -> None:
    """Leave out the entries that version 1.0 did not save."""
    for name in ("output_factor", "validating", "saving", "max_seconds", "passed"):
        del state["run"][name]
    del state["raw_output"]


def test_a_checkpoint_of_version_1_0_is_continued_alike(
    arguments: list[str], run: Path, tmp_path: Path
) -> None:
    change_state(run / "step_2", forget_later_entries)
    other = tmp_path / "other"
    back = ["-train_from", run / "step_2", "-train_steps", 4, "-save_model", other]
    assert train_again(arguments, *back) == 0
    torch.testing.assert_close(weights(other, 4), weights(run, 4), rtol=0, atol=0)


# --- another folder --------------------------------------------------------------------------


def test_a_new_run_from_old_weights_does_not_overwrite_them(
    arguments: list[str], run: Path
) -> None:
    anew = ["-train_from", run, "-reset_optim", "all", "-train_steps", 2]
    with pytest.raises(CheckpointError, match="choose another save_model"):
        train_again(arguments, *anew, "-overwrite")


def test_a_new_run_from_old_weights_has_its_own_folder(
    arguments: list[str], run: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    anew = ["-train_from", run, "-reset_optim", "all", "-train_steps", 2, "-save_model", new]
    assert train_again(arguments, *anew) == 0
    assert checkpoint_steps(new) == [2]


@pytest.fixture
def other(run: Path, tmp_path: Path) -> Path:
    """A folder that holds a checkpoint."""
    (tmp_path / "other" / "step_2").mkdir(parents=True)
    return tmp_path / "other"


def test_another_folder_that_holds_checkpoints_is_refused(
    arguments: list[str], run: Path, other: Path
) -> None:
    with pytest.raises(CheckpointError, match="already holds checkpoints"):
        train_again(arguments, "-train_from", run, "-train_steps", 8, "-save_model", other)


def test_continuing_in_another_folder_gives_the_same_weights(
    arguments: list[str], run: Path, other: Path
) -> None:
    back = ["-train_from", run / "step_2", "-train_steps", 4, "-overwrite"]
    assert train_again(arguments, *back, "-save_model", other) == 0
    torch.testing.assert_close(weights(other, 4), weights(run, 4), rtol=0, atol=0)


def test_measurements_of_another_run_do_not_stay(
    arguments: list[str], run: Path, other: Path
) -> None:
    """They would look like the beginning of the run that takes their place."""
    (other / "metrics.jsonl").write_text('{"kind": "train", "step": 1, "loss": 9.0}\n')
    back = ["-train_from", run / "step_2", "-train_steps", 4, "-overwrite"]
    assert train_again(arguments, *back, "-save_model", other) == 0
    assert {row["step"] for row in json_lines(other / "metrics.jsonl")} == {3, 4}


def test_the_folder_around_a_run_is_another_one(
    arguments: list[str], run: Path, tmp_path: Path
) -> None:
    """A new run from the weights of `run` may write there, beside that run."""
    anew = ["-train_from", run, "-reset_optim", "all", "-train_steps", 2]
    assert train_again(arguments, *anew, "-save_model", tmp_path) == 0
    assert checkpoint_steps(tmp_path) == [2]
    assert checkpoint_steps(run) == [2, 4, 6]


def test_a_model_folder_is_not_a_run_folder(arguments: list[str], run: Path) -> None:
    with pytest.raises(CheckpointError, match="is a model itself"):
        train_again(arguments, "-save_model", run / "step_2")


# --- nothing left to train -------------------------------------------------------------------


def test_a_run_that_ended_in_its_time_has_nothing_left(
    arguments: list[str], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last validation and checkpoint, of 7 seconds, are kept for its end: 97 + 7 > 100."""
    change_run_state(run / "step_6", seconds=97.0, validating=4.0, saving=3.0)
    assert train_again(arguments, "-train_from", run, "-max_seconds", 100, "-train_steps", 9) == 0
    assert "nothing is left to train: step 6, max_seconds 100" in capsys.readouterr().err
    assert checkpoint_steps(run)[-1] == 6


def test_a_run_that_has_reached_its_limit_has_nothing_left(
    arguments: list[str], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train_again(arguments, "-train_from", run) == 0
    assert "note: nothing is left to train: step 6, train_steps 6\n" in capsys.readouterr().err
    assert checkpoint_steps(run) == [2, 4, 6]


def test_a_run_that_has_reached_its_limit_is_not_continued_in_another_folder(
    arguments: list[str], run: Path, tmp_path: Path
) -> None:
    message = "nothing is left to train: .*; set a higher limit, or take the weights"
    with pytest.raises(CheckpointError, match=message):
        train_again(arguments, "-train_from", run, "-save_model", tmp_path / "new")
    assert not (tmp_path / "new").exists()
