"""Headings that say more about one model's tables than usual names do.

A model records the heading of its training tables (`StringTask.heading`) if the usual names
(`column_names.py`) do not say the same columns. Its names count before usual ones, in whatever
order a table has them:

| heading | columns of training | a table with usual names |
|---|---|---|
| `Wort`, `Merkmale`, `Form` | source, tags, target | is read by these names |
| `form`, `lemma` | source, target | is refused: they would exchange source and target |
"""

from collections.abc import Sequence

from onmt_entmax.strings.column_names import column_of, columns_by_names, normalised, singular
from onmt_entmax.strings.delimiters import guess_delimiter
from onmt_entmax.strings.tables import Layout, TableError, readable_cells
from onmt_entmax.strings.task import LEFT_OUT, SOURCE, TAGS, TARGET, StringTask


def own_heading(layout: Layout) -> tuple[str, ...]:
    """Return a table's heading if usual names do not say its columns; else nothing."""
    cells = layout.cells_above
    return () if columns_by_names(cells) == layout.columns else cells


def shared_heading(
    layout: Layout, lines: Sequence[str], other_tables: Sequence[Sequence[str]]
) -> tuple[str, ...]:
    """Return the first row of a table if all other tables begin with its cells, in any order.

    `Wort` and `Aussprache` above the words of both training and development set are a heading,
    although no name is usual and no tags stand below. Targets may be missing from other tables.
    Tables that have a tenth of their other rows in common may share the first one as a row, too.

    Args:
        layout: layout of the table, without a heading.
        lines: first lines of the table.
        other_tables: first lines of the other tables.
    """
    first, *rows = _rows(lines) or [()]
    if TAGS in layout.columns or len(first) != len(layout.columns) or len({*first}) < len(first):
        return ()
    target = layout.columns.index(TARGET)
    covered = sorted(first[:target] + first[target + 1 :])
    unordered = {tuple(sorted(row)) for row in rows}
    for other in map(_rows, other_tables):
        has_its_cells = bool(other) and sorted(other[0]) in (sorted(first), covered)
        repeated = sum(tuple(sorted(row)) in unordered for row in other[1:])
        if not has_its_cells or 10 * repeated >= len(other[1:]):
            return ()
    return first if other_tables else ()


def _rows(lines: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the cells of the rows of a table without blank lines."""
    filled = [line for line in lines if line.strip()]
    return readable_cells(Layout((), guess_delimiter(filled)), filled)


def has_names_of(own: Sequence[str], heading: Sequence[str]) -> bool:
    """Return whether a heading has two of the names of an own heading, which order its columns."""
    return len({*map(singular, own)} & {*map(singular, heading)}) > 1


def _contradicts_usual_names(task: StringTask) -> bool:
    """Return whether a usual name of source or target stands above another column of a task."""
    return any(
        usual in (SOURCE, TARGET) and usual != column
        for usual, column in zip(columns_by_names(task.heading), task.columns, strict=False)
    )


def columns_by_own_heading(
    task: StringTask, first: Sequence[str], *, is_usual: bool, name: str
) -> tuple[str, ...]:
    """Return the columns of a table whose first row has names of a task's heading; else nothing.

    Two of these names make a heading, and so do usual ones. Tags, languages and further columns may
    have usual names; source and target may unless training's names contradict the usual ones.

    Args:
        task: task of a model.
        first: cells of the first row.
        is_usual: whether the row is a heading with usual names.
        name: name of the table, for the error.

    Raises:
        TableError: names above source and target are not those of training, or the source is
            missing, and the order of training would contradict the other names.
    """
    if not task.heading or len(first) < 2:
        return ()
    names = [singular(cell) for cell in task.heading]
    if [singular(cell) for cell in first] == names:  # also if a name stands above two columns
        return task.columns
    column_under = {
        cell: column
        for cell, column in zip(names, task.columns, strict=True)
        if names.count(cell) == 1
    }
    columns = [column_under.get(singular(cell)) for cell in first]
    found = [column for column in columns if column not in (None, LEFT_OUT)]
    is_row = len(set(found)) < len(found) or (len(found) < 2 and not is_usual)
    if is_row:  # of words that are names, too, such as `form` and `forms`
        return ()
    for position, cell in enumerate(first):
        if columns[position] is None:
            columns[position] = _usual_column(task, cell, columns, first, name)
    if SOURCE in columns:
        return tuple(column or LEFT_OUT for column in columns)
    if _contradicts_usual_names(task) or not _is_order_of(task, columns):
        raise _error(task, first, name)
    return ()  # the columns of training, in their order


def _is_order_of(task: StringTask, columns: Sequence[str | None]) -> bool:
    """Return whether each column that a heading names stands where training had it."""
    return len(columns) == len(task.columns) and all(
        column in (LEFT_OUT, trained) for column, trained in zip(columns, task.columns, strict=True)
    )


def _usual_column(
    task: StringTask,
    cell: str,
    columns: Sequence[str | None],
    first: Sequence[str],
    name: str,
) -> str:
    """Return the column that a cell which is not of the task's heading names; `-` if none.

    Args:
        task: task of a model.
        cell: cell of the first row.
        columns: columns of the row that are known.
        first: all cells of the row, for the error.
        name: name of the table, for the error.

    Raises:
        TableError: it names a source or target, where the task's heading has contradicting names
            for them.
    """
    column = column_of(cell) or LEFT_OUT
    if not _contradicts_usual_names(task):
        return LEFT_OUT if column in columns else column
    is_sure = normalised(cell) == column  # `target`, as `predict` names what it adds
    if column in (SOURCE, TARGET) and (column in columns or not is_sure):
        raise _error(task, first, name)
    return LEFT_OUT if column in columns else column


def _error(task: StringTask, first: Sequence[str], name: str) -> TableError:
    """Return the error about a heading with other names than training's."""
    named = ", ".join(
        f"{cell!r} for {column}"
        for cell, column in zip(task.heading, task.columns, strict=True)
        if column != LEFT_OUT
    )
    return TableError(
        f"{name}: its heading is {' | '.join(first)!r}, but training named {named}; give it these "
        "names, or leave the heading out"
    )
