"""Read predictions from tables of strings, and match their rows with the gold rows by query."""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.errors import UserError
from onmt_entmax.report.gold_tables import Gold
from onmt_entmax.report.predicted_languages import predicted_language
from onmt_entmax.report.predicted_layout import predicted_layout
from onmt_entmax.report.string_scores import TablePrediction
from onmt_entmax.report.table_reading import table_rows
from onmt_entmax.strings.details import DETAILS
from onmt_entmax.strings.tables import Layout, Row
from onmt_entmax.strings.task import LANGUAGE_COLUMN, Query


@dataclass
class Predictions:
    """The predictions of tables.

    Attributes:
        by_query: the first prediction for each query.
        several: queries with several different predictions, of which only the first counts.
        empty_tables: tables without details in which all targets are empty.
    """

    by_query: dict[Query, TablePrediction] = field(default_factory=dict)
    several: set[Query] = field(default_factory=set)
    empty_tables: list[Path] = field(default_factory=list)

    def add(self, query: Query, prediction: TablePrediction) -> None:
        """Add a prediction; if the query has one already, that one stays."""
        first = self.by_query.setdefault(query, prediction)
        if first.text != prediction.text:
            self.several.add(query)


class _Table(NamedTuple):
    """A predicted table."""

    path: Path
    layout: Layout
    detailed: bool
    """Whether it ends with `DETAILS`"""
    language: str
    """Language of all rows; empty if a column says it"""


def read_predictions(paths: Sequence[Path], gold: Gold) -> Predictions:
    """Return the predictions of tables that `predict` wrote, or of others with the gold columns.

    Args:
        paths: paths of the tables; several are paired with gold tables by their languages.
        gold: the gold targets.

    Raises:
        UserError: if a row cannot be read or has no gold target, or a table has no gold table.
    """
    predictions = Predictions()
    for path in paths:
        table = _table(path, gold, is_only=len(paths) == 1)
        is_empty = True
        for query, prediction in _predictions_of(table, gold):
            predictions.add(query, prediction)
            # With details, `predict` wrote the table: an empty target is its prediction.
            if prediction.text or table.detailed:
                is_empty = False
        if is_empty:
            predictions.empty_tables.append(path)
    return predictions


def _table(path: Path, gold: Gold, *, is_only: bool) -> _Table:
    """Return a predicted table with its layout and its language.

    Args:
        path: path of the table.
        gold: the gold targets.
        is_only: whether it is the only predicted table.

    Raises:
        UserError: the columns are unclear, or there is no gold table of its language.
    """
    layout, detailed = predicted_layout(path, gold)
    has_column = LANGUAGE_COLUMN in layout.columns
    language = "" if has_column else predicted_language(path, gold, is_only=is_only)
    return _Table(path, layout, detailed, language)


class _Details(NamedTuple):
    """The cells of `DETAILS` that are read, as texts; empty if a table lacks them."""

    rank: str = ""
    probability: str = ""
    level: str = ""


def _predictions_of(table: _Table, gold: Gold) -> Iterator[tuple[Query, TablePrediction]]:
    """Yield the queries of a table, each with its prediction.

    In a table with details, rows count only if their rank is 1 or empty.

    Raises:
        UserError: a row cannot be read, or has no gold target.
    """
    task = gold.reading.task
    rows = table_rows(table.path, table.layout, task, table.language, needs_target=False)
    for row in rows:
        targets = gold.targets.get(row.query)
        if targets is None:
            raise _no_gold_row(table, row)
        details = _details(row) if table.detailed else _Details()
        if details.rank in ("", "1"):
            # A table may have millions of rows, so equal texts share one object.
            text = targets[0] if row.target == targets[0] else row.target
            level = sys.intern(details.level)
            probability = _probability(table, row, details.probability)
            yield row.query, TablePrediction(text, level, probability)


def _details(row: Row) -> _Details:
    """Return the details at the end of a row."""
    rank, probability, level, _ = row.cells[-len(DETAILS) :]
    return _Details(rank, probability, level)


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
