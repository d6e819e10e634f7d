"""Texts about rows that cannot be read, which `prepare`, `audit` and `predict` share.

They name the first such rows, and say how many there are.
"""

from onmt_entmax.errors import counted
from onmt_entmax.strings.tables import BadRow

LISTED = 10  # bad rows that are named


def bad_row_text(table: object, row: BadRow) -> str:
    """Return where a bad row stands, and why it cannot be read."""
    return f"{table}:{row.number}: {row.reason}"


def bad_row_line(table: object, row: BadRow) -> str:
    """Return the line of a bad row in the file of `--skip-bad`."""
    return f"{table}:{row.number}\t{row.reason}\t{row.line}\n"


def bad_rows_summary(bad: int, rows: int) -> str:
    """Return how many of all rows cannot be read, and whether only the first ones were named."""
    more = f", the first {LISTED} above" if bad > LISTED else ""
    return f"{bad:,} of {counted(rows, 'row')} cannot be read{more}"
