"""What `prepare table` and `prepare sigmorphon` share: from tables that were read to a training.

`table_pairs` makes the pairs, `table_configuration` the configuration, `planning` a plan for a
time, and `next_commands` the commands that are printed at the end.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.next_commands import next_lines, prediction_commands, training_commands
from onmt_entmax.cli.pair_files import pair_texts
from onmt_entmax.cli.pair_messages import tell_pairs, warn_of_repeated
from onmt_entmax.cli.plan_lines import Plan
from onmt_entmax.cli.planning import plan_for
from onmt_entmax.cli.plans import candidates
from onmt_entmax.cli.preparation_options import check_options
from onmt_entmax.cli.table_configuration import (
    HALLUCINATED,
    Training,
    configuration,
    network_of,
    planned_training,
    training_by_rows,
)
from onmt_entmax.cli.table_messages import tell_tables
from onmt_entmax.cli.table_pairs import invented_pairs, pairs_of, rows_of
from onmt_entmax.cli.tables import Table, bad_rows_text, refuse_bad_rows, warn_of_bad_rows
from onmt_entmax.cli.task_settings import task_settings
from onmt_entmax.cli.training_file import CONFIGURATION
from onmt_entmax.files import write_files
from onmt_entmax.strings.checks import oddities, unseen_languages
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import StringTask


@dataclass(frozen=True)
class _Data:
    """The data of all splits that have targets.

    Attributes:
        rows: of each split.
        pairs: of each split, as lines of the source and the target file.
        invented: hallucinated pairs that the user wants.
    """

    rows: Mapping[str, Sequence[Row]]
    pairs: Mapping[str, Sequence[tuple[str, str]]]
    invented: Sequence[tuple[str, str]]

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
        hallucinated = {HALLUCINATED: self.invented} if self.invented else {}
        return {**self.pairs, **hallucinated}


@dataclass(frozen=True)
class _Settings:
    """The part of a configuration that no plan decides; see `configuration` for the fields."""

    out: Path
    rows: int
    languages: int
    commands: Sequence[str]
    task: Sequence[str]

    @classmethod
    def of(
        cls, data: _Data, task: StringTask, options: argparse.Namespace, commands: Sequence[str]
    ) -> _Settings:
        """Return the settings for data; print what was chosen of the task."""
        pairs = data.pairs["train"]
        return cls(
            options.out,
            rows=len(pairs),
            languages=data.languages,
            commands=next_lines(*commands),
            task=task_settings(pairs, task, options),
        )

    def text(self, invented: int, training: Training) -> str:
        """Return the text of `train.yaml`.

        Args:
            invented: hallucinated pairs to train on, too.
            training: that a plan or the number of rows decides.
        """
        return configuration(
            self.out,
            training,
            rows=self.rows,
            invented=invented,
            languages=self.languages,
            commands=self.commands,
            task=self.task,
        )


def prepare(
    tables: Sequence[Table],
    task: StringTask,
    options: argparse.Namespace,
    note: str = "",
    commands: Sequence[str] = (),
) -> None:
    """Write the pairs of each split, and a configuration to train with; print the next commands.

    Everything is checked before anything is written. With --minutes, networks are measured on the
    files that were written, and a second configuration replaces the first one: an interruption of
    the measurement leaves a folder that can be trained on.

    Args:
        tables: with their rows; those of training first.
        task: of the rows.
        options: those of `common_options`.
        note: a line to print.
        commands: to propose after those of a training.

    Raises:
        UserError: there are bad rows, or a file cannot be written.
    """
    if options.skip_bad is None:
        refuse_bad_rows(tables, ", or go on without them: --skip-bad FILE writes them there")
    else:
        warn_of_bad_rows(tables, options.skip_bad)
    with_targets = [table for table in tables if not table.covered]
    data = _data_of(with_targets, task, options)
    _tell_what_was_read(tables, data, task)
    proposed = prediction_commands(tables, options.out, options)
    settings = None
    if data.trains:
        training = training_commands(data.rows["dev"][0], task, options.out)
        proposed = [*training, *proposed, *commands]
        settings = _Settings.of(data, task, options, proposed)
    write_files(_contents(data, tables, settings, options))
    tell_pairs(data.rows, data.invented, task, options.out)
    warn_of_repeated(with_targets, data.pairs, options.out)
    if note:
        print(note)
    if settings is not None and options.minutes:
        plan = _planned(data.pairs["train"], len(data.invented), task, options)
        text = settings.text(len(data.invented) + plan.hallucinated, planned_training(plan))
        write_files({options.out / CONFIGURATION: text})
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
    invented = invented_pairs(pairs["train"], task, options) if options.hallucinate else []
    return _Data(rows, pairs, invented)


def _tell_what_was_read(tables: Sequence[Table], data: _Data, task: StringTask) -> None:
    """Print how the tables were read, and warn of likely mistakes."""
    tell_tables(tables, task)
    for table in tables:
        warn(*(f"{table.path}: {text}" for text in oddities(table.rows, task)))
    warn(*unseen_languages(data.rows))


def _contents(
    data: _Data,
    tables: Sequence[Table],
    settings: _Settings | None,
    options: argparse.Namespace,
) -> dict[Path, str]:
    """Return the contents of all files to write, before there is a plan.

    The file of bad rows is the first, so that a path that cannot be written leaves no folder
    behind.

    Args:
        data: of all splits.
        tables: whose bad rows go into the file that `--skip-bad` names.
        settings: of the configuration; None: there is nothing to train.
        options: those of `common_options`.
    """
    contents: dict[Path, str] = {}
    if options.skip_bad is not None:
        contents[options.skip_bad] = bad_rows_text(tables)
    contents |= pair_texts({options.out / name: pairs for name, pairs in data.corpora().items()})
    if settings is not None:
        invented = len(data.invented)
        training = training_by_rows(settings.rows + invented, network_of(options))
        contents[options.out / CONFIGURATION] = settings.text(invented, training)
    return contents


def _planned(
    pairs: Sequence[tuple[str, str]], invented: int, task: StringTask, options: argparse.Namespace
) -> Plan:
    """Return a plan for `--minutes`; write hallucinated pairs, if it has some.

    Args:
        pairs: lines of the training data.
        invented: hallucinated pairs that the user wants.
        task: of the pairs.
        options: those of `common_options`.
    """

    def hallucinate() -> int:
        """Write pairs, unless the user said how many; return their number."""
        more = invented_pairs(pairs, task, options) if options.hallucinate is None else []
        if more:
            write_files(pair_texts({options.out / HALLUCINATED: more}))
        return len(more)

    networks = candidates(
        len(pairs) + invented,
        gpu=options.gpu,
        layers=options.layers,
        size=options.size,
        batch=options.batch,
    )
    softmax = ["-global_attention_function", "softmax", "-attention_warmup_steps", "0"]
    return plan_for(options, networks, softmax, hallucinate, already=invented)
