"""The folder of a run: locks, errors of the disk, and what a killed run left in it."""

import errno
from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from onmt_entmax.files import FileError, locked
from onmt_entmax.train.kept_checkpoints import prune
from onmt_entmax.train.run_lock import remove_leftovers
from tests.toy import write_config
from tests.train.runs import train_again


@pytest.fixture
def no_renaming(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the system refuse to rename files, as deleting and restoring a checkpoint do first."""

    def refuse(path: Path, target: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)


@pytest.mark.usefixtures("no_renaming")
def test_an_error_names_the_checkpoint_that_cannot_be_deleted(tmp_path: Path) -> None:
    for step in (1, 2):
        (tmp_path / f"step_{step}").mkdir()
    with pytest.raises(FileError, match=r"step_1: cannot be deleted \(Permission denied\)"):
        prune(tmp_path, keep=1, newest=2)


@pytest.mark.usefixtures("no_renaming")
def test_an_error_names_the_checkpoint_that_cannot_be_restored(tmp_path: Path) -> None:
    (tmp_path / ".step_6.old").mkdir()
    with pytest.raises(FileError, match=r"step_6: cannot be restored \(Permission denied\)"):
        remove_leftovers(tmp_path)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        pytest.param(["-train_from", "missing"], "no such model folder", id="no checkpoint"),
        pytest.param(
            ["-data", '{"a": {"path_src": "missing", "path_tgt": "missing"}}'],
            "missing",
            id="no corpus",
        ),
        pytest.param(
            ["-transforms", "filtertoolong", "-src_seq_length", "1"],
            "no pair is left",
            id="no pair",
        ),
    ],
)
def test_a_refused_start_leaves_no_run_folder(
    tmp_path: Path, more: Sequence[str], message: str
) -> None:
    config = write_config(tmp_path, save_model=str(tmp_path / "new" / "run"))
    before = {*tmp_path.rglob("*")}
    with pytest.raises(UserError, match=message):
        train_again(["-config", str(config)], *more)
    assert {*tmp_path.rglob("*")} - before <= {tmp_path / "new"}  # the folder of runs may stay


def test_a_folder_in_which_another_process_trains_is_left_alone(
    arguments: list[str], run: Path
) -> None:
    """A second run would delete the checkpoint and the log that the first is writing."""
    (run / ".step_3.123.tmp").mkdir()  # a checkpoint that is being written
    before = sorted(run.iterdir())
    with locked(run):
        with pytest.raises(FileError, match="run: another process works here"):
            train_again(arguments, "-train_from", run, "-train_steps", 7)
        assert sorted(run.iterdir()) == before


def test_a_run_that_was_killed_while_writing_continues_from_its_last_whole_checkpoint(
    arguments: list[str], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / ".step_3.123.tmp").mkdir()
    (run / "step_6").rename(run / ".step_6.old")  # it was being replaced
    assert train_again(arguments, "-train_from", run, "-train_steps", 7) == 0
    assert not (run / ".step_3.123.tmp").exists()
    assert f"continuing from {run}/step_6\n" in capsys.readouterr().err
