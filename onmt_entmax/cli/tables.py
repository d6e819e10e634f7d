"""Read tables of strings from files, for `prepare` and `audit`.

The first lines of the tables show the columns (`table_layouts`) and the separators (`shared_task`)
that all tables share. Then each table is read to its end. Rows that cannot be read are kept apart:
`table_bad_rows` refuses them, or warns of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onmt_entmax.cli.sampled_tables import SampledTable
from onmt_entmax.cli.shared_task import shared_task
from onmt_entmax.cli.split_files import SplitFile
from onmt_entmax.cli.table_layouts import sample_tables
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from onmt_entmax.strings.tables import BadRow, Layout, Row, rows_of
from onmt_entmax.strings.task import StringTask


@dataclass(frozen=True, kw_only=True)
class Table(SplitFile):
    """A table that was read.

    Attributes:
        layout: its columns.
        has_targets: whether it has targets, which the test set of a shared task may lack.
        rows: rows that can be read.
        bad_rows: rows that cannot be read.
    """

    layout: Layout
    has_targets: bool
    rows: list[Row]
    bad_rows: list[BadRow]


def read_tables(
    files: Sequence[SplitFile],
    columns: Sequence[str] = (),
    *,
    separators: Mapping[str, str] | None = None,
    fallback: Sequence[str] = (),
    model_task: StringTask | None = None,
) -> tuple[list[Table], StringTask]:
    """Read tables; return them, with their good and bad rows, and their task.

    Args:
        files: files of the tables; the training tables come first.
        columns: columns of all tables; empty: a heading names them, or they are guessed.
        separators: separators that the user names, by column; others are guessed from the tables
            of the first split.
        fallback: columns of the first table to assume if a guess is unclear.
        model_task: task of a model that will read the tables, if there is one.

    Raises:
        UserError: a table has no rows, its columns are unclear, or they are not those of the first
            table.
    """
    sampled = sample_tables(files, columns, fallback, model_task)
    task = shared_task(sampled, separators or {})
    return [_read(table, task) for table in sampled], task


def _read(sampled: SampledTable, task: StringTask) -> Table:
    """Return a table with all of its rows.

    Raises:
        UserError: the table has no rows.
    """
    file, layout, has_targets = sampled.file, sampled.layout, sampled.has_targets
    rows: list[Row] = []
    bad_rows: list[BadRow] = []
    for row in rows_of(
        read_lines(file.path), layout, task, language=file.language, needs_target=has_targets
    ):
        if isinstance(row, Row):
            rows.append(row)
        else:
            bad_rows.append(row)
    if not rows and not bad_rows:
        raise UserError(f"{file.path}: no rows")
    return Table(**vars(file), layout=layout, has_targets=has_targets, rows=rows, bad_rows=bad_rows)
