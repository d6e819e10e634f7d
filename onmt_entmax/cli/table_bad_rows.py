"""Refuse tables with rows that cannot be read, or leave these rows out and write them to a file.

In both cases, warnings name the first such rows. `bad_rows` has the texts, which `predict` shares.
"""

from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.bad_rows import LISTED, bad_row_line, bad_row_text, bad_rows_summary
from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.tables import Table
from onmt_entmax.errors import UserError
from onmt_entmax.strings.tables import BadRow


def refuse_bad_rows(tables: Sequence[Table], hint: str = "") -> None:
    """Refuse tables with rows that cannot be read.

    Args:
        tables: tables that were read.
        hint: end of the error, which says how to go on without these rows.

    Raises:
        UserError: there are such rows.
    """
    if summary := _warn_of_first(tables):
        raise UserError(f"{summary}; mend them{hint}")


def warn_of_bad_rows(tables: Sequence[Table], written: Path) -> None:
    """Warn of rows that cannot be read; name the file to which they are written."""
    if summary := _warn_of_first(tables):
        warn(f"{summary}; {written} has them, with their reasons")


def bad_rows_text(tables: Sequence[Table]) -> str:
    """Return the text of the file of bad rows: one line for each row, with the reason."""
    return "".join(bad_row_line(path, row) for path, row in _bad_rows(tables))


def _warn_of_first(tables: Sequence[Table]) -> str:
    """Warn of the first bad rows; return a text that says how many there are, empty if none."""
    bad_rows = _bad_rows(tables)
    if not bad_rows:
        return ""
    warn(*(bad_row_text(path, row) for path, row in bad_rows[:LISTED]))
    good = sum(len(table.rows) for table in tables)
    return bad_rows_summary(len(bad_rows), len(bad_rows) + good)


def _bad_rows(tables: Sequence[Table]) -> list[tuple[Path, BadRow]]:
    """Return the bad rows of all tables, each with the path of its table."""
    return [(table.path, row) for table in tables for row in table.bad_rows]
