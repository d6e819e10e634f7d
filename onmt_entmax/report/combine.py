"""Combine the exactness reports of several models into that of their sequence-level ensemble."""

import math
from collections.abc import Sequence

from onmt_entmax.files import finite
from onmt_entmax.report.records import (
    Record,
    is_all_listed,
    text_probabilities,
    unfinished_text_bound,
)
from onmt_entmax.search.certificate import ROUNDING
from onmt_entmax.search.sequence_ensemble import ListedSequences, average_sequences


def combined(records: Sequence[Record], weights: Sequence[float]) -> Record:
    """Return the record of a sequence-level ensemble.

    A `prob` is a lower bound of the average probability, which exceeds it by `slack` at most; a
    record without `slack` has exact probabilities. Dropped and truncated prefixes are not counted.

    Args:
        records: one for each model, of the same sentence, which is not blank.
        weights: weights of the models, positive, with sum 1.
    """
    ensemble = average_sequences(list(map(listed_sequences, records)), weights)
    record = {
        **_source_record(records),
        "certificate": ensemble.level,
        "bound": ensemble.bound,
        "gap": finite(ensemble.gap),
        "proven": ensemble.proven,
        "mass": min(sum(ensemble.probabilities), 1.0),  # a sum of floats may exceed 1
        "excluded": excluded_by(records, weights),
        "finished": len(ensemble.sequences),
        "hypotheses": [
            {"text": text, "log_prob": math.log(prob) if prob else None, "prob": prob}
            for text, prob in zip(ensemble.sequences, ensemble.probabilities, strict=True)
        ],
    }
    if ensemble.bound:
        # A model adds at most its part of the bound to the average probability of a text, whether
        # or not it lists the text. So the bound of unlisted texts is the slack of listed ones, too.
        record["slack"] = ensemble.bound
    if not ensemble.sequences:
        # Nothing is proven about an unfinished text, so any will do: that of the first report
        # which has one.
        unfinished = [part["unfinished"] for part in records if "unfinished" in part]
        if unfinished:
            record["unfinished"] = unfinished[0]
    return record


def excluded_by(records: Sequence[Record], weights: Sequence[float]) -> float:
    """Return the average probability that the constraints of several records ruled out."""
    return sum(
        weight * record.get("excluded", 0.0)
        for weight, record in zip(weights, records, strict=True)
    )


def _source_record(records: Sequence[Record]) -> Record:
    """Return the source, with the counts of the model that knows fewest of its tokens."""
    worst = max(records, key=lambda part: sum(part.get("unknown", {}).values()))
    record = {"id": records[0]["id"], "source": records[0]["source"]}
    for key in ("source_tokens", "unknown", "unseen"):
        if key in worst:
            record[key] = worst[key]
    return record


def listed_sequences(record: Record) -> ListedSequences:
    """Return what a record says about each text's probability.

    Another text is either one that the search did not finish, or one that `-n_best` left out. The
    record does not tell which, so the larger of their bounds holds for all.

    Args:
        record: record that `answer_record` returned.
    """
    listed = text_probabilities(record["hypotheses"])
    rest = unfinished_text_bound(record)
    if not is_all_listed(record):
        # Texts that were left out share what the listed ones leave of `mass`.
        left_out = max(0.0, record["mass"] - sum(listed.values())) + ROUNDING
        rest = max(rest, left_out)
    return ListedSequences(listed, rest, record.get("slack", 0.0))
