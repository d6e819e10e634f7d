"""Make pairs of a source line and a target line from the rows of tables."""

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
    """The rows of the tables that have targets, and the pairs to write.

    Attributes:
        rows: rows of each split.
        pairs: pairs of each split: a line of the source file, and a line of the target file.
        hallucinated: hallucinated training pairs, if the user wants some.
    """

    rows: Mapping[str, Sequence[Row]]
    pairs: Mapping[str, _Pairs]
    hallucinated: _Pairs

    @property
    def languages(self) -> int:
        """Number of languages of all splits."""
        return len({row.query.language for split in self.rows.values() for row in split})

    def corpora(self) -> dict[str, _Pairs]:
        """Return the pairs of each corpus, by the name of its files."""
        hallucinated = {HALLUCINATED: self.hallucinated} if self.hallucinated else {}
        return {**self.pairs, **hallucinated}


def rows_by_split(tables: Iterable[Table]) -> dict[str, list[Row]]:
    """Return the rows of each split, in the order of the tables."""
    rows: dict[str, list[Row]] = {}
    for table in tables:
        rows.setdefault(table.split, []).extend(table.rows)
    return rows


def prepared_data(
    rows: Mapping[str, Sequence[Row]], task: StringTask, *, seed: int, copies: int | None
) -> PreparedData:
    """Return the data to write.

    Args:
        rows: rows of each split.
        task: task of the rows.
        seed: seed of the order of training pairs, and of hallucinated pairs.
        copies: number of hallucinated pairs for each training pair; None or 0: there are none.

    Raises:
        UserError: the user wants hallucinated pairs, but no pair has a stem.
    """
    pairs = _pairs_by_split(rows, task, seed)
    hallucinated: _Pairs = []
    if copies:
        hallucinated = hallucinated_pairs(pairs["train"], task, seed, copies)
    return PreparedData(rows, pairs, hallucinated)


def _pairs_by_split(
    rows: Mapping[str, Sequence[Row]], task: StringTask, seed: int
) -> dict[str, list[tuple[str, str]]]:
    """Return the pairs of each split; shuffle the training pairs.

    Training itself shuffles only a part of a large file at a time. If the rows of a language stood
    together, such a part would have only a few languages.
    """
    pairs = {
        split: [as_pair(row, task) for row in split_rows] for split, split_rows in rows.items()
    }
    random.Random(f"{seed}/train").shuffle(pairs.get("train", []))
    return pairs


def as_pair(row: Row, task: StringTask) -> tuple[str, str]:
    """Return the source line and the target line of a row, as tokens between spaces."""
    return " ".join(task.encode_source(row.query)), " ".join(task.target.encode(row.target))
