"""Multi-label data and sentence pairs, as `tools.papers.corpora` fetches them."""

import zipfile
from pathlib import Path

import pytest

from tests.in_process import exit_status, refusal
from tools.papers import corpora, multilabel_corpora


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cal500(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The rows of the two files that CAL500's only file, here with 502 different rows, becomes."""
    monkeypatch.setattr(multilabel_corpora, "MULAN", {})  # no checksums
    Path("mulan").mkdir()
    rows = "".join(f"{n},0\n" for n in range(502))
    Path("mulan/cal500.arff").write_text(f"@relation x\n@attribute a numeric\n@data\n{rows}")
    Path("mulan/cal500.xml").write_text("<labels/>")
    assert exit_status(corpora.main, ["cal500", "--from", "mulan", "--out", "data", "--test"]) == 0
    return {
        part: Path(f"data/cal500-{part}.arff").read_text().split("@data\n")[1].splitlines()
        for part in ("train", "test")
    }


def test_cal500_is_split_into_400_and_102_rows(cal500: dict[str, list[str]]) -> None:
    assert {part: len(rows) for part, rows in cal500.items()} == {"train": 400, "test": 102}


def test_no_row_of_cal500_is_in_both_parts(cal500: dict[str, list[str]]) -> None:
    assert not {*cal500["train"]} & {*cal500["test"]}


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_snli_is_unpacked(part: str) -> None:
    Path("copy").mkdir()
    with zipfile.ZipFile("copy/snli_1.0.zip", "w") as archive:
        for name in ("train", "dev", "test"):
            archive.writestr(f"snli_1.0/snli_1.0_{name}.jsonl", f"text of {name}")
    assert exit_status(corpora.main, ["snli", "--from", "copy", "--out", "snli"]) == 0
    assert Path(f"snli/snli_1.0_{part}.jsonl").read_text() == f"text of {part}"


def test_options_of_parallel_corpora_are_of_no_other_data() -> None:
    assert "--symbols" in refusal(corpora.main, ["snli", "--out", "x", "--symbols", "9"])
