"""Count right predictions by language and by certificate, and compute rates from the counts.

`string_scores.py` compares the strings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

from onmt_entmax.report.probabilities import Probabilities
from onmt_entmax.strings.units import Unit


class QueryScore(NamedTuple):
    """The comparison of the prediction for one query with its gold targets.

    Attributes:
        is_right: whether it is one of the gold targets.
        distance: Levenshtein distance to the nearest gold target, in units of the target.
        length: length of the nearest gold target, in units.
        level: level of the prediction's certificate; empty if it has none.
    """

    is_right: bool
    distance: int
    length: int
    level: str


@dataclass
class LevelCounts:
    """Counts of the queries whose predictions have certificates of one level.

    Attributes:
        queries: number of these queries.
        right: number of them whose predictions are right.
    """

    queries: int = 0
    right: int = 0


@dataclass
class QueryCounts:
    """Sums over queries, of one language or of all.

    Attributes:
        queries: number of queries.
        right: number of queries whose predictions are right.
        distance: sum of the distances to the nearest gold targets, in units of the target.
        length: sum of the lengths of the nearest gold targets, in units.
        levels: counts of queries whose predictions have a certificate, by its level.
    """

    queries: int = 0
    right: int = 0
    distance: int = 0
    length: int = 0
    levels: dict[str, LevelCounts] = field(default_factory=dict)

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
        """Edits per unit of the gold targets."""
        return self.distance / max(self.length, 1)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts for JSON, as shares of 1; there is at least one query."""
        content: dict[str, Any] = {
            "queries": self.queries,
            "accuracy": self.accuracy,
            "error_rate": self.error_rate,
        }
        if self.levels:
            content["certificates"] = {
                name: {
                    "share": level.queries / self.queries,
                    "accuracy": level.right / level.queries,
                }
                for name, level in self.levels.items()
            }
        return content


@dataclass(frozen=True)
class Scores:
    """Counts of the predictions for gold queries.

    Attributes:
        languages: counts of each language, in order of name.
        total: counts of all queries.
        probabilities: probabilities of all predictions that have one.
        unit: unit of the targets.
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
        """Return the scores for JSON, as shares of 1."""
        content = {
            "unit": str(self.unit),
            "languages": {name: counts.as_dict() for name, counts in self.languages.items()},
            "average": {"accuracy": self.accuracy, "error_rate": self.error_rate},
            "all": self.total.as_dict(),
        }
        if self.probabilities.predictions:
            content["probabilities"] = self.probabilities.as_dict()
        return content
