"""Files of CoNLL-SIGMORPHON 2018, as `tools.papers.corpora sigmorphon` fetches them."""

import hashlib
from pathlib import Path

import pytest

from tests.in_process import exit_status, refusal
from tools.papers import corpora, shared_task

CORNISH = {"cornish-train-low": 100, "cornish-dev": 50}  # rows
FETCH = [
    *("sigmorphon", "--out", "rows", "--from", "clone"),
    *("--settings", "low", "--languages", "cornish"),
]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files as in a clone of the repository, whose checksums are known."""
    monkeypatch.chdir(tmp_path)
    folder, published = Path("clone/task1/surprise"), {}
    folder.mkdir(parents=True)
    for name, rows in CORNISH.items():
        content = b"a\tb\tV\n" * rows
        (folder / name).write_bytes(content)
        published[name] = shared_task.PublishedFile(rows, hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(shared_task, "conll2018", lambda: published)
    return folder


def test_the_list_of_the_shared_task_has_all_files() -> None:
    assert len(shared_task.conll2018()) == 394


def test_the_list_of_the_shared_task_has_the_number_of_rows() -> None:
    files = shared_task.conll2018()
    assert {name: files[name].rows for name in CORNISH} == CORNISH


@pytest.mark.usefixtures("clone")
def test_sigmorphon_is_fetched(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(corpora.main, FETCH) == 0
    assert "2 files, 150 rows; 2 fetched" in capsys.readouterr().out


@pytest.mark.usefixtures("clone")
def test_sigmorphon_is_fetched_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(corpora.main, FETCH) == 0
    capsys.readouterr()
    assert exit_status(corpora.main, FETCH) == 0
    assert "2 files, 150 rows; 0 fetched" in capsys.readouterr().out


@pytest.mark.usefixtures("clone")
def test_a_misspelt_language_is_refused() -> None:
    line = refusal(corpora.main, [*FETCH[:-1], "cornsh"])
    assert "no language 'cornsh'; did you mean 'cornish'?" in line


def test_a_damaged_file_is_fetched_again_and_compared(clone: Path) -> None:
    """Here its source is damaged, too."""
    assert exit_status(corpora.main, FETCH) == 0
    for path in (Path("rows/cornish-dev"), clone / "cornish-dev"):
        path.write_text("a\tb\tV\n")
    line = refusal(corpora.main, FETCH, progress=True)
    assert "cornish-dev: has another checksum" in line
