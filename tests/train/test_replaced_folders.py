"""A training whose folder was deleted or replaced meanwhile says so, and writes nothing there."""

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.cli.train import main as train
from onmt_entmax.files import locked
from tests.in_process import exit_status
from tests.train.endless_runs import endless, while_evaluating


def test_a_training_whose_folder_was_replaced_writes_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was removed by `rm -r run`, and another training has begun there."""
    run, elsewhere = tmp_path / "run", tmp_path / "deleted"
    other = ExitStack()

    def replace() -> None:
        run.rename(elsewhere)
        other.enter_context(locked(run))

    while_evaluating(monkeypatch, replace)
    with other:
        assert exit_status(train, endless(tmp_path, save_checkpoint_steps=2)) == 2
        assert [path.name for path in run.iterdir()] == [".lock"]
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith(f"train.py: error: {run}: was deleted or replaced while")
    assert checkpoint_steps(elsewhere) == [2, 4]


def test_a_training_whose_folder_was_deleted_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    while_evaluating(monkeypatch, lambda: shutil.rmtree(tmp_path / "run"))
    assert exit_status(train, endless(tmp_path)) == 2
    assert "run: was deleted or replaced while" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "run").exists()
