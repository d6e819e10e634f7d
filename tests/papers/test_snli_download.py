"""SNLI, as `tools.papers.corpora` fetches it."""

import zipfile
from pathlib import Path

import pytest

from tests.in_process import exit_status, refusal
from tools.papers import corpora


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_snli_is_unpacked(tmp_path: Path, part: str) -> None:
    with zipfile.ZipFile(tmp_path / "snli_1.0.zip", "w") as archive:
        for name in ("train", "dev", "test"):
            archive.writestr(f"snli_1.0/snli_1.0_{name}.jsonl", f"text of {name}")
    folder = tmp_path / "snli"
    assert exit_status(corpora.main, ["snli", "--from", str(tmp_path), "--out", str(folder)]) == 0
    assert (folder / f"snli_1.0_{part}.jsonl").read_text() == f"text of {part}"


def test_options_of_parallel_corpora_are_refused_for_snli(tmp_path: Path) -> None:
    arguments = ["snli", "--out", tmp_path / "snli", "--symbols", "9"]
    assert "--symbols: no such option" in refusal(corpora.main, arguments)
