"""Choose among the hypotheses of a report's record by expected utility; count what is proven."""

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, get_args

from onmt_entmax.report.records import text_probabilities
from onmt_entmax.search.certificate import ROUNDING
from onmt_entmax.search.mbr import Decision, MbrLevel, decide
from onmt_entmax.search.utilities import Utility


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
    all_listed = record["finished"] == len(record["hypotheses"])
    left = _bound_of_others(record, sum(probabilities.values()), all_listed)
    return decide(
        utility,
        probabilities,
        left=left,
        slack=record.get("slack", 0.0),
        bound=_bound_of_another(record) if all_listed else left,
    )


def _bound_of_others(record: dict[str, Any], listed: float, all_listed: bool) -> float:
    """Return a bound of the probability of all texts together that are not listed.

    Args:
        record: of a line.
        listed: probability of its texts.
        all_listed: whether every hypothesis that finished is listed.
    """
    slack = record.get("slack", 0.0)
    if record["certificate"] == "exhaustive" and all_listed and not slack:
        return 0.0
    rest = 1 - listed - record.get("excluded", 0.0)
    return max(rest, record["bound"], slack, 0.0) + ROUNDING


def _bound_of_another(record: dict[str, Any]) -> float:
    """Return a bound of the probability of any one text that did not finish."""
    bound: float = max(record["bound"], record.get("slack", 0.0))
    if record["certificate"] == "exhaustive":
        return bound
    return max(bound, sys.float_info.min)  # a bound too small for a float must not be 0


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
    """Counts of decisions by minimum Bayes risk."""

    levels: Counter[MbrLevel] = field(default_factory=Counter)
    """Decisions by what is proven about them."""
    other: int = 0
    """Decisions for another text than the most probable hypothesis has."""

    def add(self, decision: Decision, best: str) -> None:
        """Count one decision, where `best` is the text of the first hypothesis."""
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
