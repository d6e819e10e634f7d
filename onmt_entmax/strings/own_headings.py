"""Headings whose names mean other columns for one model than they usually do.

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
    """Return a table's heading if a usual name of source or target stands above another column.

    Otherwise nothing is returned: the usual names, or the order of the columns, are enough.
    """
    cells = layout.cells_above
    usual_columns = columns_by_names(cells)
    is_own = any(
        usual in (SOURCE, TARGET) and usual != column
        for usual, column in zip(usual_columns, layout.columns, strict=False)
    )
    return cells if is_own else ()


def columns_by_own_heading(
    task: StringTask, first: Sequence[str], *, is_usual: bool, name: str
) -> tuple[str, ...]:
    """Return the columns of a table whose first row has names of a task's heading; else nothing.

    Two of these names make a heading, and so does one in a row that is a heading by its usual
    names. Tags, languages and further columns may have usual names, source and target may not.

    Args:
        task: task of a model.
        first: cells of the first row.
        is_usual: whether the row is a heading by usual names.
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
    if not _is_heading(columns, is_usual=is_usual):
        return ()
    for position, cell in enumerate(first):
        if columns[position] is None:
            columns[position] = _usual_column(cell, columns)
    named = [column for column in columns if column is not None]
    if len(named) < len(columns) or SOURCE not in named:
        raise _error(task, first, name)
    return tuple(named)


def _is_heading(columns: Sequence[str | None], *, is_usual: bool) -> bool:
    """Tell whether a row is a heading, by the columns that its cells name.

    Words of a row may be names by chance, as `form` and `forms` of a table of English are: then
    only one cell names a column, or two name the same.

    Args:
        columns: the column that each cell names in the task's heading; None: it names none.
        is_usual: whether the row is a heading by usual names.
    """
    named = [column for column in columns if column not in (None, LEFT_OUT)]
    are_different = len(set(named)) == len(named)
    return are_different and (len(named) > 1 or is_usual)


def _usual_column(cell: str, columns: Sequence[str | None]) -> str | None:
    """Return the column that a cell names by usual names; `-` if it names none, or a known one.

    The result is None for a usual name of source or target, which the task's heading names
    otherwise. The exceptions are `source` and `target` themselves: `predict` puts `target` above
    the column that it adds.

    Args:
        cell: a cell of the first row that is no name in the task's heading.
        columns: the columns of the row that are known.
    """
    column = column_of(cell) or LEFT_OUT
    is_own_name = normalised(cell) == column
    if column in (SOURCE, TARGET) and (column in columns or not is_own_name):
        return None
    return LEFT_OUT if column in columns else column


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
