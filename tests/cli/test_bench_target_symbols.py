"""The benchmark of `target_symbols`: the columns of its table, and the rows of a language."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import load
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import Query
from onmt_entmax.transducer import Transducer
from tests.in_process import refusal, success
from tests.letter_models import LETTERS, SEEN, write_letters
from tools.bench import target_symbols
from tools.bench.target_symbol_rows import language_rows, rows_by_language, with_symbols
from tools.bench.target_symbols import HEADINGS, predict_restricted


def write_tables(folder: Path, targets: Mapping[str, str]) -> list[Path]:
    """Write tables by name, with a row for each letter of their targets; return their paths."""
    folder.mkdir()
    for name, letters in targets.items():
        rows = "".join(f"ab{letter}\t{letter}\tV\n" for letter in letters)
        (folder / name).write_text(rows, encoding="utf-8")
    return [folder / name for name in targets]


def row(source: str, target: str) -> Row:
    """Return a row of the language x."""
    return Row(1, Query(source, ("V",), "x"), target, (source, target, "V"))


WRITES_C = 2  # seed of a model that outputs c and cc for many sources
SURE = 13  # seed of a model that proves of every source that it has a single possible output


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of x, y and z that records the letters a and b of x, c and d of y, and none of z."""
    return write_letters(tmp_path_factory.mktemp("letters") / "model", WRITES_C)


def columns(line: str) -> dict[str, str]:
    """Return the cells of a printed line by their headings."""
    return dict(zip(HEADINGS, line.split("\t"), strict=True))


# --- the columns -----------------------------------------------------------------------------

SOURCES = [f"{first}{second}" for first in LETTERS for second in LETTERS]


@pytest.fixture(scope="module")
def printed(model: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """The printed lines for a table of x whose every gold target is d."""
    table = tmp_path_factory.mktemp("tables") / "x-dev"
    table.write_text("".join(f"{source}\td\tV\n" for source in SOURCES), encoding="utf-8")
    heading, *lines = success(target_symbols.main, [model, "--dev", table]).splitlines()
    assert heading == "\t".join(HEADINGS)
    return [columns(line) for line in lines]


def test_each_row_is_counted(printed: list[dict[str, str]]) -> None:
    assert printed[0]["rows"] == str(len(SOURCES))


def test_a_gold_target_with_a_foreign_symbol_is_counted(printed: list[dict[str, str]]) -> None:
    """The letter d is foreign to x, except in rows whose source has it."""
    foreign = [source for source in SOURCES if "d" not in source]
    assert printed[0]["gold"] == str(len(foreign))


def test_foreign_predictions_are_those_that_change(printed: list[dict[str, str]]) -> None:
    assert int(printed[0]["foreign"]) > 0
    assert printed[0]["changed"] == printed[0]["foreign"]


def test_the_last_line_has_the_counts_of_all_languages(printed: list[dict[str, str]]) -> None:
    of_x, total = printed
    assert of_x["language"] == "x"
    assert total == {**of_x, "language": "all"}


# --- predictions with `language` -------------------------------------------------------------


@pytest.mark.parametrize("seed", [WRITES_C, SURE])
def test_restricted_predictions_equal_those_of_a_transducer(tmp_path: Path, seed: int) -> None:
    """The benchmark predicts a row again only if its unrestricted output may change."""
    model = load(write_letters(tmp_path / "model", seed))
    table = language_rows(model, {"x": [row(source, "a") for source in SOURCES]})["x"]
    queries = [row.query for row in table.rows]
    unrestricted = list(Transducer(model, target_symbols="any").predictions(queries))
    assert all(prediction.only == (seed == SURE) for prediction in unrestricted)
    restricted = Transducer(model, target_symbols="language")
    predicted = predict_restricted(restricted, table, unrestricted)
    expected = list(restricted.predictions(queries))
    assert [prediction.text for prediction in predicted] == [output.text for output in expected]


# --- tables and recorded symbols -------------------------------------------------------------


def test_tables_of_one_language_are_joined(model: Path, tmp_path: Path) -> None:
    paths = write_tables(tmp_path / "tables", {"x-train-high": "ab", "x-train-low": "cd"})
    rows = rows_by_language(paths, Transducer(model))
    assert [row.target for row in rows["x"]] == ["a", "b", "c", "d"]


def test_training_tables_record_the_symbols_of_their_language(model: Path) -> None:
    extended = with_symbols(load(model), {"z": [row("a", "d"), row("b", "dc")]})
    assert extended.vocabularies.target.seen["lang=z"] == {"c", "d"}


def test_training_tables_keep_the_symbols_of_other_languages(model: Path) -> None:
    seen = with_symbols(load(model), {"z": [row("a", "d")]}).vocabularies.target.seen
    assert {name: seen[name] for name in SEEN} == {
        name: frozenset(letters) for name, letters in SEEN.items()
    }


def test_a_language_without_recorded_symbols_is_refused(model: Path, tmp_path: Path) -> None:
    dev = write_tables(tmp_path / "tables", {"x-dev": "a", "z-dev": "a"})
    message = refusal(target_symbols.main, [model, "--dev", *dev])
    assert "does not record the target symbols of z; " in message
    assert "--train" in message


def test_a_training_table_gives_a_language_its_symbols(model: Path, tmp_path: Path) -> None:
    dev, train = write_tables(tmp_path / "tables", {"z-dev": "abcd", "z-train": "ab"})
    printed = success(target_symbols.main, [model, "--dev", dev, "--train", train])
    # The sources of the dev rows have their targets' letters.
    assert columns(printed.splitlines()[1])["gold"] == "0"
