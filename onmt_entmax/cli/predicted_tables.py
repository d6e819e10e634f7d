"""The tables that `predict` reads: their layouts and languages, and their rows, checked."""

import hashlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TextIO

from tqdm import tqdm

from onmt_entmax.cli.ending import note, warn
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import is_stream, read_lines, replaced_when_done
from onmt_entmax.strings.guessing import (
    SAMPLE,
    guess_delimiter,
    guess_layout,
    may_be_heading,
    refuse_misplaced_tags,
)
from onmt_entmax.strings.languages import language_of_file
from onmt_entmax.strings.tables import BadRow, Layout, Row, rows_of
from onmt_entmax.strings.task import LANGUAGE_COLUMN, LEFT_OUT, TAGS, StringTask
from onmt_entmax.transducer import Transducer, TransducerError

STDIN = Path("-")
_STDIN_NAME = "standard input"
_LISTED = 10  # bad rows that are named


@dataclass(frozen=True)
class PredictedTable:
    """A table to predict.

    Attributes:
        path: where it is read.
        name: for people.
        output: None: the standard output.
        layout: of its columns.
        language: of all rows, if no column has it.
        rows: that can be read.
        digest: of what was read of its lines, and of the reasons why others could not be.
    """

    path: Path
    name: str
    output: Path | None
    layout: Layout = field(default_factory=lambda: Layout(()))
    language: str = ""
    rows: int = 0
    digest: str = ""


def tables_of(paths: Sequence[Path], output: Path | None, spooled: Path) -> list[PredictedTable]:
    """Return the tables, each with its output.

    Args:
        paths: of the tables.
        output: a file, or a folder.
        spooled: where the standard input is kept, which is read twice.

    Raises:
        UserError: tables have one name, or several have no folder.
    """
    if output is None and len(paths) > 1:
        raise UserError("several tables need --output, a folder")
    into_folder = output is not None and (len(paths) > 1 or output.is_dir())
    if into_folder and output is not None and output.exists() and not output.is_dir():
        raise UserError(f"--output {output}: is a file, and several tables need a folder")
    spooled_name = _spool_stdin(spooled) if STDIN in paths else ""
    names = [spooled_name if path == STDIN else path.name for path in paths]
    if into_folder and output is not None:
        _refuse_equal_names(paths, names, output)
    tables = []
    for path, name in zip(paths, names, strict=True):
        if path != STDIN and is_stream(path):
            raise UserError(f"{path}: is a pipe or a device, but is read more than once; give -")
        written = output / name if into_folder and output is not None else output
        if path == STDIN:
            tables.append(PredictedTable(spooled, _STDIN_NAME, written))
        else:
            tables.append(PredictedTable(path, str(path), written))
    return tables


def _spool_stdin(spooled: Path) -> str:
    """Keep the standard input in a file; return the name of its output in a folder."""
    with open(spooled, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    sample = [line for line in islice(read_lines(spooled, _STDIN_NAME), SAMPLE) if line.strip()]
    return "stdin.csv" if sample and guess_delimiter(sample) == "," else "stdin.tsv"


def _refuse_equal_names(paths: Sequence[Path], names: Sequence[str], folder: Path) -> None:
    """Refuse tables that would be written to one file of a folder.

    Raises:
        UserError: names the first such tables.
    """
    by_name: dict[str, list[str]] = {}
    for path, name in zip(paths, names, strict=True):
        by_name.setdefault(name, []).append(str(path))
    for name, equal in by_name.items():
        if len(equal) > 1:
            raise UserError(
                f"{' and '.join(equal)} would both be written to {folder}/{name}; predict them "
                "apart, into different folders"
            )


def with_layout(
    table: PredictedTable, transducer: Transducer, columns: Sequence[str], language: str | None
) -> PredictedTable:
    """Return a table with its layout and language.

    Args:
        table: to predict.
        transducer: of the models, whose task has columns.
        columns: that the user named; empty: those of the task, or of the heading.
        language: that the user named.

    Raises:
        UserError: its columns are unclear, or the models do not know its language.
    """
    task = transducer.task
    sample = list(islice(read_lines(table.path, table.name), SAMPLE))
    layout = guess_layout(sample, table.name, columns, task)
    if not columns:
        refuse_misplaced_tags(sample, layout, task, {*transducer.tags}, table.name)
    layout = _without_unread(layout, task, table.name)
    if task.has_tags and TAGS not in layout.columns:
        warn(f"{table.name}: has no tags, which the model reads")
    if LANGUAGE_COLUMN in layout.columns:
        if language is not None:
            raise UserError(f"{table.name}: has a column of languages; leave --language out")
        return replace(table, layout=layout)
    return replace(table, layout=layout, language=_language_of(table, transducer, language))


def _without_unread(layout: Layout, task: StringTask, name: str) -> Layout:
    """Return a layout without the columns that the model does not read, which are told."""
    unread = {
        column
        for column, is_read in ((TAGS, task.has_tags), (LANGUAGE_COLUMN, task.languages))
        if column in layout.columns and not is_read
    }
    if not unread:
        return layout
    note(f"{name}: the model reads no {' and no '.join(sorted(unread))}; left out")
    kept = tuple(LEFT_OUT if column in unread else column for column in layout.columns)
    return replace(layout, columns=kept)


def _language_of(table: PredictedTable, transducer: Transducer, language: str | None) -> str:
    """Return the language of a table as the models name it: that of --language, or of its name.

    Raises:
        UserError: the models do not know it.
    """
    named = language
    if named is None and transducer.task.languages and table.name != _STDIN_NAME:
        named = language_of_file(table.path.name)
    try:
        known = transducer.known_language(named or "")
    except TransducerError as error:
        hint = "" if language else "; --language names that of the table"
        raise UserError(f"{table.name}: {error}{hint}") from None
    if known and not named:
        note(f"{table.name}: language {known}, the only one of the model")
    return known


def readable_rows(table: PredictedTable, transducer: Transducer) -> Iterator[Row | BadRow]:
    """Yield the rows of a table; those that the models cannot answer are bad ones."""
    lines = read_lines(table.path, table.name)
    for row in rows_of(lines, table.layout, transducer.task, table.language, needs=False):
        if isinstance(row, Row):
            try:
                row = row._replace(query=transducer.checked(row.query))
            except TransducerError as error:
                line = table.layout.text(row.cells)
                row = BadRow(row.number, str(error), line)
        yield row


def checked(
    tables: Sequence[PredictedTable], transducer: Transducer, skip: Path | None
) -> list[PredictedTable]:
    """Read all tables once; return them with their numbers of rows.

    Args:
        tables: with layout and language.
        transducer: must be able to answer each row.
        skip: receives the rows that cannot be read; None: they are an error.

    Raises:
        UserError: rows cannot be read, or there are none.
    """
    with ExitStack() as stack:
        file: TextIO | None = None
        if skip is not None:
            (file,) = stack.enter_context(replaced_when_done([skip]))
        reading = _Reading(transducer, file)
        tables = [reading.checked(table) for table in tables]
        warn(*reading.warnings)
        if reading.bad:
            more = f", the first {_LISTED} above" if reading.bad > _LISTED else ""
            number = f"{reading.bad:,} of {counted(reading.total, 'row')}"
            if skip is None:
                raise UserError(
                    f"{number} cannot be read{more}; mend them, or --skip-bad FILE leaves them out"
                )
            warn(f"{number} cannot be read{more}; {skip} has them, with their reasons")
    for text in reading.layout_notes():
        note(text)
    return list(tables)


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
        # Names of tables, and what is told of them. Tables of one layout are told together,
        # whatever their targets.
        self._layouts: dict[tuple[Layout, bool], list[tuple[str, str]]] = {}

    def checked(self, table: PredictedTable) -> PredictedTable:
        """Return a table with its number of rows and their digest.

        Raises:
            UserError: it has no rows.
        """
        digest, rows, replaced = hashlib.sha256(), 0, ""
        bad_before = self.bad
        read = readable_rows(table, self._transducer)
        for row in tqdm(read, "reading", unit="row", leave=False, delay=1, disable=None):
            digest.update(repr(row[:3]).encode("utf-8", "surrogatepass"))
            self.total += 1
            if isinstance(row, BadRow):
                self._add_bad(table, row)
                continue
            if rows == 0 and not table.layout.heading and may_be_heading(row.query.source):
                self.warnings.append(
                    f"{table.name}:{row.number}: {row.query.source!r} may be a heading; "
                    "it is read as a row"
                )
            digest.update(repr(row.cells).encode("utf-8", "surrogatepass"))
            rows += 1
            replaced = replaced or row.target
        if not rows and self.bad == bad_before:
            raise UserError(f"{table.name}: no rows")
        text = str(table.layout)
        if replaced:  # it may be another column that was meant
            text += f"; targets, such as {replaced!r}, are replaced"
        self._layouts.setdefault((table.layout, bool(replaced)), []).append((table.name, text))
        return replace(table, rows=rows, digest=digest.hexdigest())

    def _add_bad(self, table: PredictedTable, row: BadRow) -> None:
        self.bad += 1
        if self.bad <= _LISTED:
            self.warnings.append(f"{table.name}:{row.number}: {row.reason}")
        if self._bad_rows is not None:
            self._bad_rows.write(f"{table.name}:{row.number}\t{row.reason}\t{row.line}\n")

    def layout_notes(self) -> Iterator[str]:
        """Yield for each layout its first table, and how it was read."""
        for alike in self._layouts.values():
            (name, text), *others = alike
            more = f" and {counted(len(others), 'table')} more" if others else ""
            yield f"{name}{more}: {text}"
