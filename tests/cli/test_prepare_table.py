"""`prepare table`: tables of strings become files of tokens, and a configuration to train with."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax.cli import train
from onmt_entmax.options.train import training_setup
from onmt_entmax.strings.task import StringTask
from tests.cli.preparing import (
    PHONES,
    Printed,
    prepare,
    read_lines,
    shorten_training,
    write_tables,
    written_options,
)
from tests.in_process import success

pytestmark = pytest.mark.usefixtures("working_folder")

# --- a table of pronunciations ---


@pytest.fixture
def pronunciations(working_folder: Path) -> Printed:
    """What the command prints about tables of letters and phones, which it writes to `out`."""
    write_tables({"ro.train.tsv": PHONES, "ro.dev.tsv": PHONES[:1]})
    return prepare("--train", "ro.train.tsv", "--dev", "ro.dev.tsv")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            "columns source, target between tabs (guessed; --columns names them)", id="columns"
        ),
        pytest.param("source: characters; target: symbols between ' '", id="units"),
        pytest.param("train: ro.train.tsv (3 rows); dev: ro.dev.tsv (1 row)", id="rows"),
    ],
)
def test_how_a_table_is_read_is_printed(pronunciations: Printed, line: str) -> None:
    assert f"{line}\n" in pronunciations.out


@pytest.mark.usefixtures("pronunciations")
def test_sources_and_targets_are_written_as_tokens() -> None:
    assert read_lines("out/dev.src") == ["p l o a i e"]
    assert read_lines("out/dev.tgt") == ["p lʷ a j e"]


@pytest.mark.usefixtures("pronunciations")
def test_the_configuration_has_the_task() -> None:
    task = {"columns": ["source", "target"], "separators": {"target": " "}}
    assert written_options()["task"] == task


# --- the training ---


@pytest.fixture
def trained_task(working_folder: Path) -> StringTask:
    """The task of a short training with the configuration that was prepared."""
    write_tables({"train.tsv": PHONES, "dev.tsv": PHONES})
    prepare("--train", "train.tsv", "--dev", "dev.tsv", "--right_to_left", "--copy", 2)
    config = working_folder / "out" / "train.yaml"
    shorten_training(config)
    success(train.main, ["-config", config])
    return training_setup(["-config", str(config)]).data.task


def test_the_configuration_trains_a_model_with_the_task_of_the_options(
    trained_task: StringTask,
) -> None:
    assert trained_task.right_to_left
    assert trained_task.copies
    assert trained_task.target.separator == " "


# --- direction and copying, which are options of the training ---


def prepare_letters(*arguments: object) -> Printed:
    """Prepare rows of letters; b and c are in one row each, and so rare that they are copied."""
    rows = ["aab\taab", "aac\taac", "aa\ta"]
    write_tables({"train.tsv": rows, "dev.tsv": rows[:1]})
    return prepare("--train", "train.tsv", "--dev", "dev.tsv", *arguments)


@pytest.mark.parametrize(
    ("arguments", "key", "value"),
    [
        pytest.param(["--right_to_left"], "target_order", "right_to_left", id="direction"),
        pytest.param(["--copy", 7], "copy_frequency", 7, id="copying"),
        pytest.param(["--copy", 0], "copy_frequency", 0, id="no copying"),
        pytest.param([], "copy_frequency", 2, id="copying of rare letters by default"),
    ],
)
def test_direction_and_copying_are_written_and_printed(
    arguments: Sequence[object], key: str, value: object
) -> None:
    printed = prepare_letters(*arguments)
    assert written_options()[key] == value
    assert f"{key}: {value}" in printed.out


def test_no_direction_is_written_by_default() -> None:
    prepare_letters()
    assert "target_order" not in written_options()


@pytest.mark.parametrize(
    "arguments",
    [[], ["--right_to_left"], ["--copy", 7], ["--copy", 0]],
    ids=["default", "right to left", "copying", "no copying"],
)
def test_direction_and_copying_leave_the_files_in_natural_order(
    arguments: Sequence[object],
) -> None:
    prepare_letters(*arguments)
    assert read_lines("out/dev.tgt") == ["a a b"]
