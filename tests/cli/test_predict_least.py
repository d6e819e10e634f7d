"""`onmt-entmax predict --least`: improbable outputs are left out, and counted."""

import csv
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Transducer
from onmt_entmax.errors import counted
from tests.cli.predicting import SOURCES, predicted
from tests.cli.tables import write_table


class Expected(NamedTuple):
    """What `--least` keeps of all outputs of `SOURCES`, and what it leaves out.

    Attributes:
        least: a probability that the best output of each source but one reaches.
        likely: the outputs of each source that reach it, the most probable first.
        left_out: the number of each source's other outputs.
    """

    least: float
    likely: dict[str, list[str]]
    left_out: dict[str, int]


@pytest.fixture(scope="module")
def expected(listable_model: Path) -> Expected:
    transducer = Transducer(listable_model, n_best=0)
    possible = {source: transducer.predict(source).outputs for source in SOURCES}
    lowest, second, *_ = sorted(outputs[0].prob for outputs in possible.values())
    least = round((lowest + second) / 2, 6)  # the command prints six digits
    likely = {
        source: [output.text for output in outputs if output.prob >= least]
        for source, outputs in possible.items()
    }
    left_out = {source: len(possible[source]) - len(likely[source]) for source in SOURCES}
    assert sum(map(bool, likely.values())) == len(SOURCES) - 1
    assert sum(left_out.values()) > 1
    return Expected(least, likely, left_out)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "words.tsv", "Word", *SOURCES)


class Printed(NamedTuple):
    """The predicted table on the standard output, and the notes on the standard error."""

    table: str
    notes: str


@pytest.fixture
def printed(
    listable_model: Path, table: Path, expected: Expected, capsys: pytest.CaptureFixture[str]
) -> Printed:
    assert predicted(listable_model, table, "--all", "--least", expected.least) == 0
    return Printed(*capsys.readouterr())


@pytest.fixture
def rows(printed: Printed) -> list[dict[str, str]]:
    """The rows of the predicted table by their columns."""
    return list(csv.DictReader(printed.table.splitlines(), delimiter="\t"))


def test_likely_outputs_are_listed_by_rank(rows: list[dict[str, str]], expected: Expected) -> None:
    assert [(row["Word"], row["target"], row["rank"]) for row in rows if row["rank"]] == [
        (source, text, str(rank))
        for source in SOURCES
        for rank, text in enumerate(expected.likely[source], 1)
    ]


def test_a_source_without_a_likely_output_keeps_a_row(
    rows: list[dict[str, str]], expected: Expected
) -> None:
    (source,) = (source for source in SOURCES if not expected.likely[source])
    (row,) = (row for row in rows if row["Word"] == source)
    assert (row["target"], row["rank"], row["probability"]) == ("", "", "")


def test_every_row_says_how_many_outputs_of_its_source_are_left_out(
    rows: list[dict[str, str]], expected: Expected
) -> None:
    assert {(row["Word"], row["warnings"]) for row in rows} == {
        (source, f"{counted(count, 'output')} below {expected.least:g} left out" if count else "")
        for source, count in expected.left_out.items()
    }


def test_the_summary_says_how_many_outputs_are_left_out(
    printed: Printed, expected: Expected
) -> None:
    count = sum(expected.left_out.values())
    note = f"{count} outputs below {expected.least:g} left out; rows that have no other: 1 of 4"
    assert note in printed.notes


def test_outputs_left_out_do_not_count_as_warnings(printed: Printed) -> None:
    assert "rows with warnings" not in printed.notes


def test_a_file_has_the_rows_that_are_printed(
    printed: Printed, listable_model: Path, table: Path, expected: Expected, tmp_path: Path
) -> None:
    output = tmp_path / "out.tsv"
    options = ("--all", "--least", expected.least, "--output", output)
    assert predicted(listable_model, table, *options) == 0
    assert output.read_text(encoding="utf-8") == printed.table
