"""Choose among the hypotheses of a report's record by expected utility; count what is proven.

`search/mbr.py` decides. It needs three bounds of what the record does not list, which this file
derives from the certificate: of all other texts together (`left`), of any other text (`bound`), and
of what a listed text may have more (`slack`).
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, get_args

from onmt_entmax.report.records import (
    Record,
    is_all_listed,
    text_probabilities,
    unfinished_text_bound,
)
from onmt_entmax.search.certificate import ROUNDING
from onmt_entmax.search.mbr import Decision, MbrLevel, decide
from onmt_entmax.search.utilities import Utility


def decide_record(utility: Utility, record: Record) -> Decision | None:
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
    left = _bound_of_others(record, sum(probabilities.values()))
    return decide(
        utility,
        probabilities,
        left=left,
        slack=record.get("slack", 0.0),
        # A finished text that is not listed may have all that is left.
        bound=unfinished_text_bound(record) if is_all_listed(record) else left,
    )


def _bound_of_others(record: Record, listed: float) -> float:
    """Return a bound of the probability of all texts together that are not listed.

    The probabilities of all texts sum to 1, of which the listed ones have `listed` at least, and
    no text has what was excluded. This sum is of floats, and may be lost in rounding: so the bound
    is never below that of a single text, and has a margin. It is 0 only if the list is known to be
    complete: the search was exhaustive, all that it finished is listed, and no other token sequence
    can become a listed text.

    Args:
        record: of a line.
        listed: probability of its texts.
    """
    slack = record.get("slack", 0.0)
    if record["certificate"] == "exhaustive" and is_all_listed(record) and not slack:
        return 0.0
    rest = 1 - listed - record.get("excluded", 0.0)
    return max(rest, record["bound"], slack, 0.0) + ROUNDING


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
