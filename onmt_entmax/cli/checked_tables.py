"""Read all tables of `predict` once before anything is predicted.

A prediction may take hours. Before it begins, rows that cannot be read, and columns that the user
may not have meant, are reported for all tables together.
"""

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tqdm import tqdm

from onmt_entmax.cli.messages import note, warn
from onmt_entmax.cli.query_tables import QueryTable, rows_and_bad_rows
from onmt_entmax.cli.table_findings import TableFindings
from onmt_entmax.errors import UserError
from onmt_entmax.files import is_stream, make_parent, replaced_when_done
from onmt_entmax.strings.cells import Combinations
from onmt_entmax.strings.tables import BadRow, Row
from onmt_entmax.transducer import Transducer


@dataclass(frozen=True)
class CheckedTable(QueryTable):
    """A table that was read once.

    Attributes:
        rows: number of rows that can be read; 0 is possible with `--skip-bad`.
        digest: digest of all rows and, for rows that cannot be read, of the reason. An interrupted
            prediction is continued only if the digest is the same.
    """

    rows: int
    digest: str


def check_tables(
    tables: Sequence[QueryTable], transducer: Transducer, bad_rows_file: Path | None
) -> list[CheckedTable]:
    """Read all tables once; report their columns, and the rows that cannot be read.

    Also create the folders of the outputs, so that errors about them come before the prediction.

    Args:
        tables: tables with their layouts and languages.
        transducer: the models, which must be able to answer each row.
        bad_rows_file: receives the rows that cannot be read; None: they are an error. It is written
            only if there is no error.

    Raises:
        UserError: rows cannot be read, a table has no rows, or the folder of an output cannot be
            created.
    """
    with ExitStack() as stack:
        bad_rows: TextIO | None = None
        if bad_rows_file is not None:
            (bad_rows,) = stack.enter_context(replaced_when_done([bad_rows_file]))
        combinations = Combinations(transducer.cells)
        findings = TableFindings(bad_rows, transducer.analogies, combinations)
        checked = [_checked(table, transducer, findings) for table in tables]
        warn(*findings.warnings)
        unreadable = findings.bad_rows_summary()
        if unreadable and bad_rows_file is None:
            raise UserError(f"{unreadable}; mend them, or --skip-bad FILE leaves them out")
        # Within the block, since an error here must leave the file of bad rows unwritten.
        _make_folders(tables)
    if unreadable:
        warn(f"{unreadable}; {bad_rows_file} has them, with their reasons")
    note(*findings.layout_notes())
    note(*filter(None, [findings.combinations_note(), findings.analogies_note()]))
    return checked


def _make_folders(tables: Sequence[QueryTable]) -> None:
    """Create the folders of outputs.

    Raises:
        UserError: one cannot be created.
    """
    for table in tables:
        if table.output is not None and not is_stream(table.output):
            make_parent(table.output)


def _checked(table: QueryTable, transducer: Transducer, findings: TableFindings) -> CheckedTable:
    """Read a table; return it with its number of rows and their digest.

    Args:
        table: table to read.
        transducer: the models, which must be able to answer each row.
        findings: collects the messages about its rows and its layout.

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
    return CheckedTable(
        path=table.path,
        name=table.name,
        output=table.output,
        layout=table.layout,
        language=table.language,
        rows=rows,
        digest=digest.hexdigest(),
    )


def _content(row: Row | BadRow) -> bytes:
    """Return the content of a row, for a digest.

    `repr` of strings and numbers is the same in each process, and quotes keep neighbouring strings
    apart, so rows of different content have different bytes.
    """
    if isinstance(row, BadRow):
        text = repr((row.number, row.reason, row.line))
    else:
        text = repr((row.number, row.query, row.target)) + repr(row.cells)
    return text.encode("utf-8", "surrogatepass")
