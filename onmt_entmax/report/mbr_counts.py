"""Counts of decisions by minimum Bayes risk."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, get_args

from onmt_entmax.search.mbr import Decision, MbrLevel


@dataclass
class MbrCounts:
    """Counts of decisions by minimum Bayes risk.

    Attributes:
        levels: number of decisions at each level, which says what is proven of a decision.
        other: number of decisions for a text that is not the most probable hypothesis.
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
