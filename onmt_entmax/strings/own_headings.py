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

from onmt_entmax.strings.column_names import (
    column_of,
    columns_by_names,
    has_cells_of_rows,
    may_name_source,
    normalised,
    singular,
    with_usual_names,
)
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
    Tables that have a tenth of their other rows in common may share the first one as a row, too,
    and a single other row tells nothing.

    Args:
        layout: layout of the table, without a heading.
        lines: first lines of the table.
        other_tables: first lines of the other tables.
    """
    first, *rows = _rows(lines) or [()]
    if TAGS in layout.columns or TARGET not in layout.columns:
        return ()
    if len(first) != len(layout.columns) or len({*first}) < len(first):
        return ()
    target = layout.columns.index(TARGET)
    covered = [row[:target] + row[target + 1 :] for row in (first, *rows)]
    unordered = {tuple(sorted(row)) for row in (*rows, *covered[1:])}
    for other in map(_rows, other_tables):
        has_its_cells = bool(other) and sorted(other[0]) in (sorted(first), sorted(covered[0]))
        repeated = sum(tuple(sorted(row)) in unordered for row in other[1:])
        if not has_its_cells or len(other) <= 2 or 10 * repeated >= len(other[1:]):
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
    task: StringTask,
    first: Sequence[str],
    below: Sequence[Sequence[str]],
    *,
    usual: tuple[str, ...],
    name: str,
) -> tuple[str, ...]:
    """Return the columns of a table whose first row has names of a task's heading; else nothing.

    Two of these names make a heading, and so does one in a row that is a heading by its usual
    names. Tags, languages and further columns may have usual names; source and target may unless
    training's names contradict the usual ones. If all names fit the order of training, a new name
    is that of the column that has no other.

    Args:
        task: task of a model.
        first: cells of the first row.
        below: cells of the other rows.
        usual: columns that the first row has by usual names; empty if it is no heading by them.
        name: name of the table, for the error.

    Raises:
        TableError: names above source and target are not those of training, one stands above
            several columns of training, or the source has no name.
    """
    if not task.heading or len(first) < 2:
        return ()
    names = [singular(cell) for cell in task.heading]
    if [singular(cell) for cell in first] == names:  # also if a name stands above two columns
        return task.columns
    columns_under: dict[str, set[str]] = {}
    for cell, column in zip(names, task.columns, strict=True):
        columns_under.setdefault(cell, set()).add(column)
    candidates = [columns_under.get(singular(cell), set()) for cell in first]
    own = [next(iter(columns)) if len(columns) == 1 else None for columns in candidates]
    contradicts = _contradicts_usual_names(task)
    if not contradicts and _are_all_columns(usual, task, own):
        return usual
    if not _is_heading(own, is_usual=bool(usual)):
        return ()
    columns = with_usual_names(own, first)
    is_in_order = _is_order_of(task, columns, own)
    if is_in_order:
        columns = task.columns
    if has_cells_of_rows(first, columns, below):
        return ()
    is_unclear = any(len(columns) > 1 for columns in candidates)
    if is_unclear or (contradicts and _has_usual_name_of_text(first, own)):
        raise _error(task, first, name)
    if SOURCE not in (own if contradicts else columns):
        raise _error(task, first, name)
    return columns


def _are_all_columns(usual: Sequence[str], task: StringTask, own: Sequence[str | None]) -> bool:
    """Return whether usual names say all columns of a task, and no own name contradicts them."""
    return {*task.columns} <= {*usual, LEFT_OUT} and all(
        own_column in (None, column) for column, own_column in zip(usual, own, strict=True)
    )


def _is_order_of(task: StringTask, columns: Sequence[str], own: Sequence[str | None]) -> bool:
    """Return whether each column that a heading names stands where training had it.

    Args:
        task: task of the model.
        columns: columns that the heading names; `-` for others.
        own: the same by the task's heading alone; None for others.
    """
    return len(columns) == len(task.columns) and all(
        column == trained or (column == LEFT_OUT and own_column is None)
        for column, own_column, trained in zip(columns, own, task.columns, strict=True)
    )


def _has_usual_name_of_text(first: Sequence[str], own: Sequence[str | None]) -> bool:
    """Return whether a cell that is no own name is a usual name of source or target.

    The exceptions are `source` and `target` themselves, if no own name says the same: `predict`
    puts `target` above the column that it adds.
    """
    for cell, own_column in zip(first, own, strict=True):
        column = SOURCE if may_name_source(cell) else column_of(cell)
        is_exception = normalised(cell) == column and column not in own
        if own_column is None and column in (SOURCE, TARGET) and not is_exception:
            return True
    return False


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
