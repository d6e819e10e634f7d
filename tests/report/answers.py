"""Answers of one line, made by hand."""

import math
from dataclasses import replace

from onmt_entmax.report.answers import Answer, Decoded
from onmt_entmax.search import Hypothesis, Penalties, SearchResult
from tests.reports import certificate

TOKENS = (5,)  # the ids of every hypothesis; tests look at its text instead


def decoded(text: str, log_prob: float) -> Decoded:
    """Return a hypothesis with its text; its log-probability is its score."""
    return Decoded(text, Hypothesis(TOKENS, log_prob, score=log_prob))


def answer(
    level: str, hypothesis_count: int = 0, unfinished: str | None = None, excluded: float = 0.0
) -> Answer:
    """Return an answer whose hypotheses all have the text x, and log-probabilities -1, -2, ...

    If the level is not `exhaustive`, the search has dropped a prefix of log-probability -2.

    Args:
        level: level of the certificate.
        hypothesis_count: how many hypotheses are finished and listed.
        unfinished: text of a hypothesis that the length limit cut.
        excluded: probability of the outputs that constraints exclude.
    """
    log_probs = [-float(rank) for rank in range(1, hypothesis_count + 1)]
    hypotheses = tuple(decoded("x", log_prob) for log_prob in log_probs)
    dropped = {} if level == "exhaustive" else {"dropped": 1, "log_bound": -2.0, "gap": -1.0 + 2.0}
    proof = certificate(
        level=level,
        proven=0 if level == "none" else 1,
        mass=sum(map(math.exp, log_probs)),
        truncated=0 if unfinished is None else 1,
        excluded=excluded,
        log_excluded_bound=math.log(excluded) if excluded else -math.inf,
        strict=False,
        **dropped,
    )
    result = SearchResult(
        hypotheses=tuple(hypothesis.hypothesis for hypothesis in hypotheses),
        certificate=proof,
        finished=hypothesis_count,
        unfinished=None if unfinished is None else decoded(unfinished, -1.0).hypothesis,
        rows=4,  # no test relies on these costs of the search
        support=6,
    )
    return Answer(0, "a", result, hypotheses, unfinished=unfinished)


def penalised_answer() -> Answer:
    """Return an answer under a length penalty."""
    return replace(answer("optimal", 2), penalties=Penalties("avg"))


# A text may have line ends once a transform is undone.
TEXTS_WITH_LINE_ENDS = ["a\nb\r\nc\r", "d\u2028e"]


def answer_with_line_ends() -> Answer:
    """Return an answer with these texts."""
    first, second = TEXTS_WITH_LINE_ENDS
    return replace(
        answer("exhaustive", 2), hypotheses=(decoded(first, -1.0), decoded(second, -2.0))
    )
