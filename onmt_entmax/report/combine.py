"""Combine the exactness reports of several models into that of their sequence-level ensemble."""

import math
import sys
from collections.abc import Sequence
from typing import Any

from onmt_entmax.report.records import text_probabilities
from onmt_entmax.search.certificate import ROUNDING
from onmt_entmax.search.sequence_ensemble import (
    ListedSequences,
    SequenceEnsemble,
    average_sequences,
)


def combined(records: Sequence[dict[str, Any]], weights: Sequence[float]) -> dict[str, Any]:
    """Return the record of a sequence-level ensemble.

    A `prob` is a lower bound of the average probability, which exceeds it by `slack` at most; the
    key is missing where that is 0. There are no counts of dropped and truncated prefixes.

    Args:
        records: one for each model, of the same sentence, which is not blank.
        weights: of the models, positive, with sum 1.
    """
    ensemble = ensemble_of(records, weights)
    record = {key: records[0][key] for key in ("id", "source")}
    # Vocabularies may differ: report the unknown tokens of the model that knows the fewest.
    worst = max(records, key=lambda part: sum(part.get("unknown", {}).values()))
    record |= {key: worst[key] for key in ("source_tokens", "unknown", "unseen") if key in worst}
    pairs = zip(ensemble.sequences, ensemble.probabilities, strict=True)
    record |= {
        "certificate": ensemble.level,
        "bound": ensemble.bound,
        "gap": ensemble.gap if math.isfinite(ensemble.gap) else None,
        "proven": ensemble.proven,
        "mass": min(sum(ensemble.probabilities), 1.0),
        "excluded": excluded_by(records, weights),
        "finished": len(ensemble.sequences),
        "hypotheses": [
            {"text": text, "log_prob": math.log(prob) if prob else None, "prob": prob}
            for text, prob in pairs
        ],
    }
    if ensemble.bound:
        record["slack"] = ensemble.bound
    if not ensemble.sequences:
        unfinished = [part["unfinished"] for part in records if "unfinished" in part]
        if unfinished:
            record["unfinished"] = unfinished[0]
    return record


def ensemble_of(records: Sequence[dict[str, Any]], weights: Sequence[float]) -> SequenceEnsemble:
    """Return the sequence-level ensemble of several records; see `combined` for the arguments."""
    return average_sequences(list(map(_listed, records)), weights)


def excluded_by(records: Sequence[dict[str, Any]], weights: Sequence[float]) -> float:
    """Return the average probability that the constraints of several records ruled out."""
    return sum(
        weight * record.get("excluded", 0.0)
        for weight, record in zip(weights, records, strict=True)
    )


def _listed(record: dict[str, Any]) -> ListedSequences:
    """Return what a record says about each text's probability.

    A finished hypothesis that `-n_best` left out has at most the rest of `mass`; any other text at
    most `bound`, or `slack` if the record has a larger one.

    Args:
        record: as `answer_record` returns it.
    """
    listed = text_probabilities(record["hypotheses"])
    slack = record.get("slack", 0.0)
    rest = max(record["bound"], slack)
    if record["finished"] > len(record["hypotheses"]):
        rest = max(rest, max(0.0, record["mass"] - sum(listed.values())) + ROUNDING)
    if record["certificate"] != "exhaustive":
        rest = max(rest, sys.float_info.min)  # a bound too small for a float must not be 0
    return ListedSequences(listed, rest, slack)
