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
from onmt_entmax.files import read_lines, refuse_stream
from onmt_entmax.strings.delimiters import guess_separator, guess_tag_separator
from onmt_entmax.strings.guessing import SAMPLE, guess_layout
from onmt_entmax.strings.misplaced_tags import refuse_misplaced_tags
from onmt_entmax.strings.own_headings import has_names_of, own_heading
from onmt_entmax.strings.shared_headings import shared_heading
from onmt_entmax.strings.tables import ColumnsError, Layout, TableError, readable_cells
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
    files: Sequence[SplitFile],
    columns: Sequence[str],
    fallback: Sequence[str],
    model_task: StringTask | None = None,
) -> list[SampledTable]:
    """Read the first lines of tables, and find their columns.

    Args:
        files: files of the tables, those of training first.
        columns: columns of all tables; empty: a heading names them, or they are guessed.
        fallback: columns to assume if those of the first table cannot be guessed.
        model_task: task of a model that will read the tables, if there is one.

    Raises:
        UserError: the columns of a table are unclear, or differ from those of the first one.
    """
    first_file, *other_files = files
    lines = _first_lines(first_file)
    name = str(first_file.path)
    if model_task is None:
        layout = guess_layout(lines, name, columns, fallback=fallback)
    else:
        layout = _layout_for_model(lines, name, columns, fallback, model_task)
    if not layout.heading:
        others = [_first_lines(file) for file in other_files]
        layout = replace(layout, heading=shared_heading(layout, lines, others))
    tables = [SampledTable(first_file, layout, _cells_by_column(lines, layout))]
    for file in other_files:
        tables.append(_sample_like(tables, file, columns))
    return tables


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
    return replace(task, heading=_own_heading(tables))


def _own_heading(tables: Sequence[SampledTable]) -> tuple[str, ...]:
    """Return the first own heading above the columns of the first table; empty if there is none."""
    headings = (
        own_heading(table.layout)
        for table in tables
        if table.layout.columns == tables[0].layout.columns
    )
    return next(filter(None, headings), ())


def _layout_for_model(
    lines: Sequence[str],
    name: str,
    columns: Sequence[str],
    fallback: Sequence[str],
    task: StringTask,
) -> Layout:
    """Return the layout of a table that a model will read.

    Its heading is read as `predict` reads it. Without one, tags show the order of the columns,
    unless the model has the target before the source.

    Args:
        lines: first lines of the table.
        name: name of the table, for errors.
        columns: columns that the user names.
        fallback: columns to assume if the columns cannot be guessed.
        task: task of the model.

    Raises:
        UserError: the columns are unclear.
    """
    with suppress(ColumnsError):
        layout = guess_layout(lines, name, columns, task=task)
        if columns or layout.heading:
            return layout
    if task.columns.index(TARGET) < task.columns.index(SOURCE):
        return guess_layout(lines, name, task=task)
    return guess_layout(lines, name, fallback=fallback)


def _first_lines(file: SplitFile) -> list[str]:
    """Return the lines of a table that show its columns.

    Raises:
        UserError: the table cannot be read twice.
    """
    refuse_stream(file.path)
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


def _sample_like(
    tables: Sequence[SampledTable], file: SplitFile, columns: Sequence[str]
) -> SampledTable:
    """Read the first lines of a table that has the columns of the first one.

    Args:
        tables: the tables before it.
        file: file of the table.
        columns: columns of all tables, if the user named them.

    Raises:
        UserError: its columns are unclear or differ from those of the first table, or it has no
            tags, or no targets outside the test set.
    """
    lines = _first_lines(file)
    first = tables[0]
    try:
        layout = _layout_like(tables, lines, str(file.path), columns)
        _refuse_misplaced_tags(first, layout, lines, str(file.path))
    except ColumnsError as error:  # --columns is about all tables
        raise ColumnsError(error.problem, option="") from None
    needed = {TAGS} if file.split == _MAY_LACK_TARGETS else {TARGET, TAGS}
    for column in sorted((needed & {*first.layout.columns}) - {*layout.columns}, reverse=True):
        plural = column if column.endswith("s") else f"{column}s"
        names = ", ".join(first.layout.columns)
        raise UserError(f"{file.path}: {layout}; no {plural}, but {first.file.path} has {names}")
    return SampledTable(file, layout, _cells_by_column(lines, layout))


def _layout_like(
    tables: Sequence[SampledTable], lines: Sequence[str], name: str, columns: Sequence[str]
) -> Layout:
    """Return the layout of a table that has the columns of the first one; targets may be missing.

    Its heading or its tags show the order of the columns; without either, the order is that of the
    first table. Names that headings of earlier tables have count before usual ones.

    Args:
        tables: the tables before it.
        lines: first lines of the table.
        name: name of the table, for errors.
        columns: columns of all tables, if the user named them.

    Raises:
        UserError: the columns are unclear, or differ from those of the first table.
    """
    task = replace(_task_of(tables[0], separators={}), heading=_own_heading(tables))
    try:
        layout = guess_layout(lines, name, task=task)
    except ColumnsError:  # such as a table with a further column
        guessed = None if columns else _guess_like(task, lines, name)
        if guessed is None:
            raise
        return guessed
    if columns or has_names_of(task.heading, layout.heading):
        return replace(layout, guessed=tables[0].layout.guessed)
    return _guess_like(task, lines, name) or layout


def _guess_like(task: StringTask, lines: Sequence[str], name: str) -> Layout | None:
    """Return the layout of a table as guessed without a task; None if it differs from the task's.

    None too if nothing tells which of two columns is the source: neither a heading nor tags.
    """
    with suppress(TableError):
        guessed = guess_layout(lines, name)
        is_sure = bool(guessed.heading) or TAGS in guessed.columns
        if is_sure and {*guessed.columns, LEFT_OUT} == {*task.columns, LEFT_OUT}:
            return guessed
    return None


def _refuse_misplaced_tags(
    first: SampledTable, layout: Layout, lines: Sequence[str], name: str
) -> None:
    """Refuse a table without a heading that has the tags of the first table in another column.

    Args:
        first: the first table.
        layout: layout of the other table.
        lines: its first lines.
        name: its name, for the error.

    Raises:
        ColumnsError: the tags are in another column.
    """
    cells = first.cells.get(TAGS, ())
    task = _task_of(first, separators={TAGS: guess_tag_separator(cells)})
    tags = {tag for cell in cells for tag in task.tags_of(cell)}
    refuse_misplaced_tags(lines, layout, task, known_tags=tags, name=name)


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
