"""One run at a time in a run folder, and what a killed run left in it."""

from pathlib import Path

import pytest

from onmt_entmax.files import FileError, locked
from onmt_entmax.train.run_lock import remove_leftovers
from tests.train.runs import train_again

# --- one run at a time ---


def test_a_run_is_refused_in_a_folder_in_which_another_process_works(
    arguments: list[str], run: Path
) -> None:
    with locked(run), pytest.raises(FileError, match="run: another process works here"):
        train_again(arguments, "-train_from", run, "-train_steps", 7)


def test_a_refused_run_leaves_the_files_of_the_other_process_alone(
    arguments: list[str], run: Path
) -> None:
    """It would delete the checkpoint that the other process is writing."""
    (run / ".step_3.123.tmp").mkdir()  # the name of an unfinished checkpoint
    before = sorted(run.iterdir())
    with locked(run):
        with pytest.raises(FileError):
            train_again(arguments, "-train_from", run, "-train_steps", 7)
        assert sorted(run.iterdir()) == before


# --- a killed run ---


def test_a_run_deletes_the_unfinished_checkpoint_of_a_killed_one(
    arguments: list[str], run: Path
) -> None:
    (run / ".step_3.123.tmp").mkdir()
    assert train_again(arguments, "-train_from", run, "-train_steps", 7) == 0
    assert not (run / ".step_3.123.tmp").exists()


def test_a_run_continues_from_the_checkpoint_that_a_killed_one_was_replacing(
    arguments: list[str], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "step_6").rename(run / ".step_6.old")
    assert train_again(arguments, "-train_from", run, "-train_steps", 7) == 0
    assert f"continuing from {run}/step_6\n" in capsys.readouterr().err


def test_an_error_names_the_checkpoint_that_cannot_be_restored(tmp_path: Path) -> None:
    (tmp_path / ".step_6.old").mkdir()
    (tmp_path / "step_6").symlink_to("missing")  # a folder cannot replace a link
    with pytest.raises(FileError, match=r"step_6: cannot be restored \(Not a directory\)"):
        remove_leftovers(tmp_path)
