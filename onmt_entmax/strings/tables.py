"""Read tables of strings: a source, a target and often tags and a language in each row.

A table is a text file with tabs, or commas or semicolons as in CSV files, between its columns. They
may be in any order: `Layout` says what they are, by the names that users give them or a guess
(`strings.guessing`). Rows that cannot be read become `BadRow`s, so that an error can name all.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from onmt_entmax.errors import UserError, counted
from onmt_entmax.strings.task import (
    LANGUAGE_COLUMN,
    LEFT_OUT,
    SOURCE,
    TAGS,
    TARGET,
    Query,
    StringTask,
)


class TableError(UserError):
    """A table that cannot be read; the message names the file."""


class ColumnsError(TableError):
    """A table of a model whose columns are unclear.

    Args:
        problem: what is unclear, beginning with the name of the file.
        option: what names the columns besides a heading.
    """

    def __init__(self, problem: str, option: str = ", or by --columns") -> None:
        super().__init__(
            f"{problem}; name the columns of this table in its first line, such as `source`, "
            f"`tags` and `target`{option}"
        )
        self.problem = problem


class Row(NamedTuple):
    """A row of a table.

    Attributes:
        number: number of its line in the file, from 1.
        query: source, tags and language.
        target: target; empty if the table has no targets.
        cells: the cells of all columns, as in the file.
    """

    number: int
    query: Query
    target: str
    cells: tuple[str, ...]


class BadRow(NamedTuple):
    """A row that cannot be read.

    Attributes:
        number: number of its line in the file, from 1.
        reason: why it cannot be read; if one column is the reason, its name comes first.
        line: the line.
    """

    number: int
    reason: str
    line: str


@dataclass(frozen=True)
class Layout:
    """The columns of a table.

    Attributes:
        columns: columns by the names of `StringTask`; the target may be missing.
        delimiter: sign between columns: a tab, or, as in CSV files, a comma or a semicolon.
        heading: the cells of the first line if it is a heading; else empty.
        guessed: whether the columns were guessed.
    """

    columns: tuple[str, ...]
    delimiter: str = "\t"
    heading: tuple[str, ...] = ()
    guessed: bool = False

    @property
    def cells_above(self) -> tuple[str, ...]:
        """The cell of the heading above each column; empty if there are more or fewer cells."""
        return self.heading if len(self.heading) == len(self.columns) else ()

    def __str__(self) -> str:
        between = {"\t": "tabs", ",": "commas", ";": "semicolons"}[self.delimiter]
        first = f"; heading {self.delimiter.join(self.heading)!r} left out" if self.heading else ""
        guess = " (guessed; --columns names them)" if self.guessed else ""
        return f"columns {', '.join(self.columns)} between {between}{guess}{first}"

    def cells(self, line: str) -> tuple[str, ...]:
        """Return the columns of a line.

        Raises:
            csv.Error: if it is no row of a CSV file.
        """
        if self.delimiter == "\t":
            return tuple(line.split("\t"))
        return tuple(next(csv.reader([line], delimiter=self.delimiter, strict=True), ()))

    def row(
        self,
        number: int,
        line: str,
        task: StringTask,
        *,
        language: str = "",
        needs_target: bool = True,
    ) -> Row | BadRow:
        """Return the row of a line, or say why it cannot be read.

        Args:
            number: number of the line, from 1.
            line: line of the file.
            task: task with the units of the columns.
            language: language of the file, if the table has no column of languages.
            needs_target: whether a row without a target is a bad one.
        """
        try:
            cells = self.cells(line)
        except csv.Error as error:
            return BadRow(number, f"no row of a CSV file ({error})", line)
        if len(cells) != len(self.columns):
            names = ", ".join(self.columns)
            expected = (
                f"expected {counted(len(self.columns), 'column')}, {names}; found {len(cells)}"
            )
            return BadRow(number, expected, line)
        values = dict(zip(self.columns, cells, strict=True))
        target = values.get(TARGET, "")
        query = Query(
            values[SOURCE],
            task.tags_of(values.get(TAGS, "")),
            values.get(LANGUAGE_COLUMN, language),
        )
        problem = self._problem_of_row(query, target, task, needs_target)
        return BadRow(number, problem, line) if problem else Row(number, query, target, cells)

    def _problem_of_row(
        self, query: Query, target: str, task: StringTask, needs_target: bool
    ) -> str:
        """Return why a row cannot be read; empty if it can."""
        problem = _problem_of_query(query, task)
        if not problem and needs_target:
            problem = _with_column_name(TARGET, task.target.problem(target))
        if problem:
            return problem
        if LANGUAGE_COLUMN in self.columns and query.language.split() != [query.language]:
            return f"{LANGUAGE_COLUMN} is {query.language!r}, not one word"
        return ""

    def without(self, names: Collection[str]) -> Layout:
        """Return the layout with columns left out."""
        columns = tuple(LEFT_OUT if name in names else name for name in self.columns)
        return replace(self, columns=columns)

    def text(self, cells: Sequence[str]) -> str:
        """Return the line of columns, the inverse of `cells`."""
        if self.delimiter == "\t":
            return "\t".join(cells)
        return self.delimiter.join(_quoted(cell, self.delimiter) for cell in cells)


def _quoted(cell: str, delimiter: str) -> str:
    """Return a cell for a CSV file: in quotes if it has the delimiter or a quote."""
    if delimiter not in cell and '"' not in cell:
        return cell
    doubled = cell.replace('"', '""')
    return f'"{doubled}"'


def _problem_of_query(query: Query, task: StringTask) -> str:
    """Return why a query cannot be read; empty if it can."""
    problem = _with_column_name(SOURCE, task.source.problem(query.source))
    if not problem and "" in query.tags:
        return f"{TAGS} has an empty tag: {task.tag_separator.join(query.tags)!r}"
    return problem


def _with_column_name(column: str, problem: str | None) -> str:
    """Return the problem of a text after the name of its column; empty if there is no problem."""
    return f"{column} {problem}" if problem else ""


def rows_of(
    lines: Iterable[str],
    layout: Layout,
    task: StringTask,
    *,
    language: str = "",
    needs_target: bool = True,
) -> Iterator[Row | BadRow]:
    """Yield the rows of a table, without blank lines and the heading.

    Spreadsheets write empty rows as lines of delimiters. Such lines are blank, too.

    Args:
        lines: lines of the file.
        layout: columns of the table.
        task: task with the units of the columns.
        language: language of the file, if the table has no column of languages.
        needs_target: whether a row without a target is a bad one.
    """
    is_heading_ahead = bool(layout.heading)
    for number, line in enumerate(lines, 1):
        if not line.strip(f" \r{layout.delimiter}"):
            continue
        if is_heading_ahead:
            is_heading_ahead = False
            continue
        yield layout.row(number, line, task, language=language, needs_target=needs_target)


def readable_cells(layout: Layout, lines: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the cells of each line; lines that are no rows of a CSV file are left out."""
    table = []
    for line in lines:
        with suppress(csv.Error):
            table.append(layout.cells(line))
    return table


def width_of(table: Sequence[Sequence[str]]) -> int:
    """Return the number of columns that most rows of a table have; in a tie, the largest."""
    widths = Counter(map(len, table))
    return max(widths, key=lambda width: (widths[width], width))
