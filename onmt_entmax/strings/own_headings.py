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

    Two of these names make a heading, and so does one in a row that is a heading by its usual
    names. Tags, languages and further columns may have usual names; source and target may unless
    training's names contradict the usual ones.

    Args:
        task: task of a model.
        first: cells of the first row.
        is_usual: whether the row is a heading by usual names.
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
    if not _is_heading(columns, is_usual=is_usual):
        return ()
    contradicts = _contradicts_usual_names(task)
    for position, cell in enumerate(first):
        if columns[position] is None:
            columns[position] = _usual_column(cell, columns, contradicts=contradicts)
    named = [column for column in columns if column is not None]
    if len(named) < len(columns):
        raise _error(task, first, name)
    if SOURCE in named:
        return tuple(named)
    if contradicts or not _is_order_of(task, named):
        raise _error(task, first, name)
    return ()  # the columns of training, in their order


def _is_order_of(task: StringTask, columns: Sequence[str]) -> bool:
    """Return whether each column that a heading names stands where training had it."""
    return len(columns) == len(task.columns) and all(
        column in (LEFT_OUT, trained) for column, trained in zip(columns, task.columns, strict=True)
    )


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


def _usual_column(cell: str, columns: Sequence[str | None], *, contradicts: bool) -> str | None:
    """Return the column that a cell names by usual names; `-` if it names none, or a known one.

    If the task's heading contradicts usual names, the result is None for a usual name of source or
    target. The exceptions are `source` and `target` themselves: `predict` puts `target` above the
    column that it adds.

    Args:
        cell: a cell of the first row that is no name in the task's heading.
        columns: the columns of the row that are known.
        contradicts: see `_contradicts_usual_names`.
    """
    column = column_of(cell) or LEFT_OUT
    is_own_name = normalised(cell) == column
    names_text = contradicts and column in (SOURCE, TARGET)
    if names_text and (column in columns or not is_own_name):
        return None
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
