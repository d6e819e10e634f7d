"""`onmt-entmax predict`: tables in, the same tables with targets out."""

from pathlib import Path

import pytest

from onmt_entmax import Transducer
from tests.cli.predicting import SOURCES, predicted, write_model_of_2023
from tests.cli.tables import write_table
from tests.inflection_models import write_cells, write_model
from tests.models import vocabularies_of
from tests.string_models import LETTERS, PHONES, task_options


@pytest.mark.parametrize("target", [None, "", "p a"], ids=["absent", "empty", "ignored"])
def test_a_table_comes_back_with_the_best_targets(
    phones_model: Path, best_targets: dict[str, str], tmp_path: Path, target: str | None
) -> None:
    rows = [source if target is None else f"{source}\t{target}" for source in SOURCES]
    table = write_table(tmp_path / "words.tsv", *rows)
    output = tmp_path / "out.tsv"
    assert predicted(phones_model, table, "--output", output) == 0
    lines = output.read_text(encoding="utf-8").splitlines()
    assert lines == [f"{source}\t{best_targets[source]}" for source in SOURCES]


def test_no_other_file_is_left(phones_model: Path, tmp_path: Path) -> None:
    """While it predicts, a file beside the output has the finished rows."""
    table = write_table(tmp_path / "words.tsv", "ab")
    assert predicted(phones_model, table, "--output", tmp_path / "out.tsv") == 0
    assert {path.name for path in tmp_path.iterdir()} == {"out.tsv", "words.tsv"}


# --- columns and headings ---


class TestATableOfWordsAndGlosses:
    """A table whose second column is not of targets, and whose first row may be a heading."""

    @pytest.fixture
    def notes(self, phones_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
        """The notes on the table, on the standard error."""
        table = write_table(tmp_path / "t", "word\tgloss", "ab\thouse")
        assert predicted(phones_model, table, "--output", tmp_path / "out") == 0
        return capsys.readouterr().err

    def test_has_its_columns_printed(self, notes: str) -> None:
        assert "t: columns source, target between tabs; " in notes

    def test_has_one_of_its_targets_printed_as_replaced(self, notes: str) -> None:
        assert "; targets, such as 'gloss', are replaced" in notes

    def test_has_its_possible_heading_printed_as_read(self, notes: str) -> None:
        assert "t:1: 'word', 'gloss' may be a heading; it is read as a row" in notes


def test_a_name_of_the_source_above_another_column_may_be_a_heading(
    phones_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The numbers are read as sources, since the model was trained on tables of two columns."""
    table = write_table(tmp_path / "t", "id\tword", "1\tab", "2\tda")
    assert predicted(phones_model, table, "--output", tmp_path / "out") == 0
    warning = "t:1: 'id', 'word' may be a heading; it is read as a row"
    assert warning in capsys.readouterr().err


def test_rows_with_tags_that_training_never_combined_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_model_of_2023(tmp_path / "model")
    write_cells(model, "german\tV\t3\ngerman\tPST\t1\n")
    table = write_table(tmp_path / "german.tst", "ab\tV;PST", "ba\tV")
    assert predicted(model, table, "--output", tmp_path / "out") == 0
    note = "note: rows with a combination of tags that training never had: 1 of 2\n"
    assert note in capsys.readouterr().err


def test_heading_order_and_other_columns_stay(
    phones_model: Path,
    best_targets: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = ("note,pronunciation,word", '"a, b",,ab', "x,,abcd")
    table = write_table(tmp_path / "words.csv", *rows)
    assert predicted(phones_model, table) == 0
    first, second = best_targets["ab"], best_targets["abcd"]
    assert capsys.readouterr().out.splitlines() == [
        rows[0],
        f'"a, b",{first},ab',
        f"x,{second},abcd",
    ]


def test_semicolons_divide_the_columns_of_a_csv_file(
    phones_model: Path,
    best_targets: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = write_table(tmp_path / "words.csv", "word;pronunciation;note", 'ab;;"x;y"', "da;;z")
    assert predicted(phones_model, table) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "word;pronunciation;note",
        f'ab;{best_targets["ab"]};"x;y"',
        f"da;{best_targets['da']};z",
    ]
    assert "columns source, target, - between semicolons" in printed.err


def test_a_single_column_may_have_a_heading(
    phones_model: Path,
    best_targets: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = write_table(tmp_path / "t.tsv", "Word", *SOURCES)
    assert predicted(phones_model, table) == 0
    printed = capsys.readouterr()
    rows = [f"{source}\t{best_targets[source]}" for source in SOURCES]
    assert printed.out.splitlines() == ["Word\ttarget", *rows]
    assert "columns source between tabs; heading 'Word' left out" in printed.err


# --- several models ---


def test_models_are_averaged(
    phones_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Its phones may be others: x has no probability in the first model.
    other = write_model(
        tmp_path / "other",
        seed=4,
        vocabularies=vocabularies_of(LETTERS, (*PHONES, "x")),
        end=0,
        options=task_options(separators={"target": " "}),
    )
    table = write_table(tmp_path / "words.tsv", "ab")
    assert predicted(phones_model, table, "--details", "--ensemble", other) == 0
    (row,) = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    expected = Transducer([phones_model, other]).predict("ab")
    best = expected.outputs[0]
    assert row[1:5] == [best.text, "1", f"{best.prob:.6g}", expected.level]
