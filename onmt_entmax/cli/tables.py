"""Read tables of strings from files, for `prepare` and `audit`.

`read_tables` makes `Table`s of `SplitFile`s, and `refuse_bad_rows` ends the command if some rows
cannot be read; `warn_of_bad_rows` goes on without them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.cli.bad_rows import LISTED, bad_row_line, bad_row_text, bad_rows_summary
from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.split_files import SplitFile
from onmt_entmax.cli.table_layouts import (
    cells_by_column,
    guessed_separators,
    layout_like,
    task_of,
)
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from onmt_entmax.strings.guessing import SAMPLE, guess_layout
from onmt_entmax.strings.tables import BadRow, Layout, Row, rows_of
from onmt_entmax.strings.task import INFLECTION, SOURCE, TARGET, StringTask

COVERED = "test"
"""The split whose tables may have no targets"""


@dataclass(frozen=True, kw_only=True)
class Table(SplitFile):
    """A table that was read.

    Attributes:
        layout: its columns.
        covered: whether it has no targets, as those of a shared task's test set.
        rows: that can be read.
        bad: rows that cannot be read.
    """

    layout: Layout
    covered: bool
    rows: list[Row]
    bad: list[BadRow]


class _Sampled(NamedTuple):
    """The first lines of a table."""

    file: SplitFile
    layout: Layout
    cells: Mapping[str, Sequence[str]]
    """Of each column."""

    @property
    def covered(self) -> bool:
        """Whether it has no targets, as those of a shared task's test set."""
        return self.file.split == COVERED and not any(self.cells.get(TARGET, ()))


def read_tables(
    files: Sequence[SplitFile],
    columns: Sequence[str] = (),
    separators: Mapping[str, str] | None = None,
    usual: Sequence[str] = (),
) -> tuple[list[Table], StringTask]:
    """Read tables, in which some rows may be bad; return them and their task.

    Args:
        files: of the tables, those of training first.
        columns: of all tables; empty: a heading names them, or they are guessed.
        separators: of columns; others are guessed from the tables of the first split.
        usual: columns to assume where no guess is sure.

    Raises:
        UserError: tables have different columns, or columns that make no sense.
    """
    sampled = _sampled(files, columns, usual)
    task = _task(sampled, separators or {})
    return [_read(table, task) for table in sampled], task


def _sampled(
    files: Sequence[SplitFile], columns: Sequence[str], usual: Sequence[str]
) -> list[_Sampled]:
    """Read the first lines of tables, whose columns are those of the first table.

    Args:
        files: of the tables, those of training first.
        columns: of all tables, if the user named them.
        usual: columns to assume where no guess is sure.

    Raises:
        UserError: tables have different columns.
    """
    sampled: list[_Sampled] = []
    for file in files:
        sample = list(islice(read_lines(file.path), SAMPLE))
        if sampled:
            first = sampled[0]
            layout = _further_layout(file, sample, first.file.path, first.layout, columns)
        else:
            layout = guess_layout(sample, str(file.path), columns, usual=usual)
        sampled.append(_Sampled(file, layout, cells_by_column(sample, layout)))
    return sampled


def _task(sampled: Sequence[_Sampled], separators: Mapping[str, str]) -> StringTask:
    """Return the task of tables; separators that are not given are those of the first split.

    Raises:
        UserError: the columns make no sense.
    """
    first = sampled[0]
    texts: dict[str, list[str]] = {}  # by column
    for table in sampled:
        if table.file.split == first.file.split:
            for column, cells in table.cells.items():
                texts.setdefault(column, []).extend(cells)
    return task_of(
        first.layout,
        first.file.path,
        guessed_separators(texts) | dict(separators),
        languages=bool(first.file.language),
    )


def _further_layout(
    file: SplitFile,
    sample: Sequence[str],
    first_path: Path,
    first_layout: Layout,
    columns: Sequence[str],
) -> Layout:
    """Return the layout of a table that is not the first, whose columns it has.

    Args:
        file: of the table.
        sample: its first lines.
        first_path: of the first table.
        first_layout: of the first table.
        columns: of all tables, if the user named them.

    Raises:
        UserError: its columns are unclear, or targets are missing where they must not.
    """
    layout = layout_like(first_layout, first_path, sample, file.path, columns)
    if TARGET not in layout.columns and file.split != COVERED:
        names = ", ".join(first_layout.columns)
        raise UserError(f"{file.path}: {layout}; no targets, but {first_path} has {names}")
    return layout


def _read(sampled: _Sampled, task: StringTask) -> Table:
    """Return a table with all of its rows.

    Raises:
        UserError: there are none.
    """
    file, layout, covered = sampled.file, sampled.layout, sampled.covered
    rows: list[Row] = []
    bad: list[BadRow] = []
    for row in rows_of(
        read_lines(file.path), layout, task, language=file.language, needs_target=not covered
    ):
        if isinstance(row, Row):
            rows.append(row)
        else:
            bad.append(row)
    if not rows and not bad:
        raise UserError(f"{file.path}: no rows")
    return Table(**vars(file), layout=layout, covered=covered, rows=rows, bad=bad)


def read_rows(path: Path, columns: Sequence[str] = ()) -> list[Row]:
    """Return the rows of a table of inflections.

    Raises:
        UserError: a row cannot be read.
    """
    (table,), _ = read_tables(
        [SplitFile("table", path)],
        columns,
        separators={SOURCE: "", TARGET: ""},  # none: characters
        usual=INFLECTION.columns,
    )
    refuse_bad_rows([table])
    return table.rows


def refuse_bad_rows(tables: Sequence[Table], hint: str = "") -> None:
    """Refuse tables with rows that cannot be read; warnings name the first ones.

    Args:
        tables: that were read.
        hint: says how to go on without them.

    Raises:
        UserError: there are such rows.
    """
    if summary := _warn_of_first_bad_rows(tables):
        raise UserError(f"{summary}; mend them{hint}")


def warn_of_bad_rows(tables: Sequence[Table], written: Path) -> None:
    """Warn of rows that cannot be read, and name the file that they are written to."""
    if summary := _warn_of_first_bad_rows(tables):
        warn(f"{summary}; {written} has them, with their reasons")


def bad_rows_text(tables: Sequence[Table]) -> str:
    """Return the text of the file of bad rows: a line for each, with its reason."""
    return "".join(bad_row_line(path, row) for path, row in _bad_rows(tables))


def _warn_of_first_bad_rows(tables: Sequence[Table]) -> str:
    """Warn of the first bad rows, by name; return how many there are, as text, if there are any."""
    bad = _bad_rows(tables)
    if not bad:
        return ""
    warn(*(bad_row_text(path, row) for path, row in bad[:LISTED]))
    return bad_rows_summary(len(bad), len(bad) + sum(len(table.rows) for table in tables))


def _bad_rows(tables: Sequence[Table]) -> list[tuple[Path, BadRow]]:
    """Return the bad rows of all tables, each with the file that has it."""
    return [(table.path, row) for table in tables for row in table.bad]
