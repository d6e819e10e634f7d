"""Texts about rows that cannot be read, which `prepare`, `audit` and `predict` share.

They name the first such rows, and say how many there are.
"""

from pathlib import Path

from onmt_entmax.errors import counted
from onmt_entmax.strings.tables import BadRow

LISTED = 10
"""Bad rows that are named; more would push other messages off the screen"""


def bad_row_text(table: Path | str, row: BadRow) -> str:
    """Return the place of a bad row, and why it cannot be read: `a.tsv:3: no target`.

    Args:
        table: path of the table, or its name in messages.
        row: the row.
    """
    return f"{table}:{row.number}: {row.reason}"


def bad_row_line(table: Path | str, row: BadRow) -> str:
    """Return the line of a bad row in the file of `--skip-bad`: its place, the reason and the row.

    Args:
        table: path of the table, or its name in messages.
        row: the row.
    """
    return f"{table}:{row.number}\t{row.reason}\t{row.line}\n"


def bad_rows_summary(bad: int, rows: int) -> str:
    """Return how many of all rows cannot be read, and whether only the first ones were named."""
    more = f", the first {LISTED} above" if bad > LISTED else ""
    return f"{bad:,} of {counted(rows, 'row')} cannot be read{more}"
