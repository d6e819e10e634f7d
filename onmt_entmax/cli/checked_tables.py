"""Read all tables of `predict` once before anything is predicted.

A prediction may take hours: rows that cannot be read, and columns that were not meant, are told
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
from onmt_entmax.cli.predicted_tables import PredictedTable, rows_and_bad_rows
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import is_stream, make_parent, replaced_when_done
from onmt_entmax.strings.column_names import may_name_source
from onmt_entmax.strings.tables import BadRow, Layout, Row
from onmt_entmax.transducer import Transducer


@dataclass(frozen=True)
class CheckedTable(PredictedTable):
    """A table that was read once.

    Attributes:
        rows: that can be read.
        digest: of its rows, and of the reasons why others cannot be read: an interrupted prediction
            is continued only if it is the same.
    """

    rows: int
    digest: str


def check_tables(
    tables: Sequence[PredictedTable], transducer: Transducer, skip: Path | None
) -> list[CheckedTable]:
    """Read all tables once, and tell how they are read, and which rows cannot be.

    Args:
        tables: with layout and language.
        transducer: must be able to answer each row.
        skip: receives the rows that cannot be read; None: they are an error.

    Raises:
        UserError: rows cannot be read, or there are none; or the folder of an output cannot be
            created.
    """
    with ExitStack() as stack:
        bad_rows: TextIO | None = None
        if skip is not None:
            (bad_rows,) = stack.enter_context(replaced_when_done([skip]))
        reading = _Reading(transducer, bad_rows)
        checked = [reading.read(table) for table in tables]
        warn(*reading.warnings)
        if reading.bad:
            _tell_bad_rows(reading, skip)
        for table in tables:  # in the block: if an output cannot be written, neither are bad rows
            if table.output is not None and not is_stream(table.output):
                make_parent(table.output)
    note(*reading.layout_notes())
    return checked


class _LayoutNote(NamedTuple):
    """How one table is read."""

    table: str
    text: str


class _Reading:
    """Reads tables once, and collects what is told of all together.

    Args:
        transducer: must be able to answer each row.
        bad_rows: file that receives the rows that cannot be read, or None.

    Attributes:
        warnings: of rows; they are shown later, below the progress.
        bad: number of rows that cannot be read.
        total: number of all rows.
    """

    def __init__(self, transducer: Transducer, bad_rows: TextIO | None) -> None:
        self._transducer, self._bad_rows = transducer, bad_rows
        self.warnings: list[str] = []
        self.bad = 0
        self.total = 0
        # By layout, and whether there are targets, which are replaced: such tables are told of
        # together, whatever their targets.
        self._notes: dict[tuple[Layout, bool], list[_LayoutNote]] = {}

    def read(self, table: PredictedTable) -> CheckedTable:
        """Return a table with its number of rows and their digest.

        Raises:
            UserError: it has no rows.
        """
        digest = hashlib.sha256()
        rows, bad = 0, 0
        first_target = ""
        read = rows_and_bad_rows(table, self._transducer)
        for row in tqdm(read, "reading", unit="row", leave=False, delay=1, disable=None):
            digest.update(_content(row))
            if isinstance(row, BadRow):
                bad += 1
                self._add_bad(table, row)
                continue
            if rows == 0 and not table.layout.heading and may_name_source(row.query.source):
                self.warnings.append(
                    f"{table.name}:{row.number}: {row.query.source!r} may be a heading; "
                    "it is read as a row"
                )
            rows += 1
            first_target = first_target or row.target
        if not rows and not bad:
            raise UserError(f"{table.name}: no rows")
        self.total += rows + bad
        self._add_layout(table, first_target)
        return CheckedTable(
            path=table.path,
            name=table.name,
            output=table.output,
            layout=table.layout,
            language=table.language,
            rows=rows,
            digest=digest.hexdigest(),
        )

    def _add_bad(self, table: PredictedTable, row: BadRow) -> None:
        """Count a row that cannot be read; name the first ones."""
        self.bad += 1
        if self.bad <= LISTED:
            self.warnings.append(bad_row_text(table.name, row))
        if self._bad_rows is not None:
            self._bad_rows.write(bad_row_line(table.name, row))

    def _add_layout(self, table: PredictedTable, target: str) -> None:
        """Keep how a table was read; `target` is its first one, empty if it has none."""
        text = str(table.layout)
        if target:  # it may be another column that was meant
            text += f"; targets, such as {target!r}, are replaced"
        note_of_table = _LayoutNote(table.name, text)
        self._notes.setdefault((table.layout, bool(target)), []).append(note_of_table)

    def layout_notes(self) -> Iterator[str]:
        """Yield for each layout its first table, and how it was read."""
        for first, *others in self._notes.values():
            more = f" and {counted(len(others), 'table')} more" if others else ""
            yield f"{first.table}{more}: {first.text}"


def _content(row: Row | BadRow) -> bytes:
    """Return everything that a row says, for a digest."""
    if isinstance(row, BadRow):
        text = repr((row.number, row.reason, row.line))
    else:
        text = repr((row.number, row.query, row.target)) + repr(row.cells)
    return text.encode("utf-8", "surrogatepass")


def _tell_bad_rows(reading: _Reading, skip: Path | None) -> None:
    """Say how many rows cannot be read.

    Args:
        reading: has read all tables, some of whose rows are bad.
        skip: the file that receives these rows; None: they are an error.

    Raises:
        UserError: `skip` is None.
    """
    summary = bad_rows_summary(reading.bad, reading.total)
    if skip is None:
        raise UserError(f"{summary}; mend them, or --skip-bad FILE leaves them out")
    warn(f"{summary}; {skip} has them, with their reasons")
