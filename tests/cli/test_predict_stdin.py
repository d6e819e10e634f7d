"""`onmt-entmax predict MODEL - --output FOLDER`: the file that has the predictions of stdin."""

import io
from pathlib import Path

import pytest

from tests.cli.predicting import predicted


@pytest.mark.parametrize(
    ("text", "name"),
    [
        pytest.param("ab\t\n", "stdin.tsv", id="tabs"),
        pytest.param("ab\n", "stdin.tsv", id="a single column"),
        pytest.param("ab,\n", "stdin.csv", id="commas"),
        # As in the CSV files of spreadsheets where numbers have decimal commas.
        pytest.param("ab;\n", "stdin.csv", id="semicolons"),
    ],
)
def test_the_output_file_of_stdin_is_named_by_its_delimiter(
    phones_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    folder = tmp_path / "predictions"
    folder.mkdir()
    assert predicted(phones_model, "-", "--output", folder) == 0
    assert [path.name for path in folder.iterdir()] == [name]
