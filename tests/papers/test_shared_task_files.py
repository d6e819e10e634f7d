"""Files of CoNLL-SIGMORPHON 2018, as `tools.papers.corpora sigmorphon` fetches them."""

import hashlib
from pathlib import Path

import pytest

from tests.in_process import refusal, success
from tools.papers import corpora, shared_task

# The only language here is Cornish, with a single training file, that of the low setting.
CORNISH = {"cornish-train-low": "a\tb\tV\n" * 100, "cornish-dev": "a\tb\tN\n" * 50}
FETCHED = Path("rows")  # the folder that the command fills


@pytest.fixture(autouse=True)
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of these two files in a clone of the shared task; only they count as published."""
    monkeypatch.chdir(tmp_path)
    folder = Path("clone/task1/surprise")
    folder.mkdir(parents=True)
    published = {}
    for name, rows in CORNISH.items():
        content = rows.encode()
        (folder / name).write_bytes(content)
        published[name.removeprefix("cornish-")] = shared_task.PublishedFile(
            rows.count("\n"), hashlib.sha256(content).hexdigest()
        )
    monkeypatch.setattr(shared_task, "conll2018", lambda: {"cornish": published})
    return folder


def call(language: str = "cornish", *flags: str, settings: str = "low") -> list[str]:
    """Return the arguments of a call that fetches files from the clone."""
    source = ["sigmorphon", "--out", str(FETCHED), "--from", "clone"]
    return [*source, "--settings", *settings.split(), "--languages", language, *flags]


def fetched_files() -> dict[str, str]:
    """Return the content of each file that was fetched, by its name."""
    return {path.name: path.read_text() for path in FETCHED.iterdir()}


# --- training and development files ---


def test_the_files_of_a_language_are_fetched() -> None:
    success(corpora.main, call())
    assert fetched_files() == CORNISH


def test_the_numbers_of_files_and_rows_are_printed() -> None:
    assert "2 files, 150 rows; 2 fetched" in success(corpora.main, call())


def test_files_that_are_there_are_not_fetched_again() -> None:
    success(corpora.main, call())
    assert "2 files, 150 rows; 0 fetched" in success(corpora.main, call())


def test_a_setting_that_is_named_twice_counts_once() -> None:
    assert "2 files, 150 rows; 2 fetched" in success(corpora.main, call(settings="low low"))


def test_all_languages_are_fetched_in_the_settings_that_they_have() -> None:
    success(corpora.main, call("all", settings="low high"))
    assert fetched_files() == CORNISH


def test_a_named_language_that_lacks_a_setting_is_refused() -> None:
    line = refusal(corpora.main, call(settings="low high"))
    assert "cornish has no train-high; leave it out of --languages" in line


def test_a_misspelt_language_is_refused() -> None:
    line = refusal(corpora.main, call("cornsh"))
    assert "no language 'cornsh'; did you mean 'cornish'?" in line


@pytest.fixture
def damaged(clone: Path) -> None:
    """One file is damaged after it was fetched, both here and in the clone."""
    success(corpora.main, call())
    for folder in (FETCHED, clone):
        (folder / "cornish-dev").write_text("a\tb\tV\n")


@pytest.mark.usefixtures("damaged")
def test_a_damaged_file_is_fetched_again_and_compared() -> None:
    line = refusal(corpora.main, call(), progress=True)
    assert "cornish-dev: has another checksum" in line


# --- test sets, whose checksums and numbers of rows are not published ---


def test_a_test_set_is_fetched_on_request(clone: Path) -> None:
    (clone / "cornish-test").write_text("a\tb\tV\n")
    success(corpora.main, call("cornish", "--test"))
    assert fetched_files() == CORNISH | {"cornish-test": "a\tb\tV\n"}


def test_the_rows_of_test_sets_are_not_counted(clone: Path) -> None:
    (clone / "cornish-test").write_text("a\tb\tV\n")
    printed = success(corpora.main, call("cornish", "--test"))
    assert "3 files, 150 rows besides the test sets; 3 fetched" in printed


def test_a_test_set_that_is_not_a_table_is_refused(clone: Path) -> None:
    (clone / "cornish-test").write_text("<html>\n")
    line = refusal(corpora.main, call("cornish", "--test"), progress=True)
    assert "cornish-test: no tabs, commas or semicolons divide columns, as in '<html>'" in line
