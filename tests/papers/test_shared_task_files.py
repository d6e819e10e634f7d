"""Files of CoNLL-SIGMORPHON 2018, as `tools.papers.corpora sigmorphon` fetches them."""

import hashlib
from pathlib import Path

import pytest

from tests.in_process import exit_status, refusal
from tools.papers import corpora, shared_task

CORNISH = {"train-low": 100, "dev": 50}  # rows
SIGMORPHON = ["sigmorphon", "--out", "rows", "--from", "clone"]
FETCH = [*SIGMORPHON, "--settings", "low", "--languages", "cornish"]
LOW_AND_HIGH = [*SIGMORPHON, "--settings", "low", "high", "--languages"]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files as in a clone of the repository, whose checksums are known."""
    monkeypatch.chdir(tmp_path)
    folder, files = Path("clone/task1/surprise"), {}
    folder.mkdir(parents=True)
    for part, rows in CORNISH.items():
        content = b"a\tb\tV\n" * rows
        (folder / f"cornish-{part}").write_bytes(content)
        files[part] = shared_task.PublishedFile(rows, hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(shared_task, "conll2018", lambda: {"cornish": files})
    return folder


def test_the_list_of_the_shared_task_has_all_files() -> None:
    assert sum(map(len, shared_task.conll2018().values())) == 394


def test_the_list_of_the_shared_task_has_the_number_of_rows() -> None:
    files = shared_task.conll2018()["cornish"]
    assert {part: files[part].rows for part in CORNISH} == CORNISH


def test_the_list_has_languages_with_hyphens() -> None:
    parts = {"train-low", "train-medium", "train-high", "dev"}
    assert shared_task.conll2018()["classical-syriac"].keys() == parts


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
def test_a_setting_that_is_named_twice_counts_once(capsys: pytest.CaptureFixture[str]) -> None:
    twice = [*SIGMORPHON, "--settings", "low", "low", "--languages", "cornish"]
    assert exit_status(corpora.main, twice) == 0
    assert "2 files, 150 rows; 2 fetched" in capsys.readouterr().out


@pytest.mark.usefixtures("clone")
def test_a_misspelt_language_is_refused() -> None:
    line = refusal(corpora.main, [*FETCH[:-1], "cornsh"])
    assert "no language 'cornsh'; did you mean 'cornish'?" in line


@pytest.mark.usefixtures("clone")
def test_a_language_that_lacks_a_setting_is_refused_if_it_is_named() -> None:
    line = refusal(corpora.main, [*LOW_AND_HIGH, "cornish"])
    assert "cornish has no train-high; leave it out of --languages" in line


@pytest.mark.usefixtures("clone")
def test_all_languages_are_fetched_in_the_settings_they_have(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_status(corpora.main, [*LOW_AND_HIGH, "all"]) == 0
    assert "2 files, 150 rows; 2 fetched" in capsys.readouterr().out


def test_test_sets_do_not_count_as_rows(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their numbers of rows are not published."""
    (clone / "cornish-test").write_text("a\tb\tV\n")
    assert exit_status(corpora.main, [*FETCH, "--test"]) == 0
    assert "3 files, 150 rows besides the test sets; 3 fetched" in capsys.readouterr().out


def test_a_test_set_that_is_no_table_is_refused(clone: Path) -> None:
    (clone / "cornish-test").write_text("<html>\n")
    assert "cornish-test" in refusal(corpora.main, [*FETCH, "--test"], progress=True)


def test_a_damaged_file_is_fetched_again_and_compared(clone: Path) -> None:
    """Here its source is damaged, too."""
    assert exit_status(corpora.main, FETCH) == 0
    for path in (Path("rows/cornish-dev"), clone / "cornish-dev"):
        path.write_text("a\tb\tV\n")
    line = refusal(corpora.main, FETCH, progress=True)
    assert "cornish-dev: has another checksum" in line
