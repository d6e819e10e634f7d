"""Claims that only random searches are checked for, besides those of `tests.search.checks`.

docs/certificates.md derives the claims. Their words:

F                  the finished sequences
hypotheses         those that are returned: all of F with `n_best` 0, otherwise its `n_best` best
bound              no sequence outside F is more probable
gap                score of the first hypothesis, less the best that a sequence outside F may have;
                   of an average, less the best that any other sequence may have
proven hypotheses  those of the first ranks, which no other sequence can take
level              exhaustive: F is all that the model can write; optimal: the first hypothesis has
                   the best score of all; none: neither is proven
"""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from onmt_entmax.search import SearchConfig, SearchResult
from onmt_entmax.search.certificate import Level
from onmt_entmax.search.sequence_ensemble import SequenceEnsemble
from tests.search.checks import check
from tests.search.enumeration import EnumeratedSupport, Tokens
from tests.search.expressions import Matcher

# Scores are sums of steps in float32, over at most six of them.
_SCORE_TOLERANCE = 1e-4
# Averages are sums of a few probabilities in float32.
_AVERAGE_TOLERANCE = 1e-6


def check_result(
    result: SearchResult,
    support: EnumeratedSupport,
    config: SearchConfig,
    tolerance: float,
    ruled_out: float | None = None,
) -> Level:
    """Check a result: its gap and the number of its hypotheses here, all else by `check`.

    Returns:
        The level of the certificate.
    """
    check(result, support, config, tolerance, ruled_out)
    if result.hypotheses and config.n_best == 0:
        _check_gap(result, support, tolerance)
    assert len(result.hypotheses) == min(config.n_best or math.inf, result.finished)
    return result.certificate.level


def _check_gap(result: SearchResult, support: EnumeratedSupport, tolerance: float) -> None:
    """The bound is not below the best sequence outside F, so the gap is not above the true one."""
    in_f = {hypothesis.tokens for hypothesis in result.hypotheses}
    outside = [p for tokens, p in support.sequences.items() if tokens not in in_f]
    best_outside = max([*outside, *support.prefixes.values()], default=-math.inf)
    true_gap = result.hypotheses[0].log_prob - best_outside
    assert result.certificate.gap <= true_gap + tolerance


def check_satisfied(
    result: SearchResult, support: EnumeratedSupport, matches: Matcher, tolerance: float
) -> None:
    """Check the limits of the probability that the model's own output satisfies an expression.

    That probability is at least that of the enumerated sequences that match, and at most 1 less
    that of the others. The limits are equal if all that the model can write was searched.

    Args:
        result: of the search.
        support: of the model, whether it satisfies the expression or not.
        matches: tells whether a sequence satisfies the expression.
        tolerance: of sums of probabilities.
    """
    assert result.certificate.satisfied is not None
    least, most = result.certificate.satisfied
    matching = sum(math.exp(p) for tokens, p in support.sequences.items() if matches(tokens))
    others = sum(math.exp(p) for tokens, p in support.sequences.items() if not matches(tokens))
    assert 0 <= least <= most <= 1
    assert matching <= most + tolerance
    assert least <= 1 - others + tolerance
    if result.certificate.level == "exhaustive" and not support.excluded:
        assert least == most


def check_penalised_result(
    result: SearchResult, scores: Mapping[Tokens, float], *, is_cut: bool
) -> Level:
    """Check a result under penalties or with a length reward.

    Args:
        result: of the search.
        scores: of all sequences.
        is_cut: whether the length limit of the search cuts any of them.

    Returns:
        The level of the certificate.
    """
    for hypothesis in result.hypotheses:
        assert math.isclose(
            hypothesis.score, scores[hypothesis.tokens], rel_tol=0, abs_tol=_SCORE_TOLERANCE
        )
    ours = [hypothesis.score for hypothesis in result.hypotheses]
    assert all(better >= worse for better, worse in pairwise(ours))
    certificate = result.certificate
    if certificate.level == "exhaustive":
        assert not is_cut
        assert result.finished == len(scores)
    # The proven hypotheses have the best scores of all; infinite ones are equal but not close.
    proven = ours[: certificate.proven]
    best = sorted(scores.values(), reverse=True)[: len(proven)]
    for score, expected in zip(proven, best, strict=True):
        assert score == expected or math.isclose(
            score, expected, rel_tol=0, abs_tol=_SCORE_TOLERANCE
        )
    if certificate.level == "none":
        assert certificate.proven == 0
    return certificate.level


class SequenceDistribution(NamedTuple):
    """A distribution over sequences, known from enumeration up to the length limit of a search."""

    probabilities: Mapping[str, float]
    """Probability of each sequence within the limit; all others within it have 0."""
    most_beyond: float
    """Probability of the most probable prefix beyond the limit: no longer sequence has more."""


def check_average(average: SequenceEnsemble, truth: SequenceDistribution) -> Level:
    """Check what an average of listed sequences claims about the true average.

    Args:
        average: of the lists of several searches.
        truth: the average of the distributions that were searched.

    Returns:
        The level of the average.
    """
    _check_listed_probabilities(average, truth.probabilities)
    listed = set(average.sequences)
    unlisted = [p for text, p in truth.probabilities.items() if text not in listed]
    assert max([*unlisted, truth.most_beyond]) <= average.bound + _AVERAGE_TOLERANCE
    if average.level == "exhaustive":
        assert not unlisted
    _check_proven_ranks(average, truth.probabilities)
    if average.level == "optimal":
        _check_optimal_average(average, truth.probabilities)
    return average.level


def _check_listed_probabilities(average: SequenceEnsemble, truth: Mapping[str, float]) -> None:
    """Each probability is a lower limit, and the true one is above it by at most the bound.

    Models that did not list the sequence add nothing to it, so their part is missing.
    """
    for text, least in zip(average.sequences, average.probabilities, strict=True):
        most = least + average.bound
        assert least - _AVERAGE_TOLERANCE <= truth[text] <= most + _AVERAGE_TOLERANCE


def _check_proven_ranks(average: SequenceEnsemble, truth: Mapping[str, float]) -> None:
    """No sequence, listed or not, is more probable than a proven one that stands before it."""
    for rank, text in enumerate(average.sequences[: average.proven]):
        later = truth.keys() - set(average.sequences[: rank + 1])
        most = max((truth[other] for other in later), default=0.0)
        assert truth[text] >= most - _AVERAGE_TOLERANCE


def _check_optimal_average(average: SequenceEnsemble, truth: Mapping[str, float]) -> None:
    """No sequence is more probable than the first, whose gap is at most the true one."""
    first = average.sequences[0]
    assert truth[first] >= max(truth.values()) - _AVERAGE_TOLERANCE
    others = [p for text, p in truth.items() if text != first]
    second = max([*others, 1e-300])  # a probability that has a logarithm
    # Both probabilities are known up to 1e-6, so their ratio up to 1e-6 of the smaller one.
    error = 2 * _AVERAGE_TOLERANCE * (1 + 1 / max(second, _AVERAGE_TOLERANCE))
    assert average.gap <= math.log(truth[first] / second) + error
