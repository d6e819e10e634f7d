"""`onmt-entmax evaluate PREDICTED ...`: accuracy and error rate of predicted tables."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.table_options import checked_columns, separators_of
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, refuse_overwriting, refuse_stream, write_files
from onmt_entmax.report.accuracy_comparison import (
    Difference,
    compare_accuracy,
    comparison_text,
)
from onmt_entmax.report.gold_tables import Gold, read_gold
from onmt_entmax.report.predicted_tables import read_predictions
from onmt_entmax.report.prediction_warnings import (
    gap_warnings,
    missing_count,
    repetition_warnings,
    writing_warnings,
)
from onmt_entmax.report.same_queries import Side, missing_predictions_text
from onmt_entmax.report.score_tables import scores_text
from onmt_entmax.report.string_scores import are_right, score_strings
from onmt_entmax.report.table_reading import TableReading, guessed_reading
from onmt_entmax.strings.marks import LANGUAGE, decode_tag, is_language, is_tag
from onmt_entmax.strings.task import SOURCE, TARGET


def evaluate_tables(options: argparse.Namespace) -> str:
    """Score predicted tables; write the scores as JSON with `--json`.

    Returns:
        The text to print.

    Raises:
        UserError: a table cannot be read, or a prediction has no gold row.
    """
    paths, others = options.predicted, options.against
    refuse_overwriting([*paths, *options.reference, *others], [options.json])
    for path in (*paths, *options.reference, *others):
        refuse_stream(path)
    reading = _reading(options)
    gold = read_gold(options.reference, reading)
    this = Side(paths, read_predictions(paths, gold))
    other = _read_other_side(others, gold, this) if others else None
    warn(*gold.heading_warnings)
    warn(*gap_warnings(gold, this.predictions), *writing_warnings(gold, this.predictions))
    warn(*repetition_warnings([this] if other is None else [this, other]))
    scores = score_strings(gold.targets, this.predictions.by_query, reading.task.target)
    content: dict[str, Any] = {
        **scores.as_dict(),
        "missing": missing_count(gold, this.predictions),
    }
    texts = [reading.guess, gold.several_targets_text(), scores_text(scores)]
    if other is not None:
        compared = _compared(gold, this, other)
        content["against"] = {name: asdict(row) for name, row in compared.items()}
        texts.append(comparison_text(compared, other.name))
    if options.json:
        write_files({options.json: json_text(content)})
    return "\n\n".join(filter(None, texts))


def _reading(options: argparse.Namespace) -> TableReading:
    """Return how to read the tables: by the task of the model, or as the gold tables look.

    Raises:
        UserError: the model cannot be read, or the columns are unclear.
    """
    columns = checked_columns(options.columns or "", (SOURCE, TARGET))
    separators = separators_of(options.separator)
    if not options.model:
        return guessed_reading(options.reference, columns, separators)
    model = load(options.model)
    tokens = model.vocabularies.source.tokens
    return TableReading(
        model.task,
        columns,
        tags=frozenset(decode_tag(token) for token in tokens if is_tag(token)),
        languages=frozenset(token.removeprefix(LANGUAGE) for token in tokens if is_language(token)),
    )


def _read_other_side(paths: Sequence[Path], gold: Gold, this: Side) -> Side:
    """Return the tables of `--against` with their predictions.

    Args:
        paths: the tables.
        gold: the right targets.
        this: the evaluated tables, with which they are compared.

    Raises:
        UserError: a table cannot be read, or one side predicts a row that the other does not.
    """
    other = Side(paths, read_predictions(paths, gold))
    missing = missing_predictions_text(this, other)
    if missing:
        raise UserError(f"{missing}; --against compares predictions of the same rows")
    return other


def _compared(gold: Gold, this: Side, other: Side) -> dict[str, Difference]:
    """Return how many queries only one of two sides gets right, by language."""
    return compare_accuracy(
        [query.language for query in gold.targets],
        are_right(gold.targets, this.predictions.by_query),
        are_right(gold.targets, other.predictions.by_query),
    )
