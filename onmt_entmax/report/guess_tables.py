"""Predicted tables of strings: their rows are matched with the gold ones by query."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_lines
from onmt_entmax.report.gold_tables import ALL, Gold, table_rows
from onmt_entmax.report.string_scores import Guess
from onmt_entmax.strings.details import DETAILS, has_details
from onmt_entmax.strings.guessing import (
    SAMPLE,
    guess_delimiter,
    guess_layout,
    refuse_misplaced_tags,
)
from onmt_entmax.strings.languages import known_as, language_of_file
from onmt_entmax.strings.tables import Layout, readable_cells
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


def read_predicted(paths: Sequence[Path], gold: Gold) -> Predicted:
    """Return the predictions of tables that `predict` wrote, or others in the gold columns.

    Args:
        paths: of the tables; several are paired with gold tables by their languages.
        gold: the gold targets.

    Raises:
        UserError: a row cannot be read, or has no gold target; or a table has no gold table.
    """
    predicted = Predicted()
    languages = {query.language for query in gold.targets}
    for path in paths:
        layout, detailed = _predicted_layout(path, gold)
        if len(paths) == len(gold.names) == 1:
            language = gold.names[0]
            if LANGUAGE_COLUMN not in layout.columns:
                _check_pair(path, gold)
        else:
            language = known_as(language_of_file(path.name) or ALL, languages)
        if LANGUAGE_COLUMN not in layout.columns and language not in languages:
            raise UserError(
                f"{path}: of the language {language} by its name, of which there is no gold table; "
                f"these are of {', '.join(sorted(languages))}"
            )
        if not _add_table(predicted, path, gold, layout, detailed, language):
            predicted.unwritten.append(path)
    return predicted


def _add_table(
    predicted: Predicted, path: Path, gold: Gold, layout: Layout, detailed: bool, language: str
) -> bool:
    """Add the predictions of a table; return whether it has any.

    Args:
        predicted: receives them.
        path: of the table.
        gold: the gold targets.
        layout: of the table.
        detailed: whether the table ends with `DETAILS`; only outputs of rank 1 count then.
        language: of rows without a column of languages.

    Raises:
        UserError: a row cannot be read, or has no gold target.
    """
    has_predictions = False
    for row in table_rows(path, layout, gold.task, language, needs=False):
        targets = gold.targets.get(row.query)
        if targets is None:
            columns = layout.columns[: -len(DETAILS)] if detailed else layout.columns
            raise UserError(
                f"{path}:{row.number}: no gold row has this query: {_named(row.query)}; the "
                f"columns are read as {', '.join(columns)}"
            )
        if detailed and row.cells[-len(DETAILS)] not in ("", "1"):
            continue
        has_predictions = has_predictions or detailed or bool(row.target)
        first = predicted.guesses.get(row.query)
        if first is None:
            # A table may have millions of rows: equal texts are kept once.
            text = targets[0] if row.target == targets[0] else row.target
            level = sys.intern(row.cells[-2]) if detailed else ""
            predicted.guesses[row.query] = Guess(text, level)
        elif first.text != row.target:
            predicted.several.add(row.query)
    return has_predictions


def refuse_other_queries(
    first: Predicted, second: Predicted, paths: Sequence[Path], others: Sequence[Path]
) -> None:
    """Refuse to compare predictions of different rows.

    Args:
        first: of the tables `paths`.
        second: of the tables `others`.
        paths: the tables that are evaluated.
        others: those that they are compared with.

    Raises:
        UserError: one side has a query that the other lacks.
    """
    _refuse_missing_queries(first, paths, second, others)
    _refuse_missing_queries(second, others, first, paths)


def _refuse_missing_queries(
    complete: Predicted, paths: Sequence[Path], other: Predicted, other_paths: Sequence[Path]
) -> None:
    """Refuse predictions that lack a query of others.

    Raises:
        UserError: `other` has no prediction for a query of `complete`.
    """
    missing = [query for query in complete.guesses if query not in other.guesses]
    if missing:
        raise UserError(
            f"{named_together(other_paths)}: has no prediction for {len(missing):,} of "
            f"{counted(len(complete.guesses), 'row')} of {named_together(paths)}, such as "
            f"{_named(missing[0])}; --against compares predictions of the same rows"
        )


def named_together(paths: Sequence[Path]) -> str:
    """Return the name of tables for people: that of their folder if there are several."""
    if len(paths) == 1:
        return str(paths[0])
    folders = {path.parent for path in paths}
    return str(paths[0].parent) if len(folders) == 1 else f"{paths[0]}, ..."


def _named(query: Query) -> str:
    """Return a query for people."""
    tags = f", {';'.join(query.tags)}" if query.tags else ""
    return f"{query.source}{tags} ({query.language})"


def _check_pair(path: Path, gold: Gold) -> None:
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
