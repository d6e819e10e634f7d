"""Predicted tables of strings: their rows are matched with the gold ones by query."""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from onmt_entmax.report.gold_tables import ALL, Gold, table_rows
from onmt_entmax.report.string_scores import Guess
from onmt_entmax.strings.delimiters import guess_delimiter
from onmt_entmax.strings.details import DETAILS, has_details
from onmt_entmax.strings.guessing import SAMPLE, guess_layout
from onmt_entmax.strings.languages import known_as, language_of_file
from onmt_entmax.strings.misplaced_tags import refuse_misplaced_tags
from onmt_entmax.strings.tables import Layout, Row, readable_cells
from onmt_entmax.strings.task import LANGUAGE_COLUMN, LEFT_OUT, TARGET, Query


@dataclass
class Predicted:
    """The predictions of queries.

    Attributes:
        guesses: by query.
        several: queries that have several predictions and no rank, of which the first counts.
        unwritten: tables whose targets are all empty.
    """

    guesses: dict[Query, Guess] = field(default_factory=dict)
    several: set[Query] = field(default_factory=set)
    unwritten: list[Path] = field(default_factory=list)

    def add(self, query: Query, guess: Guess) -> None:
        """Add a prediction, unless the query has one; then it only counts as another."""
        first = self.guesses.setdefault(query, guess)
        if first.text != guess.text:
            self.several.add(query)


def read_predicted(paths: Sequence[Path], gold: Gold) -> Predicted:
    """Return the predictions of tables that `predict` wrote, or others in the gold columns.

    Args:
        paths: of the tables; several are paired with gold tables by their languages.
        gold: the gold targets.

    Raises:
        UserError: a row cannot be read, or has no gold target; or a table has no gold table.
    """
    predicted = Predicted()
    for path in paths:
        layout, detailed = _predicted_layout(path, gold)
        language = _language_of(path, layout, gold, is_only=len(paths) == 1)
        table = _Table(path, layout, detailed, language)
        is_written = False
        for query, guess in _first_outputs(table, gold):
            predicted.add(query, guess)
            if guess.text or detailed:  # with details, an empty target is an output
                is_written = True
        if not is_written:
            predicted.unwritten.append(path)
    return predicted


class _Table(NamedTuple):
    """A predicted table."""

    path: Path
    layout: Layout
    detailed: bool
    """Whether it ends with `DETAILS`."""
    language: str
    """Of rows without a column of languages."""


def _language_of(path: Path, layout: Layout, gold: Gold, *, is_only: bool) -> str:
    """Return the language of a table's rows that have no column of languages.

    If there is one predicted and one gold table, it is that of the gold table, whatever the name of
    the file; otherwise the name says it.

    Args:
        path: of the table.
        layout: of the table.
        gold: the gold targets.
        is_only: whether it is the only predicted table.

    Raises:
        UserError: there is no gold table of this language.
    """
    languages = {query.language for query in gold.targets}
    has_column = LANGUAGE_COLUMN in layout.columns
    if is_only and len(gold.names) == 1:
        language = gold.names[0]
        if not has_column:
            _refuse_other_language(path, gold)
    else:
        language = known_as(language_of_file(path.name) or ALL, languages)
    if not has_column and language not in languages:
        raise UserError(
            f"{path}: of the language {language} by its name, of which there is no gold table; "
            f"these are of {', '.join(sorted(languages))}"
        )
    return language


def _refuse_other_language(path: Path, gold: Gold) -> None:
    """Refuse a predicted table of another language than the only gold table.

    Without a model, the name of a file may be any word.

    Raises:
        UserError: both names are languages of the model, and not the same.
    """
    named = known_as(language_of_file(path.name), gold.languages)
    right = known_as(gold.names[0], gold.languages)
    if named != right and {named, right} <= gold.languages:
        raise UserError(
            f"{path}: of the language {named} by its name, and the gold table is of {right}"
        )


def _first_outputs(table: _Table, gold: Gold) -> Iterator[tuple[Query, Guess]]:
    """Yield queries and predictions of a table.

    Of a table with details, only outputs of rank 1 count, or those without a rank.

    Raises:
        UserError: a row cannot be read, or has no gold target.
    """
    for row in table_rows(table.path, table.layout, gold.task, table.language, needs=False):
        targets = gold.targets.get(row.query)
        if targets is None:
            raise _no_gold_row(table, row)
        rank, probability, level = "", "", ""
        if table.detailed:
            rank, probability, level, _ = row.cells[-len(DETAILS) :]
        if rank in ("", "1"):
            # A table may have millions of rows: equal texts are kept once.
            text = targets[0] if row.target == targets[0] else row.target
            yield row.query, Guess(text, sys.intern(level), _probability(table, row, probability))


def _probability(table: _Table, row: Row, cell: str) -> float | None:
    """Return the probability in a cell of a row; None for an empty cell.

    Raises:
        UserError: it is no number from 0 to 1.
    """
    if not cell:
        return None
    try:
        probability = float(cell)
    except ValueError:
        probability = math.nan
    if not 0 <= probability <= 1:
        raise UserError(
            f"{table.path}:{row.number}: {cell!r} is no probability from 0 to 1; leave out the "
            "columns of details, or write them as `predict --details` does"
        )
    return probability


def _no_gold_row(table: _Table, row: Row) -> UserError:
    """Return the error for a row whose query no gold table has."""
    columns = table.layout.columns
    if table.detailed:
        columns = columns[: -len(DETAILS)]
    return UserError(
        f"{table.path}:{row.number}: no gold row has this query: {query_text(row.query)}; the "
        f"columns are read as {', '.join(columns)}"
    )


def query_text(query: Query) -> str:
    """Return a query for people."""
    tags = f", {';'.join(query.tags)}" if query.tags else ""
    return f"{query.source}{tags} ({query.language})"


def _predicted_layout(path: Path, gold: Gold) -> tuple[Layout, bool]:
    """Return the layout of a predicted table, and whether it ends with `DETAILS`."""
    sample = [line for line in islice(read_lines(path), SAMPLE) if line.strip()]
    delimiter = guess_delimiter(sample)
    unnamed = Layout((), delimiter)
    table = readable_cells(unnamed, sample)
    detailed = has_details(table)
    if detailed:
        sample = [unnamed.text(cells[: -len(DETAILS)]) for cells in table]
    task = replace(gold.task, columns=gold.columns)
    layout = guess_layout(sample, str(path), task=task)
    refuse_misplaced_tags(sample, layout, gold.task, gold.tags, str(path))
    if TARGET not in layout.columns:
        raise UserError(f"{path}: {layout}; no targets, hence no predictions")
    if detailed:
        heading = table[0] if layout.heading else ()
        columns = (*layout.columns, *[LEFT_OUT] * len(DETAILS))
        layout = replace(layout, columns=columns, heading=heading, delimiter=delimiter)
    return layout, detailed
