"""Accuracy and error rate of predicted strings, by language and by certificate.

A prediction is right if it is, character by character, one of the gold targets of its query;
nothing is normalised. The error rate is in units of the target: the sum of the Levenshtein
distances to the nearest gold target of each query, over the sum of the lengths of these targets. If
the units are phones, it is the phone error rate (PER), and for characters the character error rate
(CER). The word error rate (WER) of grapheme-to-phoneme conversion is 100 minus the accuracy.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from onmt_entmax.report.probabilities import Probabilities
from onmt_entmax.report.string_counts import QueryCounts, QueryScore, Scores
from onmt_entmax.strings.task import Query
from onmt_entmax.strings.units import Unit


@dataclass(frozen=True, slots=True)
class TablePrediction:
    """The prediction of a table for one query.

    Attributes:
        text: the predicted target.
        level: level of its certificate; empty if the table has none.
        probability: probability of the text, from 0 to 1; None if the table has none.
    """

    text: str
    level: str = ""
    probability: float | None = None


def score_strings(
    gold: Mapping[Query, Sequence[str]], predictions: Mapping[Query, TablePrediction], unit: Unit
) -> Scores:
    """Score the predictions of all gold queries.

    Args:
        gold: targets of each query; at least one query.
        predictions: predictions for these queries; a missing one counts as wrong.
        unit: unit of the targets.
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
            probabilities.add(prediction.probability, is_right=score.is_right)
    return Scores(languages, total, probabilities, unit)


def are_right(
    gold: Mapping[Query, Sequence[str]], predictions: Mapping[Query, TablePrediction]
) -> Iterator[bool]:
    """Yield for each gold query whether its prediction is right."""
    return (_is_right(targets, predictions.get(query)) for query, targets in gold.items())


def _is_right(gold: Sequence[str], prediction: TablePrediction | None) -> bool:
    """Return whether a prediction is one of the gold targets; a missing one is not."""
    return prediction is not None and prediction.text in gold


def _score(gold: Sequence[str], prediction: TablePrediction | None, unit: Unit) -> QueryScore:
    """Score the prediction for a query.

    Args:
        gold: targets of the query; each of them is right.
        prediction: the prediction; None counts as wrong, and as an empty text.
        unit: unit of the targets.
    """
    distance, length = _nearest(gold, "" if prediction is None else prediction.text, unit)
    level = "" if prediction is None else prediction.level
    return QueryScore(_is_right(gold, prediction), distance, length, level)


def _nearest(gold: Sequence[str], text: str, unit: Unit) -> tuple[int, int]:
    """Return the distance to the nearest gold target, and the length of that target.

    If several are equally near, the longest counts.

    Args:
        gold: the targets of a query; at least one.
        text: the prediction.
        unit: unit of the targets.
    """
    predicted = _units(text, unit)
    targets = [_units(target, unit) for target in gold]
    distances = [_distance(target, predicted) for target in targets]
    least = min(distances)
    nearest = (
        len(target)
        for target, distance in zip(targets, distances, strict=True)
        if distance == least
    )
    return least, max(nearest)


def _distance(target: list[str], predicted: list[str]) -> int:
    """Return the Levenshtein distance of two lists of units."""
    # Most pairs are equal, and comparing them is faster than the algorithm.
    return 0 if target == predicted else Levenshtein.distance(target, predicted)


def _units(text: str, unit: Unit) -> list[str]:
    """Return the units of a text; an empty one has none."""
    return unit.split(text) if text else []
