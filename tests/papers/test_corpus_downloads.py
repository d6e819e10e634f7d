"""Parallel corpora that are downloaded: their files are joined, and checked. Nothing is fetched."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.in_process import refusal
from tests.papers.corpus_copies import (
    SIZES,
    expect_small_corpora,
    lines_of,
    publish,
    published_text,
)
from tools.papers import corpora
from tools.papers.parallel_corpora import PARALLEL, read_parallel


@pytest.fixture(autouse=True)
def small_corpora_in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expect_small_corpora(monkeypatch)


def plain_text(lines: Sequence[str]) -> bytes:
    """Return a file with one sentence a line."""
    return published_text("plain", list(lines)).encode()


def fifths(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield five equal parts of the lines, in order."""
    size = len(lines) // 5
    for start in range(0, len(lines), size):
        yield lines[start : start + size]


def test_a_corpus_without_an_address_is_not_downloaded() -> None:
    line = refusal(corpora.main, ["wmt16", "--out", "out"])
    assert "wmt16 is not downloaded: name your copy with --from FOLDER" in line


def test_the_downloaded_files_of_a_part_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """The training text of Tanaka's corpus is published in five files of each language."""
    files = {}
    for language in ("en", "ja"):
        for number, lines in enumerate(fifths(lines_of(language, "train"))):
            files[f"train.{language}.{number:03}"] = plain_text(lines)
        files[f"dev.{language}"] = plain_text(lines_of(language, "val"))
        files[f"test.{language}"] = plain_text(lines_of(language, "test"))
    publish(monkeypatch, "tanaka", files)
    assert read_parallel(PARALLEL["tanaka"], None) == {
        part: [lines_of("en", part), lines_of("ja", part)] for part in SIZES
    }


def test_a_download_with_another_checksum_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The German file has its checksum, and the English one has not."""
    german, english = (plain_text(lines_of(language, "train")) for language in ("de", "en"))
    publish(
        monkeypatch,
        "multi30k",
        {"train.lc.norm.tok.de": german, "train.lc.norm.tok.en": english},
    )
    sha256 = {"train.de": hashlib.sha256(german).hexdigest(), "train.en": 64 * "0"}
    monkeypatch.setitem(PARALLEL, "multi30k", replace(PARALLEL["multi30k"], sha256=sha256))
    line = refusal(corpora.main, ["multi30k", "--out", "out"])
    assert "train.en: has another checksum" in line
