"""Read all tables of `predict` once before anything is predicted.

A prediction may take hours: rows that cannot be read, and columns that were not meant, are reported
first, for all tables together.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TextIO

from tqdm import tqdm

from onmt_entmax.cli.bad_rows import LISTED, bad_row_line, bad_row_text, bad_rows_summary
from onmt_entmax.cli.messages import note, warn
from onmt_entmax.cli.query_tables import QueryTable, rows_and_bad_rows
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import is_stream, make_parent, replaced_when_done
from onmt_entmax.strings.column_names import may_name_source
from onmt_entmax.strings.tables import BadRow, Layout, Row
from onmt_entmax.transducer import Transducer


@dataclass(frozen=True)
class CheckedTable(QueryTable):
    """A table that was read once.

    Attributes:
        rows: number of rows that can be read; 0 is possible with `--skip-bad`.
        digest: of its rows, and of the reasons why others cannot be read: an interrupted prediction
            is continued only if it is the same.
    """

    rows: int
    digest: str


def check_tables(
    tables: Sequence[QueryTable], transducer: Transducer, skip: Path | None
) -> list[CheckedTable]:
    """Read all tables once; report how they are read, and which rows cannot be.

    Args:
        tables: with layout and language.
        transducer: must be able to answer each row.
        skip: receives the rows that cannot be read; None: they are an error.

    Raises:
        UserError: rows cannot be read, or a table has none; or the folder of an output cannot be
            created.
    """
    with ExitStack() as stack:
        bad_rows: TextIO | None = None
        if skip is not None:
            (bad_rows,) = stack.enter_context(replaced_when_done([skip]))
        findings = _Findings(bad_rows)
        checked = [_checked(table, transducer, findings) for table in tables]
        # Only now, since progress is shown while tables are read.
        warn(*findings.warnings)
        if findings.bad and skip is None:
            summary = bad_rows_summary(findings.bad, findings.total)
            raise UserError(f"{summary}; mend them, or --skip-bad FILE leaves them out")
        for table in tables:  # in the block: if an output cannot be written, neither are bad rows
            if table.output is not None and not is_stream(table.output):
                make_parent(table.output)
    if findings.bad:
        summary = bad_rows_summary(findings.bad, findings.total)
        warn(f"{summary}; {skip} has them, with their reasons")
    note(*findings.layout_notes())
    return checked


class _LayoutNote(NamedTuple):
    """How one table is read, for people."""

    table: str
    text: str


class _Findings:
    """What is reported of all tables together, after they are read.

    Args:
        bad_rows: file that receives the rows that cannot be read, or None.

    Attributes:
        warnings: on rows.
        bad: number of rows that cannot be read.
        total: number of all rows.
    """

    def __init__(self, bad_rows: TextIO | None) -> None:
        self._bad_rows = bad_rows
        self.warnings: list[str] = []
        self.bad = 0
        self.total = 0
        # By layout, and whether there are targets, which will be replaced: one note is enough for
        # all such tables.
        self._layouts: dict[tuple[Layout, bool], list[_LayoutNote]] = {}

    def add_bad_row(self, table: QueryTable, row: BadRow) -> None:
        """Count a row that cannot be read, and write it; warn of the first ones."""
        self.total += 1
        self.bad += 1
        if self.bad <= LISTED:
            self.warnings.append(bad_row_text(table.name, row))
        if self._bad_rows is not None:
            self._bad_rows.write(bad_row_line(table.name, row))

    def add_row(self, table: QueryTable, row: Row, *, first: bool) -> None:
        """Count a row; warn if it is the first of its table, and may be a heading."""
        self.total += 1
        if first and not table.layout.heading and may_name_source(row.query.source):
            self.warnings.append(
                f"{table.name}:{row.number}: {row.query.source!r} may be a heading; "
                "it is read as a row"
            )

    def add_layout(self, table: QueryTable, first_target: str) -> None:
        """Keep how a table is read; `first_target` is empty if it has no targets."""
        text = str(table.layout)
        if first_target:  # another column may have been meant
            text += f"; targets, such as {first_target!r}, are replaced"
        key = (table.layout, bool(first_target))
        self._layouts.setdefault(key, []).append(_LayoutNote(table.name, text))

    def layout_notes(self) -> Iterator[str]:
        """Yield for each layout its first table, and how it is read."""
        for first, *others in self._layouts.values():
            more = f" and {counted(len(others), 'table')} more" if others else ""
            yield f"{first.table}{more}: {first.text}"


def _checked(table: QueryTable, transducer: Transducer, findings: _Findings) -> CheckedTable:
    """Read a table; return it with its number of rows and their digest.

    Args:
        table: to read.
        transducer: must be able to answer each row.
        findings: receive what is reported.

    Raises:
        UserError: it has no rows, not even bad ones.
    """
    digest = hashlib.sha256()
    rows, bad = 0, 0
    first_target = ""
    read = rows_and_bad_rows(table, transducer)
    for row in tqdm(read, "reading", unit="row", leave=False, delay=1, disable=None):
        digest.update(_content(row))
        if isinstance(row, BadRow):
            bad += 1
            findings.add_bad_row(table, row)
        else:
            rows += 1
            findings.add_row(table, row, first=rows == 1)
            first_target = first_target or row.target
    if not rows and not bad:
        raise UserError(f"{table.name}: no rows")
    findings.add_layout(table, first_target)
    return CheckedTable(**vars(table), rows=rows, digest=digest.hexdigest())


def _content(row: Row | BadRow) -> bytes:
    """Return everything that a row says, for a digest."""
    if isinstance(row, BadRow):
        text = repr((row.number, row.reason, row.line))
    else:
        text = repr((row.number, row.query, row.target)) + repr(row.cells)
    return text.encode("utf-8", "surrogatepass")
