"""Headings that say more about one model's tables than usual names do.

A model records the heading of its training tables (`StringTask.heading`) if the usual names
(`column_names.py`) do not say the same columns. Its own names count before usual ones, in whatever
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
    is_like_rows_below,
    may_name_source,
    normalised,
    singular,
    with_usual_names,
)
from onmt_entmax.strings.tables import Layout, TableError
from onmt_entmax.strings.task import LEFT_OUT, SOURCE, TARGET, StringTask


def own_heading(layout: Layout) -> tuple[str, ...]:
    """Return a table's heading if usual names do not say its columns; else nothing."""
    cells = layout.cells_above
    return () if columns_by_names(cells) == layout.columns else cells


def has_names_of(own: Sequence[str], heading: Sequence[str]) -> bool:
    """Return whether a heading has two of the names of an own heading, which order its columns."""
    return len({*map(singular, own)} & {*map(singular, heading)}) > 1


def columns_by_own_heading(
    task: StringTask,
    first: Sequence[str],
    below: Sequence[Sequence[str]],
    *,
    usual: tuple[str, ...],
    name: str,
) -> tuple[str, ...]:
    """Return the columns of a table whose first row has names of a task's heading; else nothing.

    - A row is a heading if two of its cells have such names, or if one has and the row is a heading
      by its usual names.
    - Other cells may have usual names, except those of source and target if training's names
      contradict the usual ones: they are refused.
    - If the names are in the order of training, a new name stands for the column of training there.

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
    if [*map(singular, first)] == [*map(singular, task.heading)]:
        return task.columns  # also if a name stands above two columns
    candidates = _candidates(task, first)
    own = [next(iter(columns)) if len(columns) == 1 else None for columns in candidates]
    if _are_all_columns(usual, task, own) and not _contradicts_usual_names(task):
        return usual
    if not _is_heading(own, is_usual=bool(usual)):
        return ()
    columns = with_usual_names(own, first)
    if _is_order_of(task, columns, own):
        columns = task.columns
    if is_like_rows_below(first, columns, below):
        return ()
    is_unclear = any(len(possible) > 1 for possible in candidates)
    if is_unclear or not _says_which_is_source(task, first, columns, own):
        raise _error(task, first, name)
    return columns


def _candidates(task: StringTask, first: Sequence[str]) -> list[set[str]]:
    """Return, for each cell of a first row, the columns above which training had this name."""
    columns_under: dict[str, set[str]] = {}
    for cell, column in zip(task.heading, task.columns, strict=True):
        columns_under.setdefault(singular(cell), set()).add(column)
    return [columns_under.get(singular(cell), set()) for cell in first]


def _are_all_columns(usual: Sequence[str], task: StringTask, own: Sequence[str | None]) -> bool:
    """Return whether usual names say all columns of a task, and no own name contradicts them.

    Args:
        usual: the column that each cell of the first row names by its usual name; may be empty.
        task: task of the model.
        own: the column that each cell names in the task's heading; None: it names none.
    """
    return {*task.columns} <= {*usual, LEFT_OUT} and all(
        own_column in (None, column) for column, own_column in zip(usual, own, strict=True)
    )


def _contradicts_usual_names(task: StringTask) -> bool:
    """Return whether a usual name of source or target stands above another column of a task."""
    return any(
        usual in (SOURCE, TARGET) and usual != column
        for usual, column in zip(columns_by_names(task.heading), task.columns, strict=False)
    )


def _is_heading(own: Sequence[str | None], *, is_usual: bool) -> bool:
    """Return whether a row is a heading, by the columns that its cells name.

    Words of a row may be names by chance. Then only one cell names a column, or two cells name the
    same one, such as `form` and `forms` in a table of English.

    Args:
        own: the column that each cell names in the task's heading; None: it names none.
        is_usual: whether the row is a heading by usual names.
    """
    named = [column for column in own if column not in (None, LEFT_OUT)]
    are_different = len(set(named)) == len(named)
    return are_different and (len(named) > 1 or is_usual)


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


def _says_which_is_source(
    task: StringTask, first: Sequence[str], columns: Sequence[str], own: Sequence[str | None]
) -> bool:
    """Return whether a heading says which column is the source.

    If training's names contradict the usual ones, only an own name says so, and there must be no
    usual name of source or target beside it.

    Args:
        task: task of the model.
        first: cells of the heading.
        columns: columns that the heading names.
        own: the same by the task's heading alone; None for others.
    """
    if _contradicts_usual_names(task):
        return SOURCE in own and not _has_usual_name_of_text(first, own)
    return SOURCE in columns


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
