"""Records of exactness reports, of one sentence and several models, put together to one."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from onmt_entmax.data.inflection import turned
from onmt_entmax.report.writers import ROUNDING
from onmt_entmax.search.ensemble import Listed, Mixture, mix


def listed(record: dict[str, Any], reverse: bool) -> Listed:
    """What a record says of the strings.

    A string that finished and is not listed, because `-n_best` was small, has at most what is
    left of `mass`; any other at most `bound`, or `slack` where the record has one.

    Args:
        record: as `Answer.record` has it.
        reverse: whether its texts are to be turned around, token by token.
    """
    found: dict[str, float] = {}
    for hypothesis in record["hypotheses"]:
        text = turned(hypothesis["text"], reverse)
        found[text] = found.get(text, 0.0) + hypothesis["prob"]
    slack = record.get("slack", 0.0)
    rest = max(record["bound"], slack)
    if record["finished"] > len(record["hypotheses"]):
        rest = max(rest, max(0.0, record["mass"] - sum(found.values())) + ROUNDING)
    if record["certificate"] != "exhaustive":
        rest = max(rest, sys.float_info.min)  # a bound too small for a float is not 0
    return Listed(found, rest, slack)


def mixed(
    records: Sequence[dict[str, Any]], reverse: Sequence[bool], weights: Sequence[float]
) -> dict[str, Any]:
    """The record of a mixture, without what one does not have (dropped and truncated prefixes).

    A probability is the least that a string has on average; it has at most `slack` more, which is
    missing where that is nothing.

    Args:
        records: one for each model, of the same sentence, which is not blank.
        reverse: of each, whether its texts are to be turned around.
        weights: as many, positive, with sum 1.
    """
    pairs = list(zip(records, reverse, strict=True))
    mixture = mix([listed(*pair) for pair in pairs], weights)
    excluded = sum(w * r.get("excluded", 0.0) for w, r in zip(weights, records, strict=True))
    record = _as_record(records[0], mixture, excluded)
    unfinished = [turned(r["unfinished"], each) for r, each in pairs if "unfinished" in r]
    if unfinished and not mixture.strings:
        record["unfinished"] = unfinished[0]
    return record


def _as_record(of_first: dict[str, Any], mixture: Mixture, excluded: float) -> dict[str, Any]:
    pairs = zip(mixture.strings, mixture.probabilities, strict=True)
    record = {
        "id": of_first["id"],
        "source": of_first["source"],
        "certificate": mixture.level,
        "bound": mixture.bound,
        "gap": mixture.gap if math.isfinite(mixture.gap) else None,
        "proven": mixture.proven,
        "mass": min(sum(mixture.probabilities), 1.0),
        "excluded": excluded,
        "finished": len(mixture.strings),
        "hypotheses": [
            {"text": text, "log_prob": math.log(prob) if prob else None, "prob": prob}
            for text, prob in pairs
        ],
    }
    return record | ({"slack": mixture.bound} if mixture.bound else {})
