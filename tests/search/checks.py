"""Checks of a search result against the enumerated support."""

import math

import pytest

from onmt_entmax.search import SearchConfig, SearchResult
from tests.search.enumeration import EnumeratedSupport


def check(
    result: SearchResult,
    support: EnumeratedSupport,
    config: SearchConfig,
    tolerance: float = 1e-9,
    ruled_out: float | None = None,
) -> None:
    """Check every claim of a result against the whole support.

    `ruled_out` is the largest log-probability of an excluded sequence, if not that of `support`.
    """
    certificate = result.certificate
    outside = dict(support.sequences)
    for hypothesis in result.hypotheses:
        assert outside.pop(hypothesis.tokens) == pytest.approx(hypothesis.log_prob, abs=tolerance)
    scores = [hypothesis.score for hypothesis in result.hypotheses]
    assert scores == sorted(scores, reverse=True)
    # A truncated prefix stands for sequences that the enumeration does not contain.
    unseen = max([*outside.values(), *support.prefixes.values()], default=-math.inf)
    if config.n_best == 0:
        assert unseen <= certificate.log_bound + tolerance
        assert certificate.mass == pytest.approx(
            sum(h.prob for h in result.hypotheses), abs=tolerance
        )
    for hypothesis in result.hypotheses[: certificate.proven]:
        assert hypothesis.log_prob >= unseen - tolerance
    if certificate.level == "exhaustive":
        assert not support.prefixes
        assert result.finished == len(support.sequences)
        assert config.n_best or not outside
        total = certificate.mass + certificate.excluded
        assert total == pytest.approx(1, abs=tolerance)
    elif certificate.level == "optimal":
        best = max(*support.sequences.values(), *support.prefixes.values(), -math.inf)
        assert result.hypotheses[0].log_prob == pytest.approx(best, abs=tolerance)
        assert certificate.gap >= 0
    excluded = max(support.excluded.values(), default=-math.inf)
    assert certificate.log_excluded_bound <= excluded + tolerance
    most = excluded if ruled_out is None else ruled_out
    assert most <= max(certificate.log_excluded_bound, certificate.log_bound) + tolerance
    assert not result.only or (len(support.sequences) == 1 and most == -math.inf)
    assert not certificate.strict or certificate.level == "exhaustive"
    if result.hypotheses:
        assert result.best is result.hypotheses[0]
