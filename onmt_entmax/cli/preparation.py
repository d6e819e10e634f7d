"""Make a folder to train in from tables, for `prepare table` and `prepare sigmorphon`.

Everything is checked and reported before anything is written. `table_pairs` makes the pairs,
`table_configuration` the configuration, `table_planning` a plan for `--minutes`, and
`table_commands` the commands to propose.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.next_commands import next_lines, next_text
from onmt_entmax.cli.pair_files import pair_texts
from onmt_entmax.cli.pair_messages import print_pairs, warn_of_repeated
from onmt_entmax.cli.preparation_options import check_options
from onmt_entmax.cli.table_bad_rows import bad_rows_text, refuse_bad_rows, warn_of_bad_rows
from onmt_entmax.cli.table_commands import prediction_commands, training_commands
from onmt_entmax.cli.table_configuration import TableConfiguration
from onmt_entmax.cli.table_messages import print_tables
from onmt_entmax.cli.table_pairs import PreparedData, prepared_data, rows_by_split
from onmt_entmax.cli.table_planning import plan_for_tables
from onmt_entmax.cli.table_training import (
    network_without_plan,
    planned_training,
    training_by_rows,
)
from onmt_entmax.cli.tables import Table
from onmt_entmax.cli.task_settings import task_settings
from onmt_entmax.cli.training_file import CONFIGURATION
from onmt_entmax.errors import UserError
from onmt_entmax.files import write_files
from onmt_entmax.strings.checks import left_out_tags, oddities
from onmt_entmax.strings.split_checks import differences
from onmt_entmax.strings.task import LANGUAGE_COLUMN, StringTask


def prepare(
    tables: Sequence[Table],
    task: StringTask,
    options: argparse.Namespace,
    *,
    left_out: str = "",
    commands: Sequence[str] = (),
) -> None:
    """Write the pairs of each split, and a configuration to train with; print the next commands.

    Args:
        tables: tables with their rows; the training tables come first.
        task: task of the rows.
        options: options that `common_options` declares.
        left_out: line to print about languages that were left out.
        commands: commands to propose after the training and the predictions.

    Raises:
        UserError: there are bad rows, a column has the languages that `--language` names too, an
            option does not go with the tables, or a file cannot be written.
    """
    _refuse_two_languages(tables, options.language)
    _report_bad_rows(tables, options.skip_bad)
    with_targets = [table for table in tables if table.has_targets]
    rows = rows_by_split(with_targets)
    trains = {"train", "dev"} <= rows.keys()
    check_options(options, trains)
    data = prepared_data(rows, task, seed=options.seed, copies=options.hallucinate)
    _report_tables(tables, data, task, names_columns=bool(options.columns))
    proposed = prediction_commands(
        tables, task, options.out, options.language, models=options.models
    )
    configuration: TableConfiguration | None = None
    if trains:
        training = training_commands(rows["dev"][0], task, options.out, options.models)
        proposed = [*training, *proposed, *commands]
        configuration = _configuration(data, task, proposed, options)

    _write(data, tables, configuration, options)
    print_pairs(rows, len(data.hallucinated), task, options.out)
    warn_of_repeated(with_targets, data.pairs, options.out)
    if left_out:
        print(left_out)
    if configuration is not None and options.minutes:
        _plan_and_rewrite(data, task, configuration, options)
    if proposed:
        print(next_text(next_lines(proposed)))


def _refuse_two_languages(tables: Sequence[Table], language: str | None) -> None:
    """Refuse the language that `--language` names, if a column has languages.

    Raises:
        UserError: both are given.
    """
    if language and any(LANGUAGE_COLUMN in table.layout.columns for table in tables):
        raise UserError("--language names the language of all rows; a column has it too")


def _report_bad_rows(tables: Sequence[Table], skip: Path | None) -> None:
    """Warn of rows that cannot be read.

    Args:
        tables: all tables.
        skip: file that receives these rows, if the user skips them.

    Raises:
        UserError: there are some, and the user does not skip them.
    """
    if skip is None:
        refuse_bad_rows(tables, ", or go on without them: --skip-bad FILE writes them there")
    else:
        warn_of_bad_rows(tables, skip)


def _report_tables(
    tables: Sequence[Table], data: PreparedData, task: StringTask, *, names_columns: bool
) -> None:
    """Print how the tables were read, and warn of likely mistakes.

    Args:
        tables: all tables.
        data: their rows by split.
        task: task of the rows.
        names_columns: whether the user named the columns, and so meant to leave out the others.
    """
    print_tables(tables, task)
    for table in tables:
        warn(*(f"{table.path}: {text}" for text in oddities(table.rows, task)))
    warn(*differences(data.rows, task))
    if not names_columns:
        for table in tables:
            warn(*(f"{table.path}: {text}" for text in left_out_tags(table.rows, table.layout)))


def _configuration(
    data: PreparedData, task: StringTask, commands: Sequence[str], options: argparse.Namespace
) -> TableConfiguration:
    """Return the configuration of a folder, without its training; print what the model will copy.

    Args:
        data: the training pairs.
        task: task of the rows.
        commands: commands to propose.
        options: `copy`, `right_to_left` and `out`.
    """
    settings = task_settings(
        data.pairs["train"],
        task,
        copy_frequency=options.copy,
        right_to_left=options.right_to_left,
    )
    print(*settings.messages, sep="\n")
    return TableConfiguration(
        out=options.out,
        rows=len(data.pairs["train"]),
        languages=data.languages,
        task=settings.lines,
        commands=next_lines(commands),
    )


def _write(
    data: PreparedData,
    tables: Sequence[Table],
    configuration: TableConfiguration | None,
    options: argparse.Namespace,
) -> None:
    """Write bad rows, pairs, and a configuration whose training the number of pairs decides.

    Args:
        data: rows and pairs of all splits.
        tables: tables whose bad rows go into the file that `--skip-bad` names.
        configuration: configuration without its training; None: there is nothing to train.
        options: options that `common_options` declares.

    Raises:
        UserError: a file cannot be written.
    """
    contents: dict[Path, str] = {}
    if options.skip_bad is not None:
        # The first file, so that a path that cannot be written leaves no folder behind.
        contents[options.skip_bad] = bad_rows_text(tables)
    contents |= pair_texts({options.out / name: pairs for name, pairs in data.corpora().items()})
    if configuration is not None:
        hallucinated = len(data.hallucinated)
        network = network_without_plan(options.layers, options.size, options.batch)
        training = training_by_rows(configuration.rows + hallucinated, network)
        contents[options.out / CONFIGURATION] = configuration.text(training, hallucinated)
    write_files(contents)


def _plan_and_rewrite(
    data: PreparedData,
    task: StringTask,
    configuration: TableConfiguration,
    options: argparse.Namespace,
) -> None:
    """Plan a training for `--minutes` on the written files, and replace their configuration.

    If the measurement is interrupted, the configuration without a plan stays: the folder can be
    trained on at any time.
    """
    plan = plan_for_tables(data, task, options)
    hallucinated = len(data.hallucinated) + plan.hallucinated
    text = configuration.text(planned_training(plan), hallucinated)
    write_files({options.out / CONFIGURATION: text})
