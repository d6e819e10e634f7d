"""Checks of a search result against the enumerated support: one function for each claim.

The claims are those of docs/certificates.md, about F, the finished sequences, and D, the prefixes
that the search did not follow. They are checked for searches without penalties, whose scores are
log-probabilities. A result that claims little passes, so callers count results of each level.
"""

import math

import pytest

from onmt_entmax.search import Certificate, SearchConfig, SearchResult
from tests.search.enumeration import EnumeratedSupport


def check(
    result: SearchResult,
    support: EnumeratedSupport,
    config: SearchConfig,
    tolerance: float = 1e-9,
    ruled_out: float | None = None,
) -> None:
    """Check every claim of a result.

    Args:
        result: result of a search without penalties.
        support: the sequences that the request allows.
        config: options of the search.
        tolerance: by how much log-probabilities, and sums of probabilities, may differ.
        ruled_out: if the request has an expression, the largest log-probability of any sequence
            that it excludes; None: only tokens exclude, and `support.excluded` has all of it.

    Raises:
        AssertionError: a claim is wrong.
    """
    certificate = result.certificate
    _check_hypotheses(result, support, tolerance)
    best_unlisted = _best_unlisted(result, support)
    if config.n_best == 0:
        _check_list_of_all(result, best_unlisted, tolerance)
    _check_proven_ranks(result, best_unlisted, tolerance)
    if certificate.level == "exhaustive":
        _check_exhaustive(result, support, config, tolerance)
    if certificate.level == "optimal":
        _check_optimal(result, support, tolerance)
    assert not certificate.strict or certificate.level == "exhaustive"
    largest_excluded = max(support.excluded.values(), default=-math.inf)
    assert certificate.log_excluded_bound <= largest_excluded + tolerance
    if ruled_out is None:
        ruled_out = largest_excluded
    _check_excluded_bound(certificate, ruled_out, tolerance)
    if result.only:
        _check_only(support, ruled_out)


def _best_unlisted(result: SearchResult, support: EnumeratedSupport) -> float:
    """Return the largest log-probability of an allowed sequence that is not returned.

    A prefix beyond the length limit stands for its continuations, which are not enumerated.
    """
    listed = {hypothesis.tokens for hypothesis in result.hypotheses}
    unlisted = [p for tokens, p in support.sequences.items() if tokens not in listed]
    return max([*unlisted, *support.prefixes.values()], default=-math.inf)


def _check_hypotheses(result: SearchResult, support: EnumeratedSupport, tolerance: float) -> None:
    """Hypotheses are different sequences of the support, the best score first."""
    hypotheses = result.hypotheses
    for hypothesis in hypotheses:
        expected = support.sequences[hypothesis.tokens]
        assert hypothesis.log_prob == pytest.approx(expected, abs=tolerance)
    assert len({hypothesis.tokens for hypothesis in hypotheses}) == len(hypotheses)
    scores = [hypothesis.score for hypothesis in hypotheses]
    assert scores == sorted(scores, reverse=True)
    if hypotheses:
        assert result.best is hypotheses[0]


def _check_list_of_all(result: SearchResult, best_unlisted: float, tolerance: float) -> None:
    """If all of F is returned, `bound` holds for every other sequence, and `mass` is F's."""
    certificate = result.certificate
    assert best_unlisted <= certificate.log_bound + tolerance
    listed_mass = sum(hypothesis.prob for hypothesis in result.hypotheses)
    assert certificate.mass == pytest.approx(listed_mass, abs=tolerance)


def _check_proven_ranks(result: SearchResult, best_unlisted: float, tolerance: float) -> None:
    """No sequence that is not returned is more probable than a proven hypothesis."""
    for hypothesis in result.hypotheses[: result.certificate.proven]:
        assert hypothesis.log_prob >= best_unlisted - tolerance


def _check_exhaustive(
    result: SearchResult, support: EnumeratedSupport, config: SearchConfig, tolerance: float
) -> None:
    """F is the whole support: nothing was cut, and with what is excluded it has all the mass."""
    certificate = result.certificate
    assert not support.prefixes
    assert result.finished == len(support.sequences)
    if config.n_best == 0:
        assert len(result.hypotheses) == len(support.sequences)
    assert certificate.mass + certificate.excluded == pytest.approx(1, abs=tolerance)


def _check_optimal(result: SearchResult, support: EnumeratedSupport, tolerance: float) -> None:
    """The first hypothesis is as probable as the best sequence, and the gap is not negative."""
    best = max([*support.sequences.values(), *support.prefixes.values()], default=-math.inf)
    assert result.hypotheses[0].log_prob == pytest.approx(best, abs=tolerance)
    assert result.certificate.gap >= 0


def _check_excluded_bound(certificate: Certificate, ruled_out: float, tolerance: float) -> None:
    """No excluded sequence is more probable than the larger of the two bounds.

    Each excluded sequence starts with a prefix that the search met and excluded, or with one in D.
    """
    bound = max(certificate.log_excluded_bound, certificate.log_bound)
    assert ruled_out <= bound + tolerance


def _check_only(support: EnumeratedSupport, ruled_out: float) -> None:
    """There is one sequence of positive probability, even counting those that are excluded."""
    assert len(support.sequences) == 1
    assert ruled_out == -math.inf
