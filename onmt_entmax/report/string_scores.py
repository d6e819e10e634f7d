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
from typing import Any

from rapidfuzz.distance import Levenshtein

from onmt_entmax.report.tables import aligned_table
from onmt_entmax.strings.details import LEVELS
from onmt_entmax.strings.task import Query
from onmt_entmax.strings.units import Unit


@dataclass(frozen=True, slots=True)
class Guess:
    """The prediction for a query."""

    text: str
    level: str = ""
    """Of its certificate; empty if the table has none."""


def is_right(gold: Sequence[str], guess: Guess | None) -> bool:
    """Whether a prediction is one of the gold targets; without a prediction, nothing is right."""
    return guess is not None and guess.text in gold


@dataclass
class Counts:
    """Sums over queries."""

    queries: int = 0
    right: int = 0
    distance: int = 0
    length: int = 0
    levels: dict[str, list[int]] = field(default_factory=dict)
    """For each level of a certificate, the queries and those that are right."""

    def add(self, gold: Sequence[str], guess: Guess | None, unit: Unit) -> None:
        """Count a query.

        Args:
            gold: its targets, of which any is right.
            guess: None counts as wrong, and as an empty text.
            unit: of the targets.
        """
        right = is_right(gold, guess)
        units = unit.split(guess.text) if guess is not None and guess.text else []
        split = [unit.split(text) if text else [] for text in gold]
        near = [(Levenshtein.distance(each, units), -len(each)) for each in split]
        distance, length = min(near)
        self.queries += 1
        self.right += right
        self.distance += distance
        self.length -= length
        if guess is not None and guess.level:
            level = self.levels.setdefault(guess.level, [0, 0])
            level[0] += 1
            level[1] += right

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
    """Counts of each language, in order of name, and of all queries."""

    languages: Mapping[str, Counts]
    all: Counts
    unit: Unit

    @property
    def accuracy(self) -> float:
        """Unweighted mean of the accuracies of the languages."""
        return fmean(each.accuracy for each in self.languages.values())

    @property
    def error_rate(self) -> float:
        """Unweighted mean of the error rates of the languages."""
        return fmean(each.error_rate for each in self.languages.values())

    def as_dict(self) -> dict[str, Any]:
        """Return the scores as JSON has them, as shares of 1."""
        average = {"accuracy": self.accuracy, "error_rate": self.error_rate}
        return {
            "unit": str(self.unit),
            "languages": {name: _content(each) for name, each in self.languages.items()},
            "average": average,
            "all": _content(self.all),
        }

    def text(self) -> str:
        """Return the scores as tables, in percent."""
        symbols = self.unit.kind == "symbols"
        name = {"symbols": "PER", "characters": "CER", "text": "word errors"}[self.unit.kind]
        rows = [["language", "queries", "accuracy", *(["WER"] if symbols else []), name]]
        measured = [
            (language, each.queries, each.accuracy, each.error_rate)
            for language, each in self.languages.items()
        ]
        average = ("average", self.all.queries, self.accuracy, self.error_rate)
        for language, queries, accuracy, errors in [*measured, average]:
            word = [f"{100 - 100 * accuracy:.2f}"] if symbols else []
            rates = [f"{100 * accuracy:.2f}", *word, f"{100 * errors:.2f}"]
            rows.append([language, str(queries), *rates])
        lines = aligned_table(rows).splitlines()
        lines.insert(-1, "-" * max(map(len, lines)))
        tables = ["\n".join(lines)]
        if self.all.levels:
            rows = [["language", *(text for level in LEVELS for text in (level, "right"))]]
            every = [("all", self.all)] if len(self.languages) > 1 else []
            for language, each in [*self.languages.items(), *every]:
                rows.append([language, *_levels(each)])
            head = "certificates: percent of the queries, and of these right"
            tables.append(f"{head}\n\n{aligned_table(rows)}")
        return "\n\n".join(tables)


def _content(counts: Counts) -> dict[str, Any]:
    content: dict[str, Any] = {
        "queries": counts.queries,
        "accuracy": counts.accuracy,
        "error_rate": counts.error_rate,
    }
    if counts.levels:
        content["certificates"] = {
            level: {"share": number / counts.queries, "accuracy": right / number}
            for level, (number, right) in counts.levels.items()
        }
    return content


def _levels(counts: Counts) -> list[str]:
    """Return for each level the share of the queries, and how many of these are right."""
    cells = []
    for level in LEVELS:
        number, right = counts.levels.get(level, (0, 0))
        cells.append(f"{100 * number / max(counts.queries, 1):.2f}")
        cells.append(f"{100 * right / number:.2f}" if number else "-")
    return cells


def score_strings(
    gold: Mapping[Query, Sequence[str]], guesses: Mapping[Query, Guess], unit: Unit
) -> Scores:
    """Score the predictions of all gold queries, of which there is at least one.

    Args:
        gold: targets of each query.
        guesses: of these queries; one that is missing is wrong.
        unit: of the targets.
    """
    languages: dict[str, Counts] = {name: Counts() for name in sorted({q.language for q in gold})}
    total = Counts()
    for query, targets in gold.items():
        for counts in (languages[query.language], total):
            counts.add(targets, guesses.get(query), unit)
    return Scores(languages, total, unit)


def answered(gold: Mapping[Query, Sequence[str]], guesses: Mapping[Query, Guess]) -> Iterator[bool]:
    """Yield for each gold query whether its prediction is right."""
    return (is_right(targets, guesses.get(query)) for query, targets in gold.items())
