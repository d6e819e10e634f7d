"""Find the layout of a table by its first rows: its delimiter, its columns and its heading."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import takewhile

from onmt_entmax.errors import counted
from onmt_entmax.strings.column_names import column_of, named_columns
from onmt_entmax.strings.delimiters import guess_delimiter
from onmt_entmax.strings.guessed_columns import guess_columns
from onmt_entmax.strings.headings import is_heading
from onmt_entmax.strings.own_headings import columns_by_own_heading, has_names_of
from onmt_entmax.strings.tables import (
    ColumnsError,
    Layout,
    TableError,
    readable_cells,
    width_of,
)
from onmt_entmax.strings.task import LEFT_OUT, SOURCE, TAGS, TARGET, StringTask
from onmt_entmax.strings.task_columns import columns_for_task, columns_without

SAMPLE = 2000
"""Number of first rows that callers pass to `guess_layout`"""


def guess_layout(
    sample: Sequence[str],
    name: str,
    columns: Sequence[str] = (),
    *,
    task: StringTask | None = None,
    fallback: Sequence[str] = (),
) -> Layout:
    """Return the layout of a table.

    The columns come from the first of these that applies:

    1. `columns`;
    2. with a task, a heading that names the columns that the task needs, or else the task;
    3. a heading;
    4. a guess: source and target if there are two, else by the column that looks like tags;
    5. `fallback`.

    A task may have a heading of its own, whose names count before usual ones (`own_headings.py`).

    Args:
        sample: first lines of the table, such as `SAMPLE` of them.
        name: name of the file, for errors.
        columns: columns that the user names, in the table's order; empty: see above.
        task: task of a model, whose columns the table has; the target may be missing.
        fallback: columns to assume if a guess is unclear and the table has as many.

    Raises:
        TableError: the columns are unclear, or the table is empty.
    """
    lines = [line for line in sample if line.strip()]
    _refuse_no_lines(lines, name)
    known = columns or (task.columns if task else ())
    delimiter = guess_delimiter(lines, tags_first=columns_without(known, TARGET)[:1] == (TAGS,))
    table = readable_cells(Layout((), delimiter), lines)
    if not table:
        raise TableError(f"{name}: no tabs, and no row of a CSV file")
    first, below = table[0], table[1:]
    named = named_columns(first, below)
    if columns:
        _refuse_other_width(table, columns, name)
    elif task is not None:
        named = columns_by_own_heading(task, first, below, usual=named, name=name) or named
    chosen = tuple(columns) or _unnamed_columns(
        table, named, task=task, name=name, fallback=fallback
    )
    source_name = "" if task is None else task.heading_of(SOURCE)
    has_heading = bool(named) or is_heading(first, below, chosen, source_name=source_name)
    if task is not None and columns:  # the user's columns, below the names of training
        has_heading = has_heading or has_names_of(task.heading, first)
    if has_heading and not named and not columns:
        _refuse_contradicting_names(first, chosen, name)
    is_guess = not columns and task is None and not named
    return Layout(chosen, delimiter, heading=first if has_heading else (), guessed=is_guess)


def _unnamed_columns(
    table: Sequence[Sequence[str]],
    named: tuple[str, ...],
    *,
    task: StringTask | None,
    name: str,
    fallback: Sequence[str],
) -> tuple[str, ...]:
    """Return the columns of a table that the user has not named: by its task, heading or a guess.

    Args:
        table: cells of the rows.
        named: columns that the first row names; empty if it names none.
        task: task of a model; None: there is no model.
        name: name of the file, for errors.
        fallback: see `guess_layout`.

    Raises:
        TableError: the columns are unclear.
    """
    if task is not None:
        return _without_empty_columns(
            table, lambda rows: columns_for_task(task, rows, named, name=name)
        )
    if named:
        return named
    # The first row may be a heading in another language, which must not decide the guess.
    return _without_empty_columns(
        table, lambda rows: guess_columns(rows[1:] or rows, name, fallback)
    )


def _refuse_contradicting_names(first: Sequence[str], columns: Sequence[str], name: str) -> None:
    """Refuse a heading that names too few columns to be read by, but contradicts those found.

    Two names are no contradiction: a second name of a column, such as `IPA` beside `Form`, and one
    above a column that is left out, such as `Source` above the origin of a row.

    Raises:
        ColumnsError: a usual name, such as `Form` in `Form`, `Wort`, `Tags`, is above another
            column.
    """
    names = [column_of(cell) for cell in first]
    explained = {column for column, named in zip(columns, names, strict=False) if named == column}
    for cell, column, named in zip(first, columns, names, strict=False):
        if named in columns and named not in (column, *explained) and column != LEFT_OUT:
            raise ColumnsError(
                f"{name}: its columns seem to be {', '.join(columns)}, but {cell!r} of the heading "
                f"{' | '.join(first)!r} names the {named}"
            )


def _refuse_no_lines(lines: Sequence[str], name: str) -> None:
    """Refuse a table without lines, or with line ends of old Macs, which make it a single line.

    Raises:
        TableError: names the file.
    """
    if not lines:
        raise TableError(f"{name}: no rows")
    if len(lines) == 1 and "\r" in lines[0]:
        raise TableError(
            f"{name}: its lines end with CR alone, as on old Macs; save it with LF or CR LF"
        )


def _without_empty_columns(
    table: Sequence[Sequence[str]],
    columns_of: Callable[[Sequence[Sequence[str]]], tuple[str, ...]],
) -> tuple[str, ...]:
    """Return the columns of a table; if they are unclear, try it without empty last columns.

    Args:
        table: rows of the table.
        columns_of: returns the columns of a table, or raises TableError if they are unclear.

    Raises:
        TableError: the columns are unclear.
    """
    try:
        return columns_of(table)
    except TableError as error:
        width = width_of(table)
        rows = [cells for cells in table if len(cells) == width]
        for left_out in range(1, 1 + _number_of_empty_columns(rows)):
            with suppress(TableError):
                columns = columns_of([cells[:-left_out] for cells in rows])
                return (*columns, *[LEFT_OUT] * left_out)
        raise error from None


def _number_of_empty_columns(rows: Sequence[Sequence[str]]) -> int:
    """Return how many last columns of rows have no text; the first column is not counted."""
    columns = [*zip(*rows, strict=True)][1:]
    return sum(1 for _ in takewhile(lambda column: not any(column), reversed(columns)))


def _refuse_other_width(table: Sequence[Sequence[str]], columns: Sequence[str], name: str) -> None:
    """Refuse columns that the user named if no row has as many.

    Raises:
        TableError: says how many columns the table has.
    """
    if any(len(cells) == len(columns) for cells in table):
        return
    raise TableError(
        f"{name}: {counted(width_of(table), 'column')}, such as {' | '.join(table[0])!r}; "
        f"--columns names {len(columns)}: {', '.join(columns)}"
    )
