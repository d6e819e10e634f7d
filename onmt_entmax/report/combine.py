"""Combine the exactness reports of several models into that of their sequence-level ensemble."""

import math
import sys
from collections.abc import Sequence
from typing import Any

from onmt_entmax.data.inflection import order_tokens
from onmt_entmax.search.certificate import ROUNDING
from onmt_entmax.search.sequence_ensemble import (
    ListedSequences,
    SequenceEnsemble,
    average_sequences,
)


def combined(
    records: Sequence[dict[str, Any]], reverse: Sequence[bool], weights: Sequence[float]
) -> dict[str, Any]:
    """Return the record of a sequence-level ensemble.

    A `prob` is a lower bound of the average probability, which exceeds it by `slack` at most; the
    key is missing where that is 0. There are no counts of dropped and truncated prefixes.

    Args:
        records: one for each model, of the same sentence, which is not blank.
        reverse: whether each model's texts are reversed, token by token.
        weights: of the models, positive, with sum 1.
    """
    pairs = list(zip(records, reverse, strict=True))
    ensemble = average_sequences([_listed(*pair) for pair in pairs], weights)
    # Vocabularies may differ: the average is as good as the input of the worst.
    worst = max(records, key=lambda record: sum(record.get("unknown", {}).values()))
    excluded = sum(w * r.get("excluded", 0.0) for w, r in zip(weights, records, strict=True))
    head = {key: records[0][key] for key in ("id", "source")}
    head |= {key: worst[key] for key in ("source_tokens", "unknown", "unseen") if key in worst}
    record = head | _found(ensemble, excluded)
    unfinished = [order_tokens(r["unfinished"], each) for r, each in pairs if "unfinished" in r]
    if unfinished and not ensemble.sequences:
        record["unfinished"] = unfinished[0]
    return record


def _listed(record: dict[str, Any], reverse: bool) -> ListedSequences:
    """Return what a record says about each text's probability.

    A finished hypothesis that `-n_best` left out has at most the rest of `mass`; any other text at
    most `bound`, or `slack` if the record has one.

    Args:
        record: as `Answer.record` returns it.
        reverse: whether to reverse its texts, token by token.
    """
    found: dict[str, float] = {}
    for hypothesis in record["hypotheses"]:
        text = order_tokens(hypothesis["text"], reverse)
        found[text] = found.get(text, 0.0) + hypothesis["prob"]
    slack = record.get("slack", 0.0)
    rest = max(record["bound"], slack)
    if record["finished"] > len(record["hypotheses"]):
        rest = max(rest, max(0.0, record["mass"] - sum(found.values())) + ROUNDING)
    if record["certificate"] != "exhaustive":
        rest = max(rest, sys.float_info.min)  # a bound too small for a float must not be 0
    return ListedSequences(found, rest, slack)


def _found(ensemble: SequenceEnsemble, excluded: float) -> dict[str, Any]:
    """Return the part of a record that says what was found."""
    pairs = zip(ensemble.sequences, ensemble.probabilities, strict=True)
    record = {
        "certificate": ensemble.level,
        "bound": ensemble.bound,
        "gap": ensemble.gap if math.isfinite(ensemble.gap) else None,
        "proven": ensemble.proven,
        "mass": min(sum(ensemble.probabilities), 1.0),
        "excluded": excluded,
        "finished": len(ensemble.sequences),
        "hypotheses": [
            {"text": text, "log_prob": math.log(prob) if prob else None, "prob": prob}
            for text, prob in pairs
        ],
    }
    return record | ({"slack": ensemble.bound} if ensemble.bound else {})
