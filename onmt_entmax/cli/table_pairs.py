"""The pairs of tokens that `prepare` makes of the rows of a table."""

import random
from collections.abc import Iterable, Mapping, Sequence

from onmt_entmax.cli.tables import Table
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import StringTask


def rows_of(tables: Iterable[Table]) -> dict[str, list[Row]]:
    """Return the rows of each split."""
    rows: dict[str, list[Row]] = {}
    for table in tables:
        rows.setdefault(table.split, []).extend(table.rows)
    return rows


def pairs_of(
    rows: Mapping[str, Sequence[Row]], task: StringTask, seed: int
) -> dict[str, list[tuple[str, str]]]:
    """Return the lines of source and target of each split; those of training are shuffled.

    Training shuffles only a part of a large file at a time, which would be a few languages if their
    rows stood together.
    """
    pairs = {split: [as_pair(row, task) for row in of_split] for split, of_split in rows.items()}
    random.Random(f"{seed}/train").shuffle(pairs.get("train", []))
    return pairs


def as_pair(row: Row, task: StringTask) -> tuple[str, str]:
    """Return the lines of a row in the source and the target file."""
    return " ".join(task.encode_source(row.query)), " ".join(task.target.encode(row.target))
