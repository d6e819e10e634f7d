"""Print how many pairs `prepare` wrote, and warn of repeated ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.table_configuration import HALLUCINATED
from onmt_entmax.cli.tables import Table
from onmt_entmax.errors import counted
from onmt_entmax.strings.checks import several_targets
from onmt_entmax.strings.split_checks import new_combinations
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import StringTask


def print_pairs(
    rows: Mapping[str, Sequence[Row]], hallucinated: int, task: StringTask, out: Path
) -> None:
    """Print the files of each split, with their numbers of rows and languages.

    Args:
        rows: rows of each split.
        hallucinated: number of hallucinated pairs.
        task: task of the rows.
        out: folder with the files.
    """
    for split, split_rows in rows.items():
        size = counted(len(split_rows), "row")
        if task.languages:
            size += f", {counted(len({row.query.language for row in split_rows}), 'language')}"
        print(f"{out / split}.{{src,tgt}}: {size}")
        notes = [several_targets(split_rows)]
        if split != "train":
            notes.append(new_combinations(split_rows, rows.get("train", ())))
        for text in filter(None, notes):
            print(f"{split}: {text}")
    if hallucinated:
        print(f"{out / HALLUCINATED}.{{src,tgt}}: {counted(hallucinated, 'pair')}, to train on")


def warn_of_repeated(
    tables: Sequence[Table], pairs: Mapping[str, Sequence[tuple[str, str]]], out: Path
) -> None:
    """Warn of rows that several training tables have, and of training rows in other splits.

    Args:
        tables: tables of all splits.
        pairs: pairs of each split.
        out: folder with the files of the pairs, for messages.
    """
    training = pairs.get("train", ())
    different = set(training)
    # Repetitions within a table were reported with that table.
    repeated = len(training) - len(different)
    within_tables = sum(
        len(table.rows) - len({(row.query, row.target) for row in table.rows})
        for table in tables
        if table.split == "train"
    )
    between_tables = repeated - within_tables
    if between_tables > 0:
        warn(
            f"{out / 'train'}: rows that several training tables have: {between_tables:,} of "
            f"{len(training):,}"
        )
    for split, split_pairs in pairs.items():
        trained = sum(pair in different for pair in split_pairs)
        if trained and split != "train":
            warn(
                f"{out / split}: rows that are in the training data too: {trained:,} of "
                f"{len(split_pairs):,}, which makes the accuracy too high"
            )
