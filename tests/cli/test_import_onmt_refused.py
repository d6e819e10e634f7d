"""`onmt-entmax import-onmt`: pickles are opened if a person says so, and run nothing."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from onmt_entmax.cli import import_onmt
from tests.commands import run
from tests.evil import Evil
from tests.in_process import exit_status, refusal


def test_a_pickle_that_runs_a_program_is_refused(tmp_path: Path) -> None:
    torch.save({"model": {}, "opt": Evil(tmp_path / "harm")}, tmp_path / "evil.pt")
    message = refusal(import_onmt.main, [tmp_path / "evil.pt", tmp_path / "out", "--yes"])
    assert "refused: it names posix.mkdir" in message
    assert not (tmp_path / "harm").exists()
    assert not (tmp_path / "out").exists()


@pytest.fixture
def some_pickle(tmp_path: Path) -> Path:
    """A file that is not a checkpoint, which only opening it shows."""
    torch.save({}, tmp_path / "some.pt")
    return tmp_path / "some.pt"


def test_a_pickle_is_not_opened_if_there_is_nobody_to_ask(
    some_pickle: Path, tmp_path: Path
) -> None:
    done = run("onmt_entmax", "import-onmt", some_pickle, tmp_path / "out")
    assert done.returncode == 2
    assert "only files from people you trust" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("error: nobody to ask: give --yes to open it")


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param("n\n", 1, id="no"),
        pytest.param("\n", 1, id="nothing"),
        pytest.param("y\n", 2, id="yes"),  # and it turns out to be no checkpoint
    ],
)
def test_a_pickle_is_opened_if_a_person_says_so(
    some_pickle: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    status: int,
) -> None:
    person = SimpleNamespace(isatty=lambda: True, readline=lambda: answer)
    monkeypatch.setattr(sys, "stdin", person)
    assert exit_status(import_onmt.main, [str(some_pickle), str(tmp_path / "out")]) == status
    was_opened = "no 'model' in it" in capsys.readouterr().err
    assert was_opened == (answer == "y\n")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"not a pickle", id="text"),
        pytest.param(b"PK\x03\x04 cut short", id="cut archive"),
    ],
)
def test_a_file_that_is_not_a_checkpoint_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file.pt").write_bytes(content)
    line = refusal(import_onmt.main, [tmp_path / "file.pt", tmp_path / "out", "--yes"])
    assert "not a checkpoint of OpenNMT-py, or damaged" in line


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    assert "no such file" in refusal(
        import_onmt.main, [tmp_path / "absent.pt", tmp_path / "o", "--yes"]
    )


def test_a_folder_is_not_a_checkpoint(tmp_path: Path) -> None:
    assert " is a folder; name a" in refusal(import_onmt.main, [tmp_path, tmp_path / "o", "--yes"])
