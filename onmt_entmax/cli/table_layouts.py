"""Columns and separators that the tables of one `prepare` or `audit` share.

The first lines of each table are sampled. The first table decides the columns; the others have the
same ones, in any order. The tables of the first split decide the separators.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

from onmt_entmax.cli.split_files import SplitFile
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from onmt_entmax.strings.delimiters import guess_separator, guess_tag_separator
from onmt_entmax.strings.guessing import SAMPLE, guess_layout
from onmt_entmax.strings.own_headings import own_heading
from onmt_entmax.strings.tables import Layout, TableError, readable_cells
from onmt_entmax.strings.task import (
    LANGUAGE_COLUMN,
    LEFT_OUT,
    SOURCE,
    TAGS,
    TARGET,
    StringTask,
    TaskError,
)
from onmt_entmax.strings.units import Unit

_MAY_LACK_TARGETS = "test"  # the split that shared tasks publish without them


@dataclass(frozen=True)
class SampledTable:
    """A table whose first lines were read.

    Attributes:
        file: its path, split and language.
        layout: its columns.
        cells: the cells of each column in these lines; empty if no line is a row.
    """

    file: SplitFile
    layout: Layout
    cells: Mapping[str, Sequence[str]]

    @property
    def has_targets(self) -> bool:
        """Whether rows need a target: they do, except in a test set whose first lines have none."""
        return self.file.split != _MAY_LACK_TARGETS or any(self.cells.get(TARGET, ()))


def sample_tables(
    files: Sequence[SplitFile], columns: Sequence[str], fallback: Sequence[str]
) -> list[SampledTable]:
    """Read the first lines of tables, and find their columns.

    Args:
        files: files of the tables, those of training first.
        columns: columns of all tables; empty: a heading names them, or they are guessed.
        fallback: columns to assume if those of the first table cannot be guessed.

    Raises:
        UserError: the columns of a table are unclear, or differ from those of the first one.
    """
    first_file, *other_files = files
    lines = _first_lines(first_file)
    layout = guess_layout(lines, str(first_file.path), columns, fallback=fallback)
    first = SampledTable(first_file, layout, _cells_by_column(lines, layout))
    return [first, *(_sample_like(first, file, columns) for file in other_files)]


def shared_task(tables: Sequence[SampledTable], separators: Mapping[str, str]) -> StringTask:
    """Return the task of tables with the same columns.

    Args:
        tables: the tables, those of training first.
        separators: separators that the user names, by column; others are guessed from the first
            split.

    Raises:
        UserError: the columns make no sense.
    """
    first = tables[0]
    texts: dict[str, list[str]] = {}  # by column
    for table in tables:
        if table.file.split == first.file.split:
            for column, cells in table.cells.items():
                texts.setdefault(column, []).extend(cells)
    guessed = {
        SOURCE: guess_separator(texts.get(SOURCE, ())),
        TARGET: guess_separator(texts.get(TARGET, ())),
        TAGS: guess_tag_separator(texts.get(TAGS, ())),
    }
    task = _task_of(first, guessed | dict(separators))
    return replace(task, heading=own_heading(first.layout))


def _first_lines(file: SplitFile) -> list[str]:
    """Return the lines of a table that show its columns."""
    return list(islice(read_lines(file.path), SAMPLE))


def _cells_by_column(lines: Sequence[str], layout: Layout) -> dict[str, tuple[str, ...]]:
    """Return the cells of each column in the lines that are rows; empty if there are no rows."""
    table = readable_cells(layout, filter(str.strip, lines))
    if layout.heading:
        table = table[1:]
    rows = [cells for cells in table if len(cells) == len(layout.columns)]
    if not rows:
        return {}
    return dict(zip(layout.columns, zip(*rows, strict=True), strict=True))


def _sample_like(first: SampledTable, file: SplitFile, columns: Sequence[str]) -> SampledTable:
    """Read the first lines of a table that has the columns of the first one.

    Args:
        first: the first table.
        file: file of the table.
        columns: columns of all tables, if the user named them.

    Raises:
        UserError: its columns are unclear or differ from those of the first table, or targets are
            missing outside the test set.
    """
    lines = _first_lines(file)
    layout = _layout_like(first, lines, str(file.path), columns)
    if TARGET not in layout.columns and file.split != _MAY_LACK_TARGETS:
        names = ", ".join(first.layout.columns)
        raise UserError(f"{file.path}: {layout}; no targets, but {first.file.path} has {names}")
    return SampledTable(file, layout, _cells_by_column(lines, layout))


def _layout_like(
    first: SampledTable, lines: Sequence[str], name: str, columns: Sequence[str]
) -> Layout:
    """Return the layout of a table that has the columns of the first one; targets may be missing.

    Its heading or its tags show the order of the columns; without either, the order is that of the
    first table. If the user named the columns, a name that stands above another column than usual
    in the first table means that column here, too.

    Args:
        first: the first table.
        lines: first lines of the table.
        name: name of the table, for errors.
        columns: columns of all tables, if the user named them.

    Raises:
        UserError: the columns are unclear, or differ from those of the first table.
    """
    if columns:
        task = StringTask(tuple(columns), heading=own_heading(first.layout))
        return guess_layout(lines, name, task=task)
    with suppress(TableError):
        layout = guess_layout(lines, name)
        # Nothing tells which of two columns without a heading is the source.
        is_sure = bool(layout.heading) or TAGS in layout.columns
        if is_sure and {*layout.columns, LEFT_OUT} == {*first.layout.columns, LEFT_OUT}:
            return layout
    return guess_layout(lines, name, task=_task_of(first, separators={}))


def _task_of(table: SampledTable, separators: Mapping[str, str]) -> StringTask:
    """Return a task with the columns of a table.

    Args:
        table: table with these columns. The task has languages if the table has one, or a column of
            them.
        separators: separators of source, target and tags, by column, as far as they are known.

    Raises:
        UserError: the columns make no sense.
    """
    columns = table.layout.columns
    try:
        return StringTask(
            columns,
            source=Unit.between(separators.get(SOURCE, "")),
            target=Unit.between(separators.get(TARGET, "")),
            tag_separator=separators.get(TAGS) or ";",
            languages=bool(table.file.language) or LANGUAGE_COLUMN in columns,
        )
    except TaskError as error:
        raise UserError(f"{table.file.path}: {error}; --columns names them") from None
