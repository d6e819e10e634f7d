"""`onmt-entmax predict`: several outputs of a row, with their details."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Transducer
from onmt_entmax.errors import counted
from onmt_entmax.proven_outputs import Output
from tests.cli.predicting import SOURCES, predicted
from tests.cli.tables import write_table
from tests.string_models import write_phones


@pytest.fixture(scope="module")
def listable_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with so few outputs that a search lists them all."""
    return write_phones(tmp_path_factory.mktemp("listable") / "model", 12, end=3)


def expected_rows(model: Path, source: str) -> list[str]:
    """Return rows of both best outputs, with rank, probability, certificate and warnings."""
    prediction = Transducer(model, n_best=2).predict(source)
    warnings = "; ".join(prediction.warnings)
    return [
        f"{source}\t{output.text}\t{rank}\t{output.prob:.6g}\t{prediction.level}\t{warnings}"
        for rank, output in enumerate(prediction.outputs, 1)
    ]


def test_details_are_those_of_the_predictions(
    phones_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_table(tmp_path / "words.tsv", "abq", "c")
    assert predicted(phones_model, table, "--n_best", 2) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows == [*expected_rows(phones_model, "abq"), *expected_rows(phones_model, "c")]
    assert len(rows) == 4


def test_a_warning_of_rows_is_printed_with_their_number(
    phones_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_table(tmp_path / "words.tsv", "abq", "c")
    assert predicted(phones_model, table, "--n_best", 2) == 0
    assert "unknown character q (rows with warnings: 1 of 2)" in capsys.readouterr().err


def test_all_possible_outputs_are_listed(
    listable_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_table(tmp_path / "words.tsv", "ab")
    assert predicted(listable_model, table, "--all") == 0
    expected = Transducer(listable_model, n_best=0).predict("ab")
    assert expected.level == "exhaustive"
    listed = [line.split("\t")[1] for line in capsys.readouterr().out.splitlines()]
    assert listed == [output.text for output in expected.outputs]


# --- `--least`: improbable outputs are not listed ---


class Row(NamedTuple):
    """A row of the table that comes back, all columns as texts."""

    source: str
    output: str
    rank: str
    prob: str
    certificate: str
    warnings: str


class Likely(NamedTuple):
    """Outputs of at least a probability, which only three of four sources have."""

    least: float
    possible: dict[str, Sequence[Output]]
    """All outputs of each source."""
    rows: list[Row]
    errors: str

    def rows_of(self, source: str) -> list[Row]:
        return [row for row in self.rows if row.source == source]

    def likely(self, source: str) -> list[str]:
        """Return the outputs that are probable enough."""
        return [output.text for output in self.possible[source] if output.prob >= self.least]

    def left_out(self, source: str) -> int:
        """Return how many outputs are not."""
        return len(self.possible[source]) - len(self.likely(source))


@pytest.fixture(params=["file", "printed"])
def listed(
    request: pytest.FixtureRequest,
    listable_model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Likely:
    """The table in a file, or printed."""
    table = write_table(tmp_path / "words.tsv", *SOURCES)
    transducer = Transducer(listable_model, n_best=0)
    possible = {source: transducer.predict(source).outputs for source in SOURCES}
    lowest, second, *_ = sorted(outputs[0].prob for outputs in possible.values())
    least = round((lowest + second) / 2, 6)
    output = tmp_path / "out.tsv"
    options = ("--output", output) if request.param == "file" else ()
    assert predicted(listable_model, table, "--all", "--least", least, *options) == 0
    printed = capsys.readouterr()
    text = output.read_text(encoding="utf-8") if request.param == "file" else printed.out
    rows = [Row(*line.split("\t")) for line in text.splitlines()]
    return Likely(least, possible, rows, printed.err)


def test_three_of_four_sources_have_a_likely_output(listed: Likely) -> None:
    assert sum(bool(listed.likely(source)) for source in SOURCES) == 3


def test_likely_outputs_are_listed_by_rank(listed: Likely) -> None:
    for source in filter(listed.likely, SOURCES):
        rows = listed.rows_of(source)
        assert [row.output for row in rows] == listed.likely(source)
        assert [row.rank for row in rows] == [str(rank) for rank in range(1, len(rows) + 1)]


def test_a_row_that_has_no_probable_output_keeps_its_line(listed: Likely) -> None:
    (source,) = (source for source in SOURCES if not listed.likely(source))
    (row,) = listed.rows_of(source)
    assert (row.output, row.rank, row.prob) == ("", "", "")


def test_outputs_left_out_are_counted_in_each_row(listed: Likely) -> None:
    for source in SOURCES:
        count = listed.left_out(source)
        note = f"{counted(count, 'output')} below {listed.least:g} left out" if count else ""
        assert {row.warnings for row in listed.rows_of(source)} == {note}


def test_outputs_left_out_are_counted_at_the_end(listed: Likely) -> None:
    count = sum(map(listed.left_out, SOURCES))
    assert count > 1
    note = f"{count} outputs below {listed.least:g} left out; rows that have no other: 1 of 4"
    assert note in listed.errors


def test_outputs_left_out_do_not_count_as_warnings(listed: Likely) -> None:
    assert "rows with warnings" not in listed.errors
