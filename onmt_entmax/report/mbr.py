"""Choose among the hypotheses of a report's record by expected utility; count what is proven."""

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, get_args

from onmt_entmax.report.records import text_probabilities
from onmt_entmax.search.certificate import ROUNDING
from onmt_entmax.search.mbr import Decision, MbrLevel, Utility, decide


def decide_record(utility: Utility, record: dict[str, Any]) -> Decision | None:
    """Rank the texts of a record, of a search or of `combine`, by expected utility.

    Args:
        utility: what is compared, such as edit distance.
        record: as `answer_record` returns it.

    Returns:
        The decision; None if there is no text.
    """
    probabilities = text_probabilities(record["hypotheses"])
    if not probabilities:
        return None
    slack = record.get("slack", 0.0)
    all_listed = record["finished"] == len(record["hypotheses"])
    exhaustive = record["certificate"] == "exhaustive"
    bound = max(record["bound"], slack)  # of the probability of any other text
    if not exhaustive:
        bound = max(bound, sys.float_info.min)  # a bound too small for a float must not be 0
    others = 0.0  # bound of the probability of all other texts together
    if not exhaustive or not all_listed or slack:
        rest = 1 - sum(probabilities.values()) - record.get("excluded", 0.0)
        others = max(rest, record["bound"], slack, 0.0) + ROUNDING
    return decide(utility, probabilities, others, slack, bound if all_listed else others)


def as_dict(decision: Decision) -> dict[str, Any]:
    """Return what a record says of a decision."""
    pairs = zip(decision.texts, decision.expected, strict=True)
    return {
        "utility": decision.utility,
        "certificate": decision.level,
        "slack": decision.slack,
        "ranking": [{"text": text, "expected_utility": value} for text, value in pairs],
    }


@dataclass
class MbrCounts:
    """Counts of decisions."""

    levels: Counter[MbrLevel] = field(default_factory=Counter)
    other: int = 0  # the choice is not the most probable text

    def add(self, decision: Decision, best: str) -> None:
        """Count one decision, where `best` is the text of the first hypothesis."""
        self.levels[decision.level] += 1
        self.other += decision.texts[0] != best

    def as_dict(self) -> dict[str, Any]:
        """Return counts, and rates in percent of the decisions."""
        share = 100 / max(self.levels.total(), 1)
        proven = self.levels["exact"] + self.levels["proven"]
        return {
            "mbr": {level: self.levels[level] for level in get_args(MbrLevel)},
            "mbr_proven_percent": round(share * proven, 2),
            "mbr_other_percent": round(share * self.other, 2),
        }
