"""`onmt-entmax predict`: options, outputs and tables that are refused before it predicts."""

import io
from pathlib import Path

import pytest

from onmt_entmax.cli import predict
from tests.cli.tables import write_table
from tests.in_process import refusal


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param("--columns target", "--columns: source is missing", id="no source"),
        pytest.param(
            "--columns source,word", "--columns: 'word' is none of source, target", id="no column"
        ),
        pytest.param("--columns source,source", "--columns: source is there twice", id="twice"),
        pytest.param("--language german", "the model reads none", id="no languages"),
        pytest.param("--n_best 0", "--n_best: must be ", id="no outputs"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(
    phones_model: Path, tmp_path: Path, options: str, message: str
) -> None:
    table = write_table(tmp_path / "words.tsv", "ab")
    assert message in refusal(predict.main, [phones_model, table, *options.split()])


def test_tables_of_one_name_are_refused(phones_model: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    first, second = (
        write_table(folder / "words.tsv", "ab") for folder in (tmp_path, tmp_path / "a")
    )
    output = tmp_path / "out"
    message = f"{first} and {second} would both be written to {output}/words.tsv"
    assert message in refusal(predict.main, [phones_model, first, second, "--output", output])


def test_several_tables_need_a_folder(phones_model: Path, tmp_path: Path) -> None:
    tables = [write_table(tmp_path / name, "ab") for name in ("a.tsv", "b.tsv")]
    assert "need --output, a folder" in refusal(predict.main, [phones_model, *tables])


def test_a_file_is_not_a_folder_for_tables(phones_model: Path, tmp_path: Path) -> None:
    tables = [write_table(tmp_path / name, "ab") for name in ("a.tsv", "b.tsv")]
    output = write_table(tmp_path / "out", "before")
    message = refusal(predict.main, [phones_model, *tables, "--output", output])
    assert f"--output {output}: is a file, and several tables need a folder" in message
    assert output.read_text() == "before\n"


def test_a_standard_input_that_is_not_utf8_is_named(
    phones_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"ab\n\xff\n")))
    assert "error: standard input:2: not UTF-8" in refusal(predict.main, [phones_model, "-"])


def test_a_prediction_with_details_is_not_taken_for_a_table_of_one_column(
    phones_model: Path, tmp_path: Path
) -> None:
    details = write_table(tmp_path / "out.tsv", "ab\tp\t1\t0.9\toptimal\t")
    message = refusal(predict.main, [phones_model, details, "--columns", "source"])
    assert "out.tsv: 6 columns, such as" in message
    assert "--columns names 1: source" in message
