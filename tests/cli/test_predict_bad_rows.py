"""`onmt-entmax predict`: rows that cannot be read end it, or are left out with `--skip-bad`."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.predicting import predicted
from tests.cli.tables import write_table


class Tables(NamedTuple):
    """Tables of three and two rows, each with one bad row, and how they are predicted."""

    first: Path
    second: Path
    output: Path
    """The folder of the predicted tables."""

    @property
    def arguments(self) -> tuple[object, ...]:
        """The arguments of the call, without the model."""
        return (self.first, self.second, "--columns", "source,target", "--output", self.output)


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    first = write_table(tmp_path / "a.tsv", "ab\t", "\tp", "da\t")
    second = write_table(tmp_path / "b.tsv", "a\tb\tc", "c\t")
    return Tables(first, second, tmp_path / "out")


def test_all_bad_rows_are_named_before_anything_is_predicted(
    phones_model: Path, tables: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    assert predicted(phones_model, *tables.arguments) == 2
    first, second, error = capsys.readouterr().err.splitlines()
    assert first == f"warning: {tables.first}:2: source is empty"
    assert second.startswith(f"warning: {tables.second}:1: expected 2 columns")
    assert "2 of 5 rows cannot be read" in error
    assert not tables.output.exists()


@pytest.fixture
def bad_rows(phones_model: Path, tables: Tables, tmp_path: Path) -> Path:
    """The file that receives the bad rows of a prediction, which leaves them out."""
    path = tmp_path / "bad"
    assert predicted(phones_model, *tables.arguments, "--skip-bad", path) == 0
    return path


@pytest.mark.usefixtures("bad_rows")
def test_bad_rows_are_left_out_on_request(tables: Tables, best_targets: dict[str, str]) -> None:
    lines = (tables.output / "a.tsv").read_text().splitlines()
    assert lines == [f"{source}\t{best_targets[source]}" for source in ("ab", "da")]


def test_bad_rows_are_written_with_their_places(tables: Tables, bad_rows: Path) -> None:
    rows = [line.split("\t", 2) for line in bad_rows.read_text().splitlines()]
    assert [(place, row) for place, _reason, row in rows] == [
        (f"{tables.first}:2", "\tp"),
        (f"{tables.second}:1", "a\tb\tc"),
    ]


def test_a_table_of_bad_rows_alone_comes_back_empty(
    phones_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, output = write_table(tmp_path / "a.tsv", "\tp", "\tq"), tmp_path / "out.tsv"
    options = ("--columns", "source,target", "--skip-bad", tmp_path / "bad")
    assert predicted(phones_model, table, "--output", output, *options) == 0
    assert output.read_text() == ""
    assert f"wrote {output}: 0 rows\n" in capsys.readouterr().err


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_a_table_of_bad_rows_alone_does_not_stop_the_others(
    phones_model: Path, tmp_path: Path, best_targets: dict[str, str], names: str
) -> None:
    """The table of bad rows is the first of two, or the second."""
    bad, good = (tmp_path / name for name in names)
    write_table(bad, "\tp")
    write_table(good, "ab\t")
    output = tmp_path / "out"
    options = ("--columns", "source,target", "--skip-bad", tmp_path / "bad")
    assert (
        predicted(phones_model, tmp_path / "a", tmp_path / "b", "--output", output, *options) == 0
    )
    assert (output / good.name).read_text() == f"ab\t{best_targets['ab']}\n"
    assert sorted(path.name for path in output.iterdir()) == ["a", "b"]
