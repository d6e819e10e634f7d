"""Which checkpoints a run keeps: the newest, and the best; the others are deleted."""

import errno
import os
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import checkpoint_steps, find_model
from onmt_entmax.files import FileError
from onmt_entmax.model import build_model
from onmt_entmax.train.kept_checkpoints import prune, remember_best
from onmt_entmax.train.run_folder import RunFolder
from tests.models import BRNN, VOCABULARIES


def test_a_run_keeps_the_newest_and_the_best(tmp_path: Path) -> None:
    model = build_model(BRNN, VOCABULARIES)
    folder = RunFolder(tmp_path / "run", BRNN, VOCABULARIES, {}, keep=2)
    for step in (1, 2, 3, 4, 5):
        folder.save(step, model, {"step": step})
        if step == 2:
            remember_best(folder.path, 2, "loss", 0.1)
    assert checkpoint_steps(folder.path) == [2, 4, 5]
    assert find_model(folder.path).name == "step_2"


def test_a_run_must_keep_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="keep=0 deletes each new checkpoint: use 1 or more"):
        RunFolder(tmp_path, BRNN, VOCABULARIES, {}, keep=0)


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        pytest.param(1, [8], id="one"),
        pytest.param(5, [4, 5, 6, 7, 8], id="five"),
        pytest.param(10, [*range(1, 9)], id="more than there are"),
        pytest.param(-1, [*range(1, 9)], id="all"),
    ],
)
def test_the_newest_checkpoints_are_kept(tmp_path: Path, keep: int, kept: list[int]) -> None:
    """A checkpoint of a later step is kept, too: the run has continued from an earlier one."""
    (tmp_path / "step_99").mkdir()
    for step in range(1, 9):
        (tmp_path / f"step_{step}").mkdir()
        prune(tmp_path, keep, step)
    assert checkpoint_steps(tmp_path) == [*kept, 99]


@pytest.fixture
def no_renaming(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the system refuse to rename files, as in a folder that the user may only read.

    Such a folder itself would be no test for the superuser, whom it does not stop.
    """

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "rename", refuse)


@pytest.mark.usefixtures("no_renaming")
def test_an_error_names_the_checkpoint_that_cannot_be_deleted(tmp_path: Path) -> None:
    for step in (1, 2):
        (tmp_path / f"step_{step}").mkdir()
    with pytest.raises(FileError, match=r"step_1: cannot be deleted \(Permission denied\)"):
        prune(tmp_path, keep=1, newest=2)
