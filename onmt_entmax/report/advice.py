"""Advise the user on problems that most sentences of a report have."""

from onmt_entmax.report.counts import CertificateCounts


def advice_on(counts: CertificateCounts) -> dict[str, str]:
    """Return problems of most sentences, each with what the user can do about it."""
    if 2 * counts.unfinished > counts.sentences:
        # Only this: an output that did not finish is not certified either.
        return {"most sentences have no finished output": "train longer, or raise -max_length"}
    advice = {}
    if 2 * counts.empty > counts.sentences:
        advice["most outputs are empty"] = (
            "try -length_reward 1 or more, or -min_length 1, or train longer"
        )
    if counts.sentences and counts.levels["none"] == counts.sentences:
        advice["nothing is certified"] = (
            "try -search exact, with a larger -budget if need be, or train longer"
        )
    return advice
