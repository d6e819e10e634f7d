"""Predicted tables of strings: their rows are matched with the gold ones by query."""

import math
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.errors import UserError
from onmt_entmax.report.gold_tables import ALL, Gold, table_rows
from onmt_entmax.report.predicted_layout import predicted_layout
from onmt_entmax.report.string_scores import TablePrediction
from onmt_entmax.strings.details import DETAILS
from onmt_entmax.strings.languages import known_as, language_of_file
from onmt_entmax.strings.tables import Layout, Row
from onmt_entmax.strings.task import LANGUAGE_COLUMN, Query


@dataclass
class Predictions:
    """The predictions of tables.

    Attributes:
        by_query: the first prediction for each query.
        several: queries with another prediction after the first, which does not count.
        empty_tables: tables without details whose targets are all empty.
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
    """Of all rows; empty if a column says it"""


def read_predictions(paths: Sequence[Path], gold: Gold) -> Predictions:
    """Return the predictions of tables that `predict` wrote, or others in the gold columns.

    Args:
        paths: of the tables; several are paired with gold tables by their languages.
        gold: the gold targets.

    Raises:
        UserError: a row cannot be read, or has no gold target; or a table has no gold table.
    """
    predictions = Predictions()
    for path in paths:
        layout, detailed = predicted_layout(path, gold)
        language = _language_of(path, layout, gold, is_only=len(paths) == 1)
        is_empty = True
        for query, prediction in _predictions_of(_Table(path, layout, detailed, language), gold):
            predictions.add(query, prediction)
            # With details, `predict` wrote the table: an empty target is its prediction.
            if prediction.text or detailed:
                is_empty = False
        if is_empty:
            predictions.empty_tables.append(path)
    return predictions


# --- languages ---


def _language_of(path: Path, layout: Layout, gold: Gold, *, is_only: bool) -> str:
    """Return the language of a table's rows; nothing if a column says it.

    Args:
        path: of the table.
        layout: of the table.
        gold: the gold targets.
        is_only: whether it is the only predicted table.

    Raises:
        UserError: there is no gold table of this language.
    """
    if LANGUAGE_COLUMN in layout.columns:
        return ""
    languages = {query.language for query in gold.targets}
    if is_only and len(gold.names) == 1:
        # The two tables belong together, whatever their names.
        _refuse_other_language(path, gold)
        language = gold.names[0]
    else:
        language = known_as(language_of_file(path.name) or ALL, languages)
    _refuse_without_gold(path, language, languages)
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


def _refuse_without_gold(path: Path, language: str, languages: Collection[str]) -> None:
    """Refuse a predicted table of a language of which there are no gold targets.

    Args:
        path: of the table.
        language: of its rows.
        languages: of the gold targets.

    Raises:
        UserError: names the languages that there are.
    """
    if language not in languages:
        raise UserError(
            f"{path}: of the language {language} by its name, of which there is no gold table; "
            f"these are of {', '.join(sorted(languages))}"
        )


# --- rows ---


def _predictions_of(table: _Table, gold: Gold) -> Iterator[tuple[Query, TablePrediction]]:
    """Yield the queries of a table, each with its prediction.

    Of a table with details, only rows of rank 1 count, or those without a rank.

    Raises:
        UserError: a row cannot be read, or has no gold target.
    """
    rows = table_rows(table.path, table.layout, gold.task, table.language, needs_target=False)
    for row in rows:
        targets = gold.targets.get(row.query)
        if targets is None:
            raise _no_gold_row(table, row)
        rank, probability, level = "", "", ""
        if table.detailed:
            rank, probability, level, _ = row.cells[-len(DETAILS) :]
        if rank in ("", "1"):
            # A table may have millions of rows: equal texts are kept once.
            text = targets[0] if row.target == targets[0] else row.target
            number = _probability(table, row, probability)
            yield row.query, TablePrediction(text, sys.intern(level), number)


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
