"""Recognise a heading without usual names by the other tables, which begin with the same cells.

`Wort` and `Aussprache` above the words of both training and development set are a heading, although
no name is usual and no tags stand below.
"""

from collections.abc import Sequence

from onmt_entmax.strings.delimiters import guess_delimiter
from onmt_entmax.strings.tables import Layout, readable_cells
from onmt_entmax.strings.task import TAGS, TARGET


def shared_heading(
    layout: Layout, lines: Sequence[str], other_tables: Sequence[Sequence[str]]
) -> tuple[str, ...]:
    """Return the first row of a table if all other tables begin with its cells; else nothing.

    The cells may be in another order, and targets may be missing from other tables. There is no
    such heading for a table with tags or without targets.

    Args:
        layout: layout of the table, without a heading.
        lines: first lines of the table.
        other_tables: first lines of the other tables.
    """
    if TAGS in layout.columns or TARGET not in layout.columns or not other_tables:
        return ()
    heading, *rows = _rows(lines) or [()]
    if len(heading) != len(layout.columns) or len({*heading}) < len(heading):
        return ()
    target = layout.columns.index(TARGET)
    # Sorted, since columns may be in another order; also without targets, which may be missing.
    headings = [sorted(heading), sorted(_without(heading, target))]
    known = {tuple(sorted(cells)) for row in rows for cells in (row, _without(row, target))}
    for other_lines in other_tables:
        first, *below = _rows(other_lines) or [()]
        if sorted(first) not in headings or not _are_other_rows(below, known):
            return ()
    return heading


def _are_other_rows(rows: Sequence[Sequence[str]], known: set[tuple[str, ...]]) -> bool:
    """Return whether rows are other ones than those of the first table.

    Tables that have a tenth of their rows in common may share the first one in the same way, as an
    ordinary row. A single row cannot show how many are in common.

    Args:
        rows: the rows of another table below its first one.
        known: the sorted cells of those of the first table.
    """
    common = sum(tuple(sorted(row)) in known for row in rows)
    return len(rows) > 1 and 10 * common < len(rows)


def _without(row: tuple[str, ...], position: int) -> tuple[str, ...]:
    """Return the cells of a row without the one at a position."""
    return row[:position] + row[position + 1 :]


def _rows(lines: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the cells of the rows of a table without blank lines."""
    filled = [line for line in lines if line.strip()]
    return readable_cells(Layout((), guess_delimiter(filled)), filled)
