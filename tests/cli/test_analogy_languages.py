"""The languages of the training rows of `predict --analogies`.

A column of the table may name the language of each row, or the name of the file the language of all
rows. If neither does, the rows have the language of `--language`, which is english here.
"""

from pathlib import Path

import pytest

from onmt_entmax import Query
from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.cli.analogy_tables import analogy_pairs
from onmt_entmax.ensembles import loaded_models
from tests.cli.tables import write_table
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.string_models import LETTERS, task_options

NAMED = "english"  # the value of `--language`


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[LoadedModel]:
    """A model of inflection of English and German."""
    source = ("lang=english", "lang=german", "+V", *LETTERS)
    options = task_options(["source", "tags", "target"])
    folder = tmp_path_factory.mktemp("two-languages") / "model"
    return loaded_models(write_model(folder, 3, vocabularies_of(source, LETTERS), options=options))


@pytest.mark.parametrize(
    ("rows", "language"),
    [
        pytest.param(
            ["source\ttags\ttarget\tlanguage", "ab\tV\tabd\tdeu"], "german", id="a column"
        ),
        pytest.param(["ab\tV\tabd"], NAMED, id="no column"),
    ],
)
def test_a_row_has_the_language_of_its_column_or_of_the_option(
    models: list[LoadedModel], tmp_path: Path, rows: list[str], language: str
) -> None:
    table = write_table(tmp_path / "train.tsv", *rows)
    assert analogy_pairs([table], models, NAMED) == [(Query("ab", ("V",), language), "abd")]


@pytest.mark.parametrize(
    ("name", "language"),
    [
        pytest.param("deu.trn", "german", id="a code"),
        pytest.param("german.trn", "german", id="a language"),
        pytest.param("words.tsv", NAMED, id="no language"),
    ],
)
def test_a_row_has_the_language_in_the_name_of_its_file_or_of_the_option(
    models: list[LoadedModel], tmp_path: Path, name: str, language: str
) -> None:
    table = write_table(tmp_path / name, "ab\tV\tabd")
    assert analogy_pairs([table], models, NAMED) == [(Query("ab", ("V",), language), "abd")]


def test_the_language_of_the_option_is_not_noted_as_a_guess(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the option, the only language of a model is assumed, and a note says so."""
    vocabularies = vocabularies_of(("lang=english", *LETTERS), LETTERS)
    folder = write_model(tmp_path / "model", 3, vocabularies, options=task_options())
    table = write_table(tmp_path / "train.tsv", "ab\tabd")
    pairs = analogy_pairs([table], loaded_models(folder), NAMED)
    assert pairs == [(Query("ab", (), "english"), "abd")]
    assert "the only one of the model" not in capsys.readouterr().err
