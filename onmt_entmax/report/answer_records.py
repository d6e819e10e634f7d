"""The record of an answer in the exactness report.

docs/report-records.md describes its keys. JSON has no infinity, so null takes its place.
"""

from collections import Counter
from typing import Any

from onmt_entmax.files import finite
from onmt_entmax.report.answers import Answer, Decoded, Drawn
from onmt_entmax.report.mbr import decision_record
from onmt_entmax.report.records import Record
from onmt_entmax.search.certificate import ROUNDING, SearchResult

# The certificate of a blank line: nothing is proven.
_BLANK = {
    "certificate": "none",
    "bound": 1.0,
    "gap": None,
    "proven": 0,
    "mass": 0.0,
    "dropped": 0,
    "truncated": 0,
    "excluded": 0.0,
    "finished": 0,
}


def answer_record(answer: Answer) -> Record:
    """Return the record of a line.

    A blank line has no hypotheses. Nothing is proven of samples, so their record has no
    certificate.
    """
    if answer.samples is not None:
        samples = [_sample_record(drawn) for drawn in answer.samples]
        return {**_source_record(answer), "samples": samples}
    if answer.result is None:
        return {"id": answer.id, "source": answer.source, **_BLANK, "hypotheses": []}
    scored = answer.penalties.change_scores
    return {
        **_source_record(answer),
        **_certificate_record(answer.result),
        "hypotheses": [hypothesis_record(decoded, scored=scored) for decoded in answer.hypotheses],
        **_optional_record(answer, answer.result),
    }


def hypothesis_record(decoded: Decoded, *, scored: bool) -> dict[str, Any]:
    """Return the record of a hypothesis.

    Args:
        decoded: the hypothesis with its text.
        scored: whether to add its score under penalties.
    """
    hypothesis = decoded.hypothesis
    record: dict[str, Any] = {
        "text": decoded.text,
        "log_prob": hypothesis.log_prob,
        "prob": hypothesis.prob,
    }
    if scored:  # infinite if a penalty is
        record["score"] = finite(hypothesis.score)
    if decoded.tokens is not None:
        record["tokens"] = decoded.tokens
    if decoded.alignment is not None:
        record["alignment"] = decoded.alignment.as_dict()
    return record


def _sample_record(drawn: Drawn) -> dict[str, Any]:
    """Return the record of a sample."""
    return {
        "text": drawn.text,
        "log_prob": drawn.sample.log_prob,
        "prob": drawn.sample.prob,
        "complete": drawn.sample.complete,
    }


def _source_record(answer: Answer) -> dict[str, Any]:
    """Return the source with the counts of tokens that training never saw."""
    tokens = answer.source_tokens
    record: dict[str, Any] = {
        "id": answer.id,
        "source": answer.source,
        "source_tokens": tokens.count,
    }
    if tokens.unknown:
        record["unknown"] = Counter(tokens.unknown)
    if tokens.unseen:
        record["unseen"] = Counter(token for _, token in tokens.unseen)
    return record


def _certificate_record(result: SearchResult) -> dict[str, Any]:
    """Return what a search proved; its keys are those of `_BLANK`."""
    certificate = result.certificate
    return {
        "certificate": certificate.level,
        "bound": certificate.bound,
        # It is infinite if nothing was dropped, nothing finished, or a penalty is infinite.
        "gap": finite(certificate.gap),
        "proven": certificate.proven,
        "mass": min(certificate.mass, 1.0),  # a sum of floats may exceed 1
        "dropped": certificate.dropped,
        "truncated": certificate.truncated,
        "excluded": min(certificate.excluded, 1.0),
        "finished": result.finished,
    }


def _optional_record(answer: Answer, result: SearchResult) -> dict[str, Any]:
    """Return the keys that only some lines have."""
    record: dict[str, Any] = {}
    if answer.penalties.change_scores:
        record["penalties"] = vars(answer.penalties)
    if result.certificate.satisfied is not None:
        record["satisfied"] = list(result.certificate.satisfied)
    slack = _slack(answer, result)
    if slack:
        record["slack"] = slack
    if answer.unfinished is not None:
        record["unfinished"] = answer.unfinished
    if answer.abstained:
        record["abstained"] = True
    if answer.mbr is not None:
        record["mbr"] = decision_record(answer.mbr)
    if answer.verification is not None:
        record["verified"] = answer.verification.agrees
    return record


def _slack(answer: Answer, result: SearchResult) -> float:
    """Return how much the probability of a text may exceed that of its hypotheses together.

    Certificates are about token sequences. If sequences that are not listed can become the same
    text, it may have all the probability that is not listed.
    """
    if not answer.merged:
        return 0.0
    listed = answer.hypotheses
    if result.certificate.level == "exhaustive" and result.finished == len(listed):
        return 0.0
    unlisted = 1.0 - sum(decoded.hypothesis.prob for decoded in listed)
    return min(max(0.0, unlisted) + ROUNDING, 1.0)
