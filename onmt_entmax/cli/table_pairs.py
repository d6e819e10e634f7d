"""The pairs of source and target lines that `prepare` makes of the rows of tables."""

import argparse
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from onmt_entmax.cli.hallucinated_pairs import hallucinated_pairs
from onmt_entmax.cli.table_configuration import HALLUCINATED
from onmt_entmax.cli.tables import Table
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import StringTask

_Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class PreparedData:
    """The rows of tables that have targets, and the pairs that are written.

    Attributes:
        rows: rows of each split.
        pairs: pairs of each split, each a line of the source and of the target file.
        hallucinated: further training pairs, if the user wants them.
    """

    rows: Mapping[str, Sequence[Row]]
    pairs: Mapping[str, _Pairs]
    hallucinated: _Pairs

    @property
    def languages(self) -> int:
        """Number of languages."""
        return len({row.query.language for split in self.rows.values() for row in split})

    def corpora(self) -> dict[str, _Pairs]:
        """Return the pairs of each corpus, by the name of its files."""
        hallucinated = {HALLUCINATED: self.hallucinated} if self.hallucinated else {}
        return {**self.pairs, **hallucinated}


def rows_by_split(tables: Iterable[Table]) -> dict[str, list[Row]]:
    """Return the rows of each split."""
    rows: dict[str, list[Row]] = {}
    for table in tables:
        rows.setdefault(table.split, []).extend(table.rows)
    return rows


def prepared_data(
    rows: Mapping[str, Sequence[Row]], task: StringTask, options: argparse.Namespace
) -> PreparedData:
    """Return the data to write.

    Args:
        rows: rows of each split.
        task: task of the rows.
        options: `seed`, and `hallucinate`, the copies of each training pair that the user wants.

    Raises:
        UserError: the user wants hallucinated pairs, but no pair has a stem.
    """
    pairs = _pairs_by_split(rows, task, options.seed)
    hallucinated: _Pairs = []
    if options.hallucinate:
        hallucinated = hallucinated_pairs(pairs["train"], task, options.seed, options.hallucinate)
    return PreparedData(rows, pairs, hallucinated)


def _pairs_by_split(
    rows: Mapping[str, Sequence[Row]], task: StringTask, seed: int
) -> dict[str, list[tuple[str, str]]]:
    """Return the pairs of each split; those of training are shuffled.

    Training shuffles only a part of a large file at a time, which would be a few languages if their
    rows stood together.
    """
    pairs = {split: [as_pair(row, task) for row in of_split] for split, of_split in rows.items()}
    random.Random(f"{seed}/train").shuffle(pairs.get("train", []))
    return pairs


def as_pair(row: Row, task: StringTask) -> tuple[str, str]:
    """Return the lines of a row in the source and the target file."""
    return " ".join(task.encode_source(row.query)), " ".join(task.target.encode(row.target))
