"""Warn of missing, empty, repeated and differently written predictions in tables."""

from collections.abc import Iterator, Sequence
from unicodedata import normalize

from onmt_entmax.report.gold_tables import Gold
from onmt_entmax.report.predicted_tables import Predictions
from onmt_entmax.report.same_queries import Side


def missing_count(gold: Gold, predictions: Predictions) -> int:
    """Return how many gold queries have no prediction.

    Predictions for queries without gold targets were refused when they were read.
    """
    return len(gold.targets) - len(predictions.by_query)


def gap_warnings(gold: Gold, predictions: Predictions) -> Iterator[str]:
    """Yield warnings of predictions that are missing, or empty."""
    missing = missing_count(gold, predictions)
    if missing:
        yield (
            f"gold queries without a prediction: {missing:,} of {len(gold.targets):,}"
            f"{_unpredicted_languages_text(gold, predictions)}; they count as wrong"
        )
    empty = sum(not prediction.text for prediction in predictions.by_query.values())
    if empty:
        yield f"empty predictions: {empty:,} of {len(predictions.by_query):,}"
    for path in predictions.empty_tables:
        yield f"{path}: all targets are empty: are they predictions?"


def _unpredicted_languages_text(gold: Gold, predictions: Predictions) -> str:
    """Return the languages without any prediction, in parentheses; empty if there are none."""
    predicted = {query.language for query in predictions.by_query}
    lacking = sorted({query.language for query in gold.targets} - predicted)
    return f" (all of {', '.join(lacking)})" if lacking else ""


def writing_warnings(gold: Gold, predictions: Predictions) -> Iterator[str]:
    """Yield a warning of predictions that are wrong only in Unicode's normal form, or in spaces."""
    otherwise_written = sum(
        _is_written_otherwise(prediction.text, gold.targets[query])
        for query, prediction in predictions.by_query.items()
    )
    if otherwise_written:
        yield (
            "wrong predictions that differ from a gold target only in Unicode's normal form or in "
            f"spaces around it: {otherwise_written:,}"
        )


def _is_written_otherwise(text: str, targets: Sequence[str]) -> bool:
    """Return whether a wrong prediction is a gold target but for normal form or outer spaces."""
    return text not in targets and _unified(text) in map(_unified, targets)


def _unified(text: str) -> str:
    """Return a text in normal form NFC, without spaces around it."""
    return normalize("NFC", text).strip()


def repetition_warnings(sides: Sequence[Side]) -> Iterator[str]:
    """Yield warnings of queries with several predictions; if there are two sides, name each."""
    for side in sides:
        several = side.predictions.several
        if several:
            name = f"{side.name}: " if len(sides) > 1 else ""
            yield (
                f"{name}queries with several predictions, of which the first counts: "
                f"{len(several):,}"
            )
