"""`prepare table`: rows that cannot be read end it, or are left out with `--skip-bad`."""

from pathlib import Path

import pytest

from onmt_entmax.cli import prepare_table
from tests.cli.preparing import FORMS, Printed, prepare, read_lines, write_tables
from tests.in_process import exit_status

pytestmark = pytest.mark.usefixtures("working_folder")

# Twelve of these are bad: line 2 lacks a column, lines 3 to 13 have no source.
BAD = ["draw\tV;PST\tdrew", "go\twent", *["\tV\twent"] * 11, "walk\tV;PRS\twalks"]


@pytest.fixture
def errors(working_folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The standard error of a call that is refused for bad rows."""
    write_tables({"a.trn": BAD, "a.dev": FORMS})
    arguments = ["--train", "a.trn", "--dev", "a.dev", "--out", "out"]
    assert exit_status(prepare_table.main, arguments) == 2
    return capsys.readouterr().err.splitlines()


def test_the_first_ten_bad_rows_are_named(errors: list[str]) -> None:
    first, *others = errors[:-1]
    assert first == "warning: a.trn:2: expected 3 columns, source, tags, target; found 2"
    assert others == [f"warning: a.trn:{number}: source is empty" for number in range(3, 12)]


def test_bad_rows_are_an_error_that_counts_them(errors: list[str]) -> None:
    assert errors[-1] == (
        "prepare_table.py: error: 12 of 17 rows cannot be read, the first 10 above; mend them, or "
        "go on without them: --skip-bad FILE writes them there"
    )


@pytest.mark.usefixtures("errors")
def test_nothing_is_written_if_rows_are_bad() -> None:
    assert not Path("out").exists()


@pytest.fixture
def skipped(working_folder: Path) -> Printed:
    """What is printed if bad rows are skipped, which `bad.txt` then has."""
    write_tables({"a.trn": BAD, "a.dev": FORMS})
    return prepare("--train", "a.trn", "--dev", "a.dev", "--skip-bad", "bad.txt")


def test_skipped_rows_are_counted(skipped: Printed) -> None:
    count = "12 of 17 rows cannot be read, the first 10 above; bad.txt has them, with their"
    assert count in skipped.errors


@pytest.mark.usefixtures("skipped")
def test_skipped_rows_are_written_with_place_and_reason() -> None:
    lines = read_lines("bad.txt")
    assert len(lines) == 12
    assert lines[1] == "a.trn:3\tsource is empty\t\tV\twent"


@pytest.mark.usefixtures("skipped")
def test_the_other_rows_are_prepared() -> None:
    assert len(read_lines("out/train.src")) == 2
