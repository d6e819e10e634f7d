"""What a record of an exactness report says: outputs, probabilities and bounds."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Record = dict[str, Any]
"""One line of an exactness report, an object of JSON: docs/report-records.md describes its keys,
`answer_records.py` writes it, and `reading.py` has the rules of those that are read"""


def is_blank(record: Mapping[str, Any]) -> bool:
    """Return whether a record is about a blank line."""
    return not record["source"].strip()


def has_single_hypothesis(record: Mapping[str, Any]) -> bool:
    """Return whether the support is proven to be a single hypothesis, see `SearchResult.only`."""
    is_found_alone = record["certificate"] == "exhaustive" and record["finished"] == 1
    return is_found_alone and not record.get("excluded")


def level_of(record: Mapping[str, Any]) -> str:
    """Return `only` if the support is proven to be a single hypothesis, else the certificate."""
    return "only" if has_single_hypothesis(record) else str(record["certificate"])


class ChosenOutput(NamedTuple):
    """The text that `translate` writes first for a line, and its probability."""

    text: str
    prob: float


def chosen_output(
    listed: Sequence[tuple[str, float]], ranking: Sequence[str] = (), unfinished: str = ""
) -> ChosenOutput:
    """Return the text that `translate` writes first for a line, and its probability.

    Several hypotheses may have one text, whose probability is their sum.

    Args:
        listed: text and probability of each hypothesis, the best first.
        ranking: texts by expected utility, if the line was decided by minimum Bayes risk.
        unfinished: text of the best truncated hypothesis, which is written if none is listed.
    """
    if not listed:
        return ChosenOutput(unfinished, 0.0)
    text = ranking[0] if ranking else listed[0][0]
    return ChosenOutput(text, sum(prob for other, prob in listed if other == text))


def output_of(record: Mapping[str, Any]) -> ChosenOutput:
    """Return the output that `translate` chose for a record's line."""
    ranking = record["mbr"]["ranking"] if "mbr" in record else ()
    return chosen_output(
        [(hypothesis["text"], hypothesis["prob"]) for hypothesis in record["hypotheses"]],
        [entry["text"] for entry in ranking],
        record.get("unfinished", ""),
    )


def text_probabilities(hypotheses: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the probability of each listed text, summed over the hypotheses that have it."""
    probabilities: dict[str, float] = {}
    for hypothesis in hypotheses:
        text = hypothesis["text"]
        probabilities[text] = probabilities.get(text, 0.0) + hypothesis["prob"]
    return probabilities


def is_all_listed(record: Mapping[str, Any]) -> bool:
    """Return whether every hypothesis that finished is listed."""
    return bool(record["finished"] == len(record["hypotheses"]))


def unfinished_text_bound(record: Mapping[str, Any]) -> float:
    """Return a bound of the probability of any one text that did not finish.

    Without `slack`, a text is one token sequence, and one that did not finish has at most `bound`.
    With it, several sequences may become one text, and together they have at most `slack`.
    """
    bound: float = max(record["bound"], record.get("slack", 0.0))
    if record["certificate"] == "exhaustive":
        return bound
    return max(bound, sys.float_info.min)  # a bound too small for a float must not be 0
