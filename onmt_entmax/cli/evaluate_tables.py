"""`onmt-entmax evaluate PREDICTED ...`: accuracy and error rate of predicted tables."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.table_options import checked_columns, separators_of
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, refuse_overwriting, write_files
from onmt_entmax.report.gold_tables import Gold, guessed_task, read_gold
from onmt_entmax.report.mcnemar import Difference, comparison, comparison_text
from onmt_entmax.report.predicted_tables import Predictions, read_predictions
from onmt_entmax.report.same_queries import Side, missing_predictions_text
from onmt_entmax.report.score_tables import scores_text
from onmt_entmax.report.string_scores import Scores, are_right, score_strings
from onmt_entmax.strings.marks import LANGUAGE, decode_tag, is_language, is_tag
from onmt_entmax.strings.task import SOURCE, TARGET, StringTask


@dataclass(frozen=True)
class _Reading:
    """How the tables are read.

    Attributes:
        task: their units and columns.
        guess: text on what was guessed of them; empty if a model says all.
        tags: that the model knows, if one is named.
        languages: that the model knows, if one is named.
    """

    task: StringTask
    guess: str = ""
    tags: frozenset[str] = frozenset()
    languages: frozenset[str] = frozenset()


def evaluate_tables(options: argparse.Namespace) -> str:
    """Score predicted tables; write the scores as JSON if asked to.

    Returns:
        What to print.

    Raises:
        UserError: a table cannot be read, or a prediction has no gold row.
    """
    paths, others = options.predicted, options.against
    refuse_overwriting([*paths, *options.reference, *others], [options.json])
    columns = checked_columns(options.columns or "", (SOURCE, TARGET))
    reading = _reading(options, columns)
    gold = read_gold(options.reference, reading.task, columns, reading.tags, reading.languages)
    predictions = read_predictions(paths, gold)
    this = Side(paths, predictions)
    other = _read_other_side(others, gold, this) if others else None
    scores = score_strings(gold.targets, predictions.by_query, reading.task.target)
    missing = len(gold.targets) - len(predictions.by_query)
    _warn_of_missing(missing, gold, predictions, scores)
    _warn_of_empty(predictions)
    content: dict[str, Any] = {**scores.as_dict(), "missing": missing}
    texts = [reading.guess, _several_targets_text(gold), scores_text(scores)]
    if other is None:
        _warn_of_several(predictions)
    else:
        _warn_of_several(predictions, f"{this.name}: ")
        _warn_of_several(other.predictions, f"{other.name}: ")
        compared = _compared(gold, predictions, other.predictions)
        content["against"] = {name: asdict(row) for name, row in compared.items()}
        texts.append(comparison_text(compared, other.name))
    if options.json:
        write_files({options.json: json_text(content)})
    return "\n\n".join(filter(None, texts))


def _read_other_side(paths: Sequence[Path], gold: Gold, this: Side) -> Side:
    """Return the tables of `--against` with their predictions.

    Args:
        paths: the tables.
        gold: the right targets.
        this: the evaluated tables, with which they will be compared.

    Raises:
        UserError: a table cannot be read, or one side predicts a row that the other does not.
    """
    other = Side(paths, read_predictions(paths, gold))
    missing = missing_predictions_text(this, other)
    if missing:
        raise UserError(f"{missing}; --against compares predictions of the same rows")
    return other


def _several_targets_text(gold: Gold) -> str:
    """Return how many queries have several gold targets; nothing if none has."""
    several = sum(len(targets) > 1 for targets in gold.targets.values())
    if not several:
        return ""
    return f"queries with several gold targets: {several:,} of {len(gold.targets):,}"


def _compared(gold: Gold, predictions: Predictions, other: Predictions) -> dict[str, Difference]:
    """Return how many queries only one of two sets of predictions gets right, by language."""
    return comparison(
        [query.language for query in gold.targets],
        are_right(gold.targets, predictions.by_query),
        are_right(gold.targets, other.by_query),
    )


def _reading(options: argparse.Namespace, columns: Sequence[str]) -> _Reading:
    """Return how the tables are read: as the model says, or as the first gold table looks.

    Raises:
        UserError: the model cannot be read, or the columns are unclear.
    """
    separators = separators_of(options.separator)
    if not options.model:
        path: Path = options.reference[0]
        task, guess = guessed_task(path, columns, separators)
        return _Reading(task, f"{path.name}: {guess}")
    model = load(options.model)
    tokens = model.vocabularies.source.tokens
    return _Reading(
        model.task,
        tags=frozenset(decode_tag(token) for token in tokens if is_tag(token)),
        languages=frozenset(token.removeprefix(LANGUAGE) for token in tokens if is_language(token)),
    )


def _warn_of_missing(missing: int, gold: Gold, predictions: Predictions, scores: Scores) -> None:
    """Warn of gold queries without a prediction, and of languages that have none at all."""
    if not missing:
        return
    predicted_languages = {query.language for query in predictions.by_query}
    lacking = sorted(scores.languages.keys() - predicted_languages)
    whole_languages = f" (all of {', '.join(lacking)})" if lacking else ""
    warn(
        f"gold queries without a prediction: {missing:,} of {len(gold.targets):,}"
        f"{whole_languages}; they count as wrong"
    )


def _warn_of_empty(predictions: Predictions) -> None:
    """Warn of empty predictions, and of tables that may have none."""
    empty = sum(not prediction.text for prediction in predictions.by_query.values())
    if empty:
        warn(f"empty predictions: {empty:,} of {len(predictions.by_query):,}")
    for path in predictions.empty_tables:
        warn(f"{path}: all targets are empty: are they predictions?")


def _warn_of_several(predictions: Predictions, prefix: str = "") -> None:
    """Warn of queries of which only the first prediction counts."""
    if predictions.several:
        warn(
            f"{prefix}queries with several predictions, of which the first counts: "
            f"{len(predictions.several):,}"
        )
