"""`onmt-entmax import-onmt`: which files it refuses, and when it opens a pickle.

Unpickling may run any program. A file is opened only if a person agrees, and then runs nothing.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from onmt_entmax.cli import import_onmt
from tests.commands import run
from tests.evil import Evil
from tests.in_process import exit_status, refusal


class TestAPickleThatMakesAFolder:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "harm"

    @pytest.fixture
    def checkpoint(self, tmp_path: Path, folder: Path) -> Path:
        torch.save({"model": {}, "opt": Evil(folder)}, tmp_path / "evil.pt")
        return tmp_path / "evil.pt"

    def test_makes_it_if_pytorch_trusts_the_pickle(self, checkpoint: Path, folder: Path) -> None:
        """A control of the tests below."""
        torch.load(checkpoint, weights_only=False)
        assert folder.exists()

    def test_is_refused(self, checkpoint: Path, tmp_path: Path) -> None:
        message = refusal(import_onmt.main, [checkpoint, tmp_path / "out", "--yes"])
        assert "refused: it names posix.mkdir" in message
        assert not (tmp_path / "out").exists()

    def test_makes_no_folder_if_it_is_refused(
        self, checkpoint: Path, folder: Path, tmp_path: Path
    ) -> None:
        refusal(import_onmt.main, [checkpoint, tmp_path / "out", "--yes"])
        assert not folder.exists()


# --- the question whether to open the file ---


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


def answer(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """Let a person type a line on a terminal."""
    person = SimpleNamespace(isatty=lambda: True, readline=lambda: line)
    monkeypatch.setattr(sys, "stdin", person)


NOT_A_CHECKPOINT = "no 'model' in it"  # the error of an opened file that is some other pickle


@pytest.mark.parametrize("line", [pytest.param("n\n", id="no"), pytest.param("\n", id="nothing")])
def test_a_pickle_is_not_opened_if_a_person_does_not_agree(
    some_pickle: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
) -> None:
    answer(monkeypatch, line)
    assert exit_status(import_onmt.main, [str(some_pickle), str(tmp_path / "out")]) == 1
    assert NOT_A_CHECKPOINT not in capsys.readouterr().err


def test_a_pickle_is_opened_if_a_person_agrees(
    some_pickle: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer(monkeypatch, "y\n")
    assert exit_status(import_onmt.main, [str(some_pickle), str(tmp_path / "out")]) == 2
    assert NOT_A_CHECKPOINT in capsys.readouterr().err


# --- other files ---


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


def test_a_missing_checkpoint_is_refused(tmp_path: Path) -> None:
    line = refusal(import_onmt.main, [tmp_path / "absent.pt", tmp_path / "out", "--yes"])
    assert "no such file" in line


def test_a_folder_in_the_place_of_a_checkpoint_is_refused(tmp_path: Path) -> None:
    line = refusal(import_onmt.main, [tmp_path, tmp_path / "out", "--yes"])
    assert " is a folder; name a" in line
