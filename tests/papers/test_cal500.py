"""CAL500, as `tools.papers.corpora` prepares it: Mulan publishes one file, which is split."""

from pathlib import Path

import pytest

from tests.in_process import refusal, success
from tools.papers import corpora, multilabel_corpora

ARGUMENTS = ["cal500", "--from", "mulan", "--out", "data", "--test"]


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_cal500(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write CAL500's only file to the folder `mulan`, with different rows and any checksum."""
    monkeypatch.setattr(multilabel_corpora, "MULAN_SHA256", {})
    Path("mulan").mkdir()
    lines = "".join(f"{number},0\n" for number in range(rows))
    Path("mulan/cal500.arff").write_text(f"@relation x\n@attribute a numeric\n@data\n{lines}")
    Path("mulan/cal500.xml").write_text("<labels/>")


@pytest.fixture
def cal500(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The rows of the two files that CAL500's only file, with 502 rows, becomes."""
    write_cal500(502, monkeypatch)
    success(corpora.main, ARGUMENTS)
    return {
        part: Path(f"data/cal500-{part}.arff").read_text().split("@data\n")[1].splitlines()
        for part in ("train", "test")
    }


def test_cal500_is_split_into_400_and_102_rows(cal500: dict[str, list[str]]) -> None:
    assert {part: len(rows) for part, rows in cal500.items()} == {"train": 400, "test": 102}


def test_no_row_of_cal500_is_in_both_parts(cal500: dict[str, list[str]]) -> None:
    assert not {*cal500["train"]} & {*cal500["test"]}


@pytest.mark.parametrize("rows", [0, 399])
def test_a_file_of_cal500_that_is_cut_short_is_refused(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    write_cal500(rows, monkeypatch)
    message = refusal(corpora.main, ARGUMENTS, progress=True)
    assert f"cal500.arff: cut short: {rows} rows" in message
