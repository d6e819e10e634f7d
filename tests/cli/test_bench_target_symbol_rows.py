"""The benchmark of `target_symbols`: rows of a language, and which of them are predicted again."""

from pathlib import Path

import pytest

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import Query
from onmt_entmax.transducer import Transducer
from tests.cli.tables import write_table
from tests.letter_models import LETTERS, SEEN, write_letters
from tools.bench.target_symbol_rows import language_rows, rows_by_language, with_symbols
from tools.bench.target_symbols import predict_restricted


def row(source: str, target: str) -> Row:
    """Return a row of the language x."""
    return Row(1, Query(source, ("V",), "x"), target, (source, target, "V"))


# --- tables and recorded symbols ---


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A model that records the target letters of x and y, and none of z."""
    return load(write_letters(tmp_path_factory.mktemp("letters") / "model", seed=2))


def test_tables_of_one_language_are_joined(model: LoadedModel, tmp_path: Path) -> None:
    first = write_table(tmp_path / "x-train-high", "a\ta\tV", "a\tb\tV")
    second = write_table(tmp_path / "x-train-low", "a\tc\tV")
    rows = rows_by_language([first, second], Transducer(model))
    assert [row.target for row in rows["x"]] == ["a", "b", "c"]


def test_training_tables_record_the_symbols_of_their_language(model: LoadedModel) -> None:
    extended = with_symbols(model, {"z": [row("a", "d"), row("b", "dc")]})
    assert extended.vocabularies.target.seen["lang=z"] == {"c", "d"}


def test_training_tables_keep_the_symbols_of_other_languages(model: LoadedModel) -> None:
    seen = with_symbols(model, {"z": [row("a", "d")]}).vocabularies.target.seen
    assert {name: set(seen[name]) for name in SEEN} == {
        name: set(letters) for name, letters in SEEN.items()
    }


# --- predictions with `language` ---

SOURCES = [f"{first}{second}" for first in LETTERS for second in LETTERS]


@pytest.mark.parametrize(
    ("seed", "is_sure"),
    [
        pytest.param(2, False, id="several outputs are possible"),
        pytest.param(13, True, id="one output is possible, and proven to be"),
    ],
)
def test_restricted_predictions_equal_those_of_a_transducer(
    tmp_path: Path, seed: int, is_sure: bool
) -> None:
    """A row whose only possible output has no foreign symbol is not predicted again."""
    model = load(write_letters(tmp_path / "model", seed))
    table = language_rows(model, {"x": [row(source, "a") for source in SOURCES]})["x"]
    queries = [row.query for row in table.rows]
    unrestricted = list(Transducer(model, target_symbols="any").predictions(queries))
    assert {prediction.only for prediction in unrestricted} == {is_sure}
    restricted = Transducer(model, target_symbols="language")
    predicted = predict_restricted(restricted, table, unrestricted)
    expected = list(restricted.predictions(queries))
    assert [prediction.text for prediction in predicted] == [output.text for output in expected]
