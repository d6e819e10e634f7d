"""Accuracy and error rate of predicted strings, by language and by certificate.

A prediction is right if it is, character by character, one of the gold targets of its query;
nothing is normalised. The error rate is in units of the target: the sum of the Levenshtein
distances to the nearest gold target of each query, over the sum of the lengths of these targets. Of
phones it is the phone error rate (PER), of characters the character error rate (CER). The word
error rate (WER) of grapheme-to-phoneme conversion is 100 minus the accuracy.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

from rapidfuzz.distance import Levenshtein

from onmt_entmax.report.probabilities import Probabilities
from onmt_entmax.strings.task import Query
from onmt_entmax.strings.units import Unit


@dataclass(frozen=True, slots=True)
class TablePrediction:
    """The prediction for a query, as a table has it."""

    text: str
    level: str = ""
    """Level of its certificate; empty if the table has none."""
    probability: float | None = None
    """Probability of the text, from 0 to 1; None if the table has none."""


class QueryScore(NamedTuple):
    """How right the prediction for one query is."""

    is_right: bool
    distance: int
    """Levenshtein distance to the nearest gold target, in units of the target."""
    length: int
    """Length of the nearest gold target, in units."""
    level: str
    """Level of the prediction's certificate; empty if it has none."""


@dataclass
class LevelCounts:
    """Counts of the queries whose certificates have one level."""

    queries: int = 0
    right: int = 0


@dataclass
class QueryCounts:
    """Sums over queries."""

    queries: int = 0
    right: int = 0
    distance: int = 0
    """Distances to the nearest gold targets, in units of the target."""
    length: int = 0
    """Lengths of the nearest gold targets, in units."""
    levels: dict[str, LevelCounts] = field(default_factory=dict)
    """Counts by the level of the certificate, of queries that have one."""

    def add(self, score: QueryScore) -> None:
        """Count a query."""
        self.queries += 1
        self.right += score.is_right
        self.distance += score.distance
        self.length += score.length
        if score.level:
            level = self.levels.setdefault(score.level, LevelCounts())
            level.queries += 1
            level.right += score.is_right

    @property
    def accuracy(self) -> float:
        """Share of the queries that are right."""
        return self.right / max(self.queries, 1)

    @property
    def error_rate(self) -> float:
        """Distances over lengths."""
        return self.distance / max(self.length, 1)


@dataclass(frozen=True)
class Scores:
    """Counts of the predictions for gold queries.

    Attributes:
        languages: of each language, in order of name.
        total: of all queries.
        probabilities: of all predictions that have one.
        unit: of the targets.
    """

    languages: Mapping[str, QueryCounts]
    total: QueryCounts
    probabilities: Probabilities
    unit: Unit

    @property
    def accuracy(self) -> float:
        """Unweighted mean of the accuracies of the languages."""
        return fmean(counts.accuracy for counts in self.languages.values())

    @property
    def error_rate(self) -> float:
        """Unweighted mean of the error rates of the languages."""
        return fmean(counts.error_rate for counts in self.languages.values())

    def as_dict(self) -> dict[str, Any]:
        """Return the scores as JSON has them, as shares of 1."""
        content = {
            "unit": str(self.unit),
            "languages": {name: _content(counts) for name, counts in self.languages.items()},
            "average": {"accuracy": self.accuracy, "error_rate": self.error_rate},
            "all": _content(self.total),
        }
        if self.probabilities.number:
            content["probabilities"] = self.probabilities.as_dict()
        return content


def _content(counts: QueryCounts) -> dict[str, Any]:
    """Return counts as JSON has them."""
    content: dict[str, Any] = {
        "queries": counts.queries,
        "accuracy": counts.accuracy,
        "error_rate": counts.error_rate,
    }
    if counts.levels:
        content["certificates"] = {
            name: {"share": level.queries / counts.queries, "accuracy": level.right / level.queries}
            for name, level in counts.levels.items()
        }
    return content


def score_strings(
    gold: Mapping[Query, Sequence[str]], predictions: Mapping[Query, TablePrediction], unit: Unit
) -> Scores:
    """Score the predictions of all gold queries, of which there is at least one.

    Args:
        gold: targets of each query.
        predictions: of these queries; one that is missing is wrong.
        unit: of the targets.
    """
    languages: dict[str, QueryCounts] = {
        name: QueryCounts() for name in sorted({q.language for q in gold})
    }
    total, probabilities = QueryCounts(), Probabilities()
    for query, targets in gold.items():
        prediction = predictions.get(query)
        score = _score(targets, prediction, unit)
        languages[query.language].add(score)
        total.add(score)
        if prediction is not None and prediction.probability is not None:
            probabilities.add(prediction.probability, score.is_right)
    return Scores(languages, total, probabilities, unit)


def are_right(
    gold: Mapping[Query, Sequence[str]], predictions: Mapping[Query, TablePrediction]
) -> Iterator[bool]:
    """Yield for each gold query whether its prediction is right."""
    return (_is_right(targets, predictions.get(query)) for query, targets in gold.items())


def _is_right(gold: Sequence[str], prediction: TablePrediction | None) -> bool:
    """Tell whether a prediction is one of the gold targets; a missing one is not."""
    return prediction is not None and prediction.text in gold


def _score(gold: Sequence[str], prediction: TablePrediction | None, unit: Unit) -> QueryScore:
    """Score the prediction for a query.

    Args:
        gold: its targets, of which any is right.
        prediction: None counts as wrong, and as an empty text.
        unit: of the targets.
    """
    distance, length = _nearest(gold, "" if prediction is None else prediction.text, unit)
    level = "" if prediction is None else prediction.level
    return QueryScore(_is_right(gold, prediction), distance, length, level)


def _nearest(gold: Sequence[str], text: str, unit: Unit) -> tuple[int, int]:
    """Return the distance to the nearest gold target, and its length; of several, the longest.

    Args:
        gold: the targets of a query; at least one.
        text: the prediction.
        unit: of the targets.
    """
    units = _units(text, unit)
    candidates = []
    for target in gold:
        target_units = _units(target, unit)
        equal = units == target_units  # as most are, which takes no time
        distance = 0 if equal else Levenshtein.distance(target_units, units)
        candidates.append((distance, -len(target_units)))
    distance, minus_length = min(candidates)  # of equal distances, the greatest length
    return distance, -minus_length


def _units(text: str, unit: Unit) -> list[str]:
    """Return the units of a text; an empty one has none."""
    return unit.split(text) if text else []
