"""The commands that `prepare table` and `prepare sigmorphon` print as the next ones."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax.cli import prepare_sigmorphon, prepare_table
from onmt_entmax.cli.shell_files import files_for_shell
from tests.cli.preparing import FORMS, PHONES, next_commands, prepare, write_tables
from tests.in_process import Main

pytestmark = pytest.mark.usefixtures("working_folder")


@pytest.mark.parametrize(
    ("rows", "columns", "names", "analogies"),
    [
        pytest.param(PHONES, [], ["train", "predict", "evaluate"], "", id="pronunciations"),
        pytest.param(
            [f"{row}\tx" for row in FORMS],
            ["--columns", "source,tags,target,language"],
            ["train", "inflect", "predict", "evaluate"],
            " --analogies train.tsv",
            id="inflection",
        ),
    ],
)
def test_the_next_commands_suit_the_table(
    rows: list[str], columns: Sequence[str], names: list[str], analogies: str
) -> None:
    """Analogies with the words of training make inflections better."""
    write_tables({"train.tsv": rows, "dev.tsv": rows})
    printed = prepare("--train", "train.tsv", "--dev", "dev.tsv", *columns)
    commands = next_commands(printed.out)
    assert [command.split()[1] for command in commands] == names
    assert commands[-2:] == [
        f"onmt-entmax predict out/model dev.tsv --output out/dev.predicted.tsv{analogies}",
        "onmt-entmax evaluate out/dev.predicted.tsv --reference dev.tsv --model out/model",
    ]


def test_training_tables_with_other_columns_give_no_analogies() -> None:
    """`predict` would read them by the columns of the first table, which the model has recorded."""
    swapped = [
        "\t".join((source, target, tags))
        for source, tags, target in (row.split("\t") for row in FORMS)
    ]
    write_tables({"a.trn": FORMS, "b.trn": swapped, "x.dev": FORMS})
    arguments = ["--train", "a.trn", "b.trn", "--dev", "x.dev", "--language", "eng"]
    prediction = "onmt-entmax predict out/model x.dev --output out/dev.predicted.tsv --language eng"
    assert f"{prediction} --analogies a.trn" in next_commands(prepare(*arguments).out)


def test_the_prediction_of_a_csv_table_is_a_csv_table() -> None:
    rows = [row.replace("\t", ",") for row in FORMS]
    write_tables({"train.csv": rows, "dev.csv": rows})
    printed = prepare("--train", "train.csv", "--dev", "dev.csv")
    assert "predict out/model dev.csv --output out/dev.predicted.csv --analogies " in printed.out


@pytest.mark.parametrize(
    "main",
    [
        pytest.param(prepare_table.main, id="table"),
        pytest.param(prepare_sigmorphon.main, id="sigmorphon"),
    ],
)
@pytest.mark.parametrize("row", ["draw\tV;PST", "draw\tV;PST\t"], ids=["no column", "empty column"])
def test_a_covered_table_is_named_in_a_command(main: Main, row: str) -> None:
    """It has no targets, so `predict` reads it as it is, and no files of tokens are written."""
    write_tables({"jap.trn": FORMS, "jap.dev": FORMS, "jap.covered.tst": [row]})
    tables = ["--train", "jap.trn", "--dev", "jap.dev", "--test", "jap.covered.tst"]
    commands = next_commands(prepare(*tables, main=main).out)
    prediction = "onmt-entmax predict out/model jap.covered.tst --output out/test.predicted.tsv"
    assert f"{prediction} --analogies jap.trn" in commands
    assert not Path("out/test.src").exists()


@pytest.mark.parametrize(("folder", "number"), [("a", 1), ("b", 2)])
def test_dev_tables_of_one_name_have_commands_of_their_own(folder: str, number: int) -> None:
    """One folder cannot hold both predictions."""
    paths = [Path("a", "dev.tsv"), Path("b", "dev.tsv")]
    for path in paths:
        path.parent.mkdir()
    write_tables({"train.tsv": FORMS, **dict.fromkeys(paths, FORMS)})
    printed = prepare("--train", "train.tsv", "--dev", *paths, "--language", "eng")
    table, output = f"{folder}/dev.tsv", f"out/dev.predicted.{number}.tsv"
    commands = next_commands(printed.out)
    prediction = f"onmt-entmax predict out/model {table} --output {output} --language eng"
    assert f"{prediction} --analogies train.tsv" in commands
    assert f"onmt-entmax evaluate {output} --reference {table} --model out/model" in commands


@pytest.mark.parametrize(
    ("names", "others", "expected"),
    [
        pytest.param("a.dev", "", "t/a.dev", id="one"),
        pytest.param("a-dev,b b-dev,c-dev", "a-train", "t/*-dev", id="same endings"),
        pytest.param("a_x_dev.tsv,b_dev.tsv,c_dev.tsv", "c.tsv", "t/*_dev.tsv", id="same parts"),
        pytest.param("a.dev,b.dev,c.dev", "d.dev", "t/a.dev t/b.dev t/c.dev", id="another file"),
        pytest.param("a.dev,b.val,c.dev", "", "t/a.dev t/b.val t/c.dev", id="other endings"),
    ],
)
def test_many_files_are_a_pattern_that_names_no_others(
    names: str, others: str, expected: str
) -> None:
    folder = Path("t")
    folder.mkdir()
    for name in filter(None, f"{names},{others}".split(",")):
        (folder / name).touch()
    assert files_for_shell([folder / name for name in names.split(",")]) == expected
