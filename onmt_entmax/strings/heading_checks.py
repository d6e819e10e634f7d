"""Find rows that look like headings, and are read as rows.

The first row may be a heading that `headings` did not recognise. Tables that were joined have one
in the middle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onmt_entmax.strings.character_checks import share
from onmt_entmax.strings.column_names import (
    column_of,
    columns_by_names,
    may_name_source,
    stands_below,
)
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import StringTask

_LONGEST_PHONE = 3  # characters; a longer symbol is no phone


def likely_headings(rows: Sequence[Row], task: StringTask) -> Iterator[str]:
    """Yield a sentence on the rows that look like headings, if there are any."""
    headings = heading_rows(rows, task)
    if headings:
        cells = ", ".join(map(repr, headings[0].cells))
        yield f"rows that may be headings: {share(headings, rows)}, {cells}; they are read as rows"


def heading_rows(rows: Sequence[Row], task: StringTask) -> list[Row]:
    """Return the rows that look like headings."""
    headings = [
        row for row in rows[:1] if _names_columns(row) or _differs_as_a_heading_does(rows, task)
    ]
    headings += filter(_names_columns, rows[1:])
    return headings


def _names_columns(row: Row) -> bool:
    """Return whether the cells of a row name columns.

    The first line does not count: the reader of the table has decided that it is no heading.
    """
    return row.number > 1 and bool(columns_by_names(row.cells))


def _differs_as_a_heading_does(rows: Sequence[Row], task: StringTask) -> bool:
    """Return whether the first row differs from the others as a heading does."""
    return _is_word_above_phones(rows, task) or _names_one_column(rows, task)


def _is_word_above_phones(rows: Sequence[Row], task: StringTask) -> bool:
    """Return whether the first target is one long symbol of its own, such as `Aussprache`."""
    first, *others = rows
    if not others or task.target.kind != "symbols" or len(first.target) <= _LONGEST_PHONE:
        return False
    is_one_symbol = len(task.target.split(first.target)) == 1
    return is_one_symbol and all(
        first.target not in task.target.split(row.target) for row in others
    )


def _names_one_column(rows: Sequence[Row], task: StringTask) -> bool:
    """Return whether only the first row has a name of a column, such as `IPA`.

    In a table with tags, the tags have already shown whether the first row is a heading.
    """
    first, *others = rows
    if not others or task.has_tags:
        return False
    cells_below = [row.cells for row in others]
    return any(
        (column_of(cell) is not None or may_name_source(cell))
        and not stands_below(cell, position, cells_below)
        for position, cell in enumerate(first.cells)
    )
