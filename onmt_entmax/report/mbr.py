"""Choose among the hypotheses of a report's record by expected utility.

`search/mbr.py` decides. It needs three bounds on probability that the record does not list, which
this file derives from the certificate:

| bound | on the probability of |
|---|---|
| `left` | all unlisted texts together |
| `bound` | any single unlisted text |
| `slack` | the unlisted token sequences that become one of the listed texts |
"""

from typing import Any

from onmt_entmax.report.records import (
    Record,
    is_all_listed,
    text_probabilities,
    unfinished_text_bound,
)
from onmt_entmax.search.certificate import ROUNDING
from onmt_entmax.search.mbr import Decision, decide
from onmt_entmax.search.utilities import Utility


def decide_record(utility: Utility, record: Record) -> Decision | None:
    """Rank the texts of a record by expected utility.

    Args:
        utility: what is compared, such as edit distance.
        record: record that `answer_record` or `combine` returned.

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
        # A text that finished, but is not listed, may have all of `left`.
        bound=unfinished_text_bound(record) if is_all_listed(record) else left,
    )


def _bound_of_others(record: Record, listed: float) -> float:
    """Return a bound on the probability of all unlisted texts together.

    The probabilities of all texts sum to 1. The listed texts have at least `listed` of it, and no
    text has the excluded part, so the unlisted texts share the rest. Rounding may lose a small
    rest: the bound is therefore never below that of a single text, and has a margin.

    It is 0 only if the list is known to be complete: the search was exhaustive, all that it
    finished is listed, and no other token sequence can become a listed text.

    Args:
        record: record of a line.
        listed: probability of its texts.
    """
    slack = record.get("slack", 0.0)
    if record["certificate"] == "exhaustive" and is_all_listed(record) and not slack:
        return 0.0
    rest = 1 - listed - record.get("excluded", 0.0)
    return max(rest, record["bound"], slack, 0.0) + ROUNDING


def decision_record(decision: Decision) -> dict[str, Any]:
    """Return what a record of a report has under `mbr`."""
    pairs = zip(decision.texts, decision.expected, strict=True)
    return {
        "utility": decision.utility,
        "certificate": decision.level,
        "slack": decision.slack,
        "ranking": [{"text": text, "expected_utility": value} for text, value in pairs],
    }
