"""Headings of the tables of one model, whose names mean other columns than usually.

A model of lemmas, trained with `--columns source,target` on tables headed `form` and `lemma`,
records this heading (`StringTask.heading`). A table with these names, in whatever order, has the
columns of training: the usual names (`column_names.py`) would exchange source and target. So a
table that has other names for source or target is refused.
"""

from collections.abc import Sequence

from onmt_entmax.strings.column_names import column_of, columns_by_names, normalised
from onmt_entmax.strings.tables import Layout, TableError
from onmt_entmax.strings.task import LEFT_OUT, SOURCE, TARGET, StringTask


def own_heading(layout: Layout) -> tuple[str, ...]:
    """Return the heading of a table if its names usually mean other columns; else nothing."""
    cells = layout.cells_above
    return () if columns_by_names(cells) in ((), layout.columns) else cells


def columns_by_own_heading(
    task: StringTask, first: Sequence[str], *, is_usual: bool, name: str
) -> tuple[str, ...]:
    """Return the columns of a table whose first row has names of a task's heading; else nothing.

    Two names, or one beside usual ones, make a heading. Further columns may have usual names.

    Args:
        task: task of a model.
        first: cells of the first row.
        is_usual: whether the row is a heading with usual names.
        name: name of the table, for the error.

    Raises:
        TableError: names above source and target are not those of training, or the source is
            missing.
    """
    if not task.heading or len(first) < 2:
        return ()
    names = [_singular(cell) for cell in task.heading]
    if [_singular(cell) for cell in first] == names:  # also if a name stands above two columns
        return task.columns
    column_under = {
        cell: column
        for cell, column in zip(names, task.columns, strict=True)
        if names.count(cell) == 1
    }
    columns = [column_under.get(_singular(cell)) for cell in first]
    found = [column for column in columns if column not in (None, LEFT_OUT)]
    is_row = len(set(found)) < len(found) or (len(found) < 2 and not is_usual)
    if is_row:  # of words that are names, too, such as `form` and `forms`
        return ()
    if not {SOURCE, TARGET} & set(found) and not _is_exchanged(task):
        return ()
    for position, cell in enumerate(first):
        if columns[position] is None:
            columns[position] = _usual_column(task, cell, columns, first, name)
    if SOURCE not in columns:
        raise _error(task, first, name)
    return tuple(column or LEFT_OUT for column in columns)


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
        TableError: it names a source or target, where the task's heading has other names for them.
    """
    column = column_of(cell) or LEFT_OUT
    is_sure = normalised(cell) == column  # `target`, as `predict` names what it adds
    is_trusted = column not in columns and (is_sure or not _is_exchanged(task))
    if column in (SOURCE, TARGET) and not is_trusted:
        raise _error(task, first, name)
    return LEFT_OUT if column in columns else column


def _is_exchanged(task: StringTask) -> bool:
    """Return whether the heading has a usual name of source or target above another column."""
    pairs = zip(map(column_of, task.heading), task.columns, strict=True)
    return any(usual in (SOURCE, TARGET) and usual != column for usual, column in pairs)


def _singular(cell: str) -> str:
    """Return a cell as it is compared: `Forms` and `form` are one name."""
    return normalised(cell).removesuffix("s")


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
