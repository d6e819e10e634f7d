"""`onmt-entmax predict` takes the language from the table's name, a column or `--language`."""

from pathlib import Path

import pytest

from onmt_entmax import Transducer
from onmt_entmax.cli import predict
from tests.cli.predicting import predicted, write_model_of_2023
from tests.cli.tables import write_table
from tests.in_process import refusal

LANGUAGE_COLUMN = ("--columns", "language,source,tags")


@pytest.fixture(scope="module")
def inflection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model that inflects English and German."""
    return write_model_of_2023(tmp_path_factory.mktemp("inflection") / "model")


def test_several_tables_go_into_a_folder_each_in_its_language(
    inflection: Path, tmp_path: Path
) -> None:
    """The name of a table begins with a language or its code."""
    tables = [
        write_table(tmp_path / f"{name}.covered.tst", "b\tV;PST", "ba\tV")
        for name in ("deu", "english")
    ]
    out = tmp_path / "out"
    assert predicted(inflection, *tables, "--output", out) == 0
    transducer = Transducer(inflection)
    german, english = (
        transducer.predict("b", "V;PST", language).text for language in ("german", "english")
    )
    assert german != english
    assert {path.name: path.read_text().splitlines()[0] for path in out.iterdir()} == {
        "deu.covered.tst": f"b\tV;PST\t{german}",
        "english.covered.tst": f"b\tV;PST\t{english}",
    }


def test_languages_may_be_a_column(
    inflection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_table(tmp_path / "x.tsv", "german\tbb\tV", "eng\tbb\tV")
    assert predicted(inflection, table, *LANGUAGE_COLUMN) == 0
    transducer = Transducer(inflection)
    forms = [transducer.predict("bb", "V", name).text for name in ("german", "english")]
    assert forms[0] != forms[1]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[3] for line in lines] == forms


# --- refused ---


def test_a_column_of_languages_and_a_named_language_are_refused(
    inflection: Path, tmp_path: Path
) -> None:
    table = write_table(tmp_path / "x.tsv", "german\tab\tV")
    named = (*LANGUAGE_COLUMN, "--language", "german")
    assert "leave --language out" in refusal(predict.main, [inflection, table, *named])


@pytest.mark.parametrize(
    ("table_name", "options", "message"),
    [
        pytest.param(
            "klingon.tst", (), "the model knows no language 'klingon'", id="unknown, by name"
        ),
        pytest.param(
            "test.tsv", (), "no language is named, and the model knows english, german", id="none"
        ),
        pytest.param(
            "german.tst",
            ("--language", "klingon"),
            "no language 'klingon'",
            id="unknown, by option",
        ),
    ],
)
def test_a_language_is_checked_before_anything_is_predicted(
    inflection: Path, tmp_path: Path, table_name: str, options: tuple[str, ...], message: str
) -> None:
    table = write_table(tmp_path / table_name, "ab\tV")
    output = tmp_path / "out.tsv"
    assert message in refusal(predict.main, [inflection, table, "--output", output, *options])
    assert not output.exists()
