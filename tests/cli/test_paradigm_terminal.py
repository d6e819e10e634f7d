"""`onmt-entmax paradigm`: printed tables are folded to the width of the terminal, files are not."""

from pathlib import Path

import pytest

from onmt_entmax.cli import paradigm
from tests.in_process import success

NARROW, WIDE = "1", "1000"  # columns, as in the environment variable that a shell sets


@pytest.fixture
def command(paradigm_model: Path, cells_file: Path) -> list[object]:
    """A command that prints the table of a verb with several forms in a cell."""
    return ["german", "ab", "--model", paradigm_model, "--cells", cells_file]


@pytest.fixture
def unfolded(command: list[object], monkeypatch: pytest.MonkeyPatch) -> str:
    """What the command prints on a terminal on which each row takes one line."""
    monkeypatch.setenv("COLUMNS", WIDE)
    return success(paradigm.main, command)


def test_a_table_that_fits_is_printed_with_a_line_for_each_row(unfolded: str) -> None:
    """The title `verb` is followed by the rows of V and of V;PST."""
    assert len(unfolded.splitlines()) == 3


def test_a_table_that_does_not_fit_is_folded(
    command: list[object], unfolded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", NARROW)
    folded = success(paradigm.main, command)
    assert len(folded.splitlines()) > len(unfolded.splitlines())


def test_a_folded_table_has_the_same_words(
    command: list[object], unfolded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", NARROW)
    assert success(paradigm.main, command).split() == unfolded.split()


def test_a_table_in_a_file_is_not_folded(
    command: list[object], unfolded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", NARROW)
    success(paradigm.main, [*command, "--output", tmp_path / "table"])
    assert (tmp_path / "table").read_text(encoding="utf-8") == unfolded
