"""What `prepare table` and `prepare sigmorphon` share: from tables that were read to a training.

`table_pairs` makes the pairs, `table_configuration` the configuration, `planning` a plan for a
time, and `next_commands` the commands that are printed at the end.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from onmt_entmax.cli.hallucinated_pairs import hallucinated_pairs
from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.next_commands import next_lines, prediction_commands, training_commands
from onmt_entmax.cli.pair_files import pair_texts
from onmt_entmax.cli.pair_messages import tell_pairs, warn_of_repeated
from onmt_entmax.cli.planning import choice_for, measured, plan_for
from onmt_entmax.cli.plans import HALLUCINATED_PASSES, Plan, candidates
from onmt_entmax.cli.preparation_options import check_options
from onmt_entmax.cli.table_configuration import (
    HALLUCINATED,
    configuration,
    network_of,
    planned_training,
    training_by_rows,
)
from onmt_entmax.cli.table_messages import tell_tables
from onmt_entmax.cli.table_pairs import pairs_of, rows_of
from onmt_entmax.cli.tables import Table, bad_rows_text, refuse_bad_rows, warn_of_bad_rows
from onmt_entmax.cli.task_settings import task_settings
from onmt_entmax.cli.training_file import CONFIGURATION
from onmt_entmax.files import write_files
from onmt_entmax.strings.checks import oddities, unseen_languages
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import StringTask

# A plan trains with softmax attention, which the configuration without a plan does not have.
_PLANNED_ATTENTION = ("-global_attention_function", "softmax", "-attention_warmup_steps", "0")


@dataclass(frozen=True)
class _Data:
    """The data of all splits that have targets.

    Attributes:
        rows: of each split.
        pairs: of each split, as lines of the source and the target file.
        hallucinated: pairs that the user wants besides.
    """

    rows: Mapping[str, Sequence[Row]]
    pairs: Mapping[str, Sequence[tuple[str, str]]]
    hallucinated: Sequence[tuple[str, str]]

    @property
    def trains(self) -> bool:
        """Whether there are rows to train on, and to validate."""
        return {"train", "dev"} <= self.rows.keys()

    @property
    def languages(self) -> int:
        """Number of languages."""
        return len({row.query.language for split in self.rows.values() for row in split})

    def corpora(self) -> dict[str, Sequence[tuple[str, str]]]:
        """Return the pairs of each corpus, by the name of its files."""
        hallucinated = {HALLUCINATED: self.hallucinated} if self.hallucinated else {}
        return {**self.pairs, **hallucinated}


def prepare(
    tables: Sequence[Table],
    task: StringTask,
    options: argparse.Namespace,
    note: str = "",
    commands: Sequence[str] = (),
) -> None:
    """Write the pairs of each split, and a configuration to train with; print the next commands.

    Args:
        tables: with their rows; those of training first.
        task: of the rows.
        options: those of `common_options`.
        note: a line to print.
        commands: to propose after those of a training.

    Raises:
        UserError: there are bad rows, or a file cannot be written.
    """
    # Everything is checked and reported before anything is written.
    if options.skip_bad is None:
        refuse_bad_rows(tables, ", or go on without them: --skip-bad FILE writes them there")
    else:
        warn_of_bad_rows(tables, options.skip_bad)
    with_targets = [table for table in tables if not table.covered]
    data = _data_of(with_targets, task, options)
    _report_tables(tables, data, task)
    proposed = prediction_commands(tables, task, options.out, options)
    configured: Callable[..., str] | None = None
    if data.trains:
        training = training_commands(data.rows["dev"][0], task, options.out)
        proposed = [*training, *proposed, *commands]
        configured = _configured(data, task, options, proposed)

    _write_data(data, tables, configured, options)
    tell_pairs(data.rows, len(data.hallucinated), task, options.out)
    warn_of_repeated(with_targets, data.pairs, options.out)
    if note:
        print(note)
    if configured is not None and options.minutes:
        _plan_and_rewrite(data, task, configured, options)
    if proposed:
        print("\n  ".join(["next:", *next_lines(*proposed)]))


def _data_of(tables: Sequence[Table], task: StringTask, options: argparse.Namespace) -> _Data:
    """Return the data of tables with targets.

    Raises:
        UserError: the options do not go with them.
    """
    rows = rows_of(tables)
    check_options(options, trains={"train", "dev"} <= rows.keys())
    pairs = pairs_of(rows, task, options.seed)
    wanted = hallucinated_pairs(pairs["train"], task, options) if options.hallucinate else []
    return _Data(rows, pairs, wanted)


def _report_tables(tables: Sequence[Table], data: _Data, task: StringTask) -> None:
    """Print how the tables were read, and warn of likely mistakes."""
    tell_tables(tables, task)
    for table in tables:
        warn(*(f"{table.path}: {text}" for text in oddities(table.rows, task)))
    warn(*unseen_languages(data.rows))


def _configured(
    data: _Data, task: StringTask, options: argparse.Namespace, commands: Sequence[str]
) -> Callable[..., str]:
    """Return `configuration` with what no plan decides; print which symbols are copied.

    Returns:
        A function of the training, and of the number of hallucinated pairs.
    """
    settings = task_settings(data.pairs["train"], task, options)
    print(*settings.messages, sep="\n")
    return partial(
        configuration,
        options.out,
        rows=len(data.pairs["train"]),
        languages=data.languages,
        commands=next_lines(*commands),
        task=settings.lines,
    )


def _write_data(
    data: _Data,
    tables: Sequence[Table],
    configured: Callable[..., str] | None,
    options: argparse.Namespace,
) -> None:
    """Write bad rows, pairs, and a configuration whose training the number of pairs decides.

    Args:
        data: of all splits.
        tables: whose bad rows go into the file that `--skip-bad` names.
        configured: `configuration`; None: there is nothing to train.
        options: those of `common_options`.

    Raises:
        UserError: a file cannot be written.
    """
    contents: dict[Path, str] = {}
    if options.skip_bad is not None:
        # The first file, so that a path that cannot be written leaves no folder behind.
        contents[options.skip_bad] = bad_rows_text(tables)
    contents |= pair_texts({options.out / name: pairs for name, pairs in data.corpora().items()})
    if configured is not None:
        hallucinated = len(data.hallucinated)
        pairs = len(data.pairs["train"]) + hallucinated
        training = training_by_rows(pairs, network_of(options))
        contents[options.out / CONFIGURATION] = configured(training, hallucinated=hallucinated)
    write_files(contents)


def _plan_and_rewrite(
    data: _Data, task: StringTask, configured: Callable[..., str], options: argparse.Namespace
) -> None:
    """Plan a training for `--minutes` on the files that were written; write its configuration.

    It replaces the one without a plan, which an interruption of the measurement leaves: the folder
    can be trained on at any time.

    Args:
        data: of all splits.
        task: of the rows.
        configured: `configuration`.
        options: those of `common_options`.
    """
    plan = _planned(data.pairs["train"], len(data.hallucinated), task, options)
    hallucinated = len(data.hallucinated) + plan.hallucinated
    text = configured(planned_training(plan), hallucinated=hallucinated)
    write_files({options.out / CONFIGURATION: text})


def _planned(
    pairs: Sequence[tuple[str, str]],
    hallucinated: int,
    task: StringTask,
    options: argparse.Namespace,
) -> Plan:
    """Return a plan for `--minutes`; write hallucinated pairs, if they are worth their time.

    Args:
        pairs: lines of the training data.
        hallucinated: number of pairs that the user wants.
        task: of the pairs.
        options: those of `common_options`.
    """
    networks = candidates(
        len(pairs) + hallucinated,
        gpu=options.gpu,
        layers=options.layers,
        size=options.size,
        batch=options.batch,
    )
    speeds = measured(options, networks, _PLANNED_ATTENTION)
    choice = choice_for(options.minutes, speeds, hallucinated=hallucinated)
    added: Sequence[tuple[str, str]] = []
    if options.hallucinate is None and choice.passes >= HALLUCINATED_PASSES:
        added = hallucinated_pairs(pairs, task, options)
    if added:
        write_files(pair_texts({options.out / HALLUCINATED: added}))
        # They take a share of the passes, so that another network may be the best.
        choice = choice_for(options.minutes, speeds, hallucinated=hallucinated, added=len(added))
    return plan_for(options, speeds, choice, added=len(added))
