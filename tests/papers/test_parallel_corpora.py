"""Local copies of parallel corpora, which `tools.papers.corpora` reads and prepares."""

import json
from pathlib import Path

import pytest

from onmt_entmax.cli import prepare_files
from tests.in_process import exit_status, refusal
from tests.papers.corpus_copies import SIZES, expect_small_corpora, lines_of, write_copy
from tools.papers import corpora
from tools.papers.parallel_corpora import PARALLEL

FILES = ["--from", "copy", "--out", "out"]


@pytest.fixture(autouse=True)
def small_corpora_in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expect_small_corpora(monkeypatch)


@pytest.fixture(params=list(PARALLEL))
def name(request: pytest.FixtureRequest) -> str:
    """The name of a corpus; a test runs for each."""
    name: str = request.param
    return name


@pytest.fixture
def copy(name: str) -> Path:
    """The folder of a local copy."""
    return write_copy(name, Path("copy"))


@pytest.mark.usefixtures("copy")
def test_a_local_copy_is_prepared(name: str) -> None:
    assert exit_status(corpora.main, [name, *FILES]) == 0
    corpus = PARALLEL[name]
    for part in corpus.counts:
        folder = Path("out/test" if part == "test" else "out")
        for language in corpus.languages:
            text = (folder / f"{part}.{language}").read_text(encoding="utf-8")
            assert text.splitlines() == lines_of(language, part)
    pairs = json.loads(Path("out/prepare.json").read_text())["pairs"]
    assert {part: pairs[part] for part in corpus.counts} == {
        part: SIZES[part] for part in corpus.counts
    }


def first_needed_file(copy: Path) -> Path:
    """Return a file without which the copy is refused: any that is not of the test set."""
    return next(path for path in sorted(copy.iterdir()) if not path.name.startswith("test"))


def test_a_cut_copy_is_refused(name: str, copy: Path) -> None:
    path = first_needed_file(copy)
    path.write_bytes(path.read_bytes()[:-20])
    line = refusal(corpora.main, [name, *FILES], progress=True)
    assert "the copy is cut or another one" in line


def test_a_copy_without_a_file_is_refused(name: str, copy: Path) -> None:
    first_needed_file(copy).unlink()
    line = refusal(corpora.main, [name, *FILES], progress=True)
    assert "copy: no file" in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "copy", "--out", "copy"], "is the folder that is read"),
        (["snli", "--out", "out"], "a folder of its own"),
        (["--test", "--out", "out"], "--test is not of"),
    ],
    ids=["into the copy", "beside other data", "a test set of other data"],
)
def test_wrong_options_of_a_parallel_corpus_are_refused(arguments: list[str], message: str) -> None:
    write_copy("multi30k", Path("copy"))
    assert message in refusal(corpora.main, ["multi30k", *arguments])


def test_the_exit_status_is_that_of_prepare_files(monkeypatch: pytest.MonkeyPatch) -> None:
    write_copy("multi30k", Path("copy"))
    monkeypatch.setattr(prepare_files, "main", lambda arguments: 3)
    assert exit_status(corpora.main, ["multi30k", *FILES]) == 3
