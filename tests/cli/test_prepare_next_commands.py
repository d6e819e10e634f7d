"""The next commands that `prepare table` and `prepare sigmorphon` print."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax.cli import prepare_sigmorphon, prepare_table
from tests.cli.preparing import FORMS, PHONES, next_commands, prepare, write_tables
from tests.in_process import Main

pytestmark = pytest.mark.usefixtures("working_folder")


@pytest.mark.parametrize(
    ("rows", "columns", "names"),
    [
        pytest.param(PHONES, [], ["train", "predict", "evaluate"], id="pronunciations"),
        pytest.param(
            [f"{row}\teng" for row in FORMS],
            ["--columns", "source,tags,target,language"],
            ["train", "inflect", "predict", "evaluate"],
            id="inflections",
        ),
    ],
)
def test_inflect_is_proposed_for_models_of_inflection_only(
    rows: list[str], columns: Sequence[str], names: list[str]
) -> None:
    write_tables({"train.tsv": rows, "dev.tsv": rows})
    printed = prepare("--train", "train.tsv", "--dev", "dev.tsv", *columns)
    assert [command.split()[1] for command in next_commands(printed.out)] == names


def test_pronunciations_are_predicted_without_analogies() -> None:
    write_tables({"train.tsv": PHONES, "dev.tsv": PHONES})
    printed = prepare("--train", "train.tsv", "--dev", "dev.tsv")
    prediction = "onmt-entmax predict out/model dev.tsv --output out/dev.predicted.tsv"
    assert prediction in next_commands(printed.out)


def test_inflections_are_predicted_with_analogies_from_the_training_table() -> None:
    """Analogies with training words improve the accuracy of inflections."""
    write_tables({"train.tsv": FORMS, "dev.tsv": FORMS})
    printed = prepare("--train", "train.tsv", "--dev", "dev.tsv")
    prediction = "onmt-entmax predict out/model dev.tsv --output out/dev.predicted.tsv"
    assert f"{prediction} --analogies train.tsv" in next_commands(printed.out)


def test_predictions_are_evaluated_against_the_dev_table() -> None:
    write_tables({"train.tsv": PHONES, "dev.tsv": PHONES})
    *_, last = next_commands(prepare("--train", "train.tsv", "--dev", "dev.tsv").out)
    evaluation = "onmt-entmax evaluate out/dev.predicted.tsv --reference dev.tsv --model out/model"
    assert last == evaluation


def test_a_training_table_with_other_columns_than_the_first_gives_no_analogies() -> None:
    """`predict` reads every table by the columns of the first one, which the model records."""
    swapped = [
        "\t".join((source, target, tags))
        for source, tags, target in (row.split("\t") for row in FORMS)
    ]
    write_tables({"a.trn": FORMS, "b.trn": swapped, "x.dev": FORMS})
    arguments = ["--train", "a.trn", "b.trn", "--dev", "x.dev", "--language", "eng"]
    prediction = "onmt-entmax predict out/model x.dev --output out/dev.predicted.tsv --language eng"
    assert f"{prediction} --analogies a.trn" in next_commands(prepare(*arguments).out)


def test_predictions_of_a_csv_table_are_written_as_csv() -> None:
    rows = [row.replace("\t", ",") for row in FORMS]
    write_tables({"train.csv": rows, "dev.csv": rows})
    commands = next_commands(prepare("--train", "train.csv", "--dev", "dev.csv").out)
    prediction = "onmt-entmax predict out/model dev.csv --output out/dev.predicted.csv"
    assert f"{prediction} --analogies train.csv" in commands


# --- covered tables, which have no targets ---


@pytest.fixture(params=["draw\tV;PST", "draw\tV;PST\t"], ids=["no column", "empty column"])
def covered_table(request: pytest.FixtureRequest, working_folder: object) -> str:
    """The name of a test table without targets, beside `jap.trn` and `jap.dev`."""
    write_tables({"jap.trn": FORMS, "jap.dev": FORMS, "jap.covered.tst": [request.param]})
    return "jap.covered.tst"


@pytest.fixture(params=[prepare_table.main, prepare_sigmorphon.main], ids=["table", "sigmorphon"])
def commands_with_covered_table(request: pytest.FixtureRequest, covered_table: str) -> list[str]:
    """The next commands after `prepare table` or `prepare sigmorphon`."""
    main: Main = request.param
    tables = ["--train", "jap.trn", "--dev", "jap.dev", "--test", covered_table]
    return next_commands(prepare(*tables, main=main).out)


def test_a_covered_test_table_is_predicted(
    commands_with_covered_table: list[str], covered_table: str
) -> None:
    prediction = f"onmt-entmax predict out/model {covered_table} --output out/test.predicted.tsv"
    assert f"{prediction} --analogies jap.trn" in commands_with_covered_table


@pytest.mark.usefixtures("commands_with_covered_table")
def test_no_files_of_tokens_are_written_for_a_covered_table() -> None:
    """Such files come in pairs of sources and targets."""
    assert not Path("out/test.src").exists()


# --- several dev tables ---


@pytest.fixture
def dev_tables() -> list[Path]:
    """Two dev tables that have the same name, in different folders."""
    paths = [Path("a", "dev.tsv"), Path("b", "dev.tsv")]
    for path in paths:
        path.parent.mkdir()
    write_tables({"train.tsv": FORMS, **dict.fromkeys(paths, FORMS)})
    return paths


@pytest.mark.parametrize(("folder", "number"), [("a", 1), ("b", 2)])
def test_dev_tables_with_the_same_name_are_predicted_one_by_one(
    dev_tables: list[Path], folder: str, number: int
) -> None:
    """A single `predict` would write both predictions to one file."""
    printed = prepare("--train", "train.tsv", "--dev", *dev_tables, "--language", "eng")
    commands = next_commands(printed.out)
    table, output = f"{folder}/dev.tsv", f"out/dev.predicted.{number}.tsv"
    prediction = f"onmt-entmax predict out/model {table} --output {output} --language eng"
    assert f"{prediction} --analogies train.tsv" in commands
    assert f"onmt-entmax evaluate {output} --reference {table} --model out/model" in commands


def test_the_predictions_of_a_table_with_commas_are_a_csv_file(dev_tables: list[Path]) -> None:
    _, second = dev_tables
    write_tables({second: [row.replace("\t", ",") for row in FORMS]})
    printed = prepare("--train", "train.tsv", "--dev", *dev_tables, "--language", "eng")
    outputs = "onmt-entmax predict out/model b/dev.tsv --output out/dev.predicted.2.csv"
    assert any(command.startswith(outputs) for command in next_commands(printed.out))
