"""The benchmark of `target_symbols`: the columns of its table, and languages that lack symbols."""

from pathlib import Path

import pytest

from tests.cli.tables import write_table
from tests.in_process import refusal, success
from tests.letter_models import LETTERS, write_letters
from tools.bench import target_symbols

HEADINGS = [
    "language",
    *("rows", "gold", "foreign", "changed", "right", "wrong"),
    *("accuracy any", "accuracy language", "only any", "only language"),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of x, y and z that records the letters a and b of x, c and d of y, and none of z.

    Without a restriction, it outputs c and cc for many sources of x.
    """
    return write_letters(tmp_path_factory.mktemp("letters") / "model", seed=2)


def columns(line: str) -> dict[str, str]:
    """Return the cells of a printed line by their headings."""
    return dict(zip(HEADINGS, line.split("\t"), strict=True))


# --- the columns -----------------------------------------------------------------------------

SOURCES = [f"{first}{second}" for first in LETTERS for second in LETTERS]


@pytest.fixture(scope="module")
def printed(model: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """The printed lines for a table of x whose every gold target is d."""
    rows = [f"{source}\td\tV" for source in SOURCES]
    table = write_table(tmp_path_factory.mktemp("tables") / "x-dev", *rows)
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


# --- a language without recorded symbols -----------------------------------------------------


def test_a_language_without_recorded_symbols_is_refused(model: Path, tmp_path: Path) -> None:
    dev = [write_table(tmp_path / name, "aba\ta\tV") for name in ("x-dev", "z-dev")]
    message = refusal(target_symbols.main, [model, "--dev", *dev])
    assert "does not record the target symbols of z; " in message
    assert "--train" in message


def test_a_training_table_gives_a_language_its_symbols(model: Path, tmp_path: Path) -> None:
    """Symbols of the training targets are not foreign, nor are those of a row's own source."""
    train = write_table(tmp_path / "z-train", "a\ta\tV", "a\tb\tV")
    dev = write_table(tmp_path / "z-dev", "a\ta\tV", "a\tb\tV", "ac\tc\tV", "ab\td\tV")
    printed = success(target_symbols.main, [model, "--dev", dev, "--train", train])
    assert columns(printed.splitlines()[1])["gold"] == "1"  # the last row, whose target is foreign
