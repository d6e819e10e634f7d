"""Counts that only some summaries have: of constraints, decisions and verified certificates."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, get_args

from onmt_entmax.search.mbr import Decision, MbrLevel
from onmt_entmax.search.verify import Verification


@dataclass
class ConstraintCounts:
    """Sums of the probabilities with which outputs satisfy their constraints.

    Attributes:
        sentences: number of sentences with constraints.
        least: sum of the lower bounds of this probability over the sentences.
        most: sum of its upper bounds.
    """

    sentences: int = 0
    least: float = 0.0
    most: float = 0.0

    def add(self, least: float, most: float) -> None:
        """Count a sentence, with a lower and an upper bound of its probability."""
        self.sentences += 1
        self.least += least
        self.most += most

    def as_dict(self) -> dict[str, Any]:
        """Return the count, and the mean bounds in percent; nothing without sentences."""
        if not self.sentences:
            return {}
        bounds = [round(100 * total / self.sentences, 2) for total in (self.least, self.most)]
        return {"constrained": self.sentences, "satisfied_percent": bounds}


@dataclass
class VerificationCounts:
    """Counts of sentences that were searched again in float64.

    Attributes:
        sentences: number of these sentences.
        disagreements: number of certificates that were not confirmed.
        undecided: number of certificates that were undecided when the budget ended.
    """

    sentences: int = 0
    disagreements: int = 0
    undecided: int = 0

    def add(self, verification: Verification) -> None:
        """Count a sentence."""
        self.sentences += 1
        if verification.agrees is None:
            self.undecided += 1
        elif not verification.agrees:
            self.disagreements += 1

    def as_dict(self) -> dict[str, int]:
        """Return the counts; nothing without sentences."""
        if not self.sentences:
            return {}
        counts = {"verified": self.sentences, "disagreements": self.disagreements}
        return counts | ({"undecided": self.undecided} if self.undecided else {})

    def text(self) -> str:
        """Return the counts in words; nothing without sentences."""
        if not self.sentences:
            return ""
        undecided = f", {self.undecided} of these undecided" if self.undecided else ""
        return (
            f"{self.sentences} recomputed in float64, {self.disagreements} not as certified"
            f"{undecided}"
        )


@dataclass
class MbrCounts:
    """Counts of decisions by minimum Bayes risk.

    Attributes:
        levels: decisions by what is proven about them.
        other: decisions for a text that is not the most probable hypothesis.
    """

    levels: Counter[MbrLevel] = field(default_factory=Counter)
    other: int = 0

    def add(self, decision: Decision, best: str) -> None:
        """Count one decision; `best` is the text of the most probable hypothesis."""
        self.levels[decision.level] += 1
        if decision.texts[0] != best:
            self.other += 1

    def as_dict(self) -> dict[str, Any]:
        """Return counts, and rates in percent of the decisions."""
        share = 100 / max(self.levels.total(), 1)
        proven = self.levels["exact"] + self.levels["proven"]
        return {
            "mbr": {level: self.levels[level] for level in get_args(MbrLevel)},
            "mbr_proven_percent": round(share * proven, 2),
            "mbr_other_percent": round(share * self.other, 2),
        }
