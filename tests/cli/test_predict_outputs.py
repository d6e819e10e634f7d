"""`onmt-entmax predict`: several outputs of a row, with their details."""

from pathlib import Path

import pytest

from onmt_entmax import Transducer
from tests.cli.predicting import predicted
from tests.cli.tables import write_table


def expected_rows(model: Path, source: str) -> list[str]:
    """Return rows of both best outputs, with rank, probability, certificate and warnings."""
    prediction = Transducer(model, n_best=2).predict(source)
    warnings = "; ".join(prediction.warnings)
    return [
        f"{source}\t{output.text}\t{rank}\t{output.prob:.6g}\t{prediction.level}\t{warnings}"
        for rank, output in enumerate(prediction.outputs, 1)
    ]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of two sources, of which the first has a character that the model does not know."""
    return write_table(tmp_path / "words.tsv", "abq", "c")


def test_each_output_is_a_row_with_its_details(
    phones_model: Path, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert predicted(phones_model, table, "--n_best", 2) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows == [*expected_rows(phones_model, "abq"), *expected_rows(phones_model, "c")]
    assert len(rows) == 4  # two a source


def test_a_warning_is_printed_with_the_number_of_its_rows(
    phones_model: Path, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
