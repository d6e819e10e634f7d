"""Claims of a search, checked against all sequences of a random model.

docs/certificates.md derives the claims. `tests.search.checks` checks those that other tests need,
too. The terms:

F                  the finished sequences
hypotheses         those that are returned: all of F with `n_best` 0, otherwise its `n_best` best
bound              no sequence outside F is more probable
gap                score of the first hypothesis, less the best that a sequence outside F may have
proven hypotheses  those of the first ranks, which no other sequence can take
level              exhaustive: F is all that the model can write; optimal: the first hypothesis has
                   the best score of all; none: neither is proven
"""

import math
from collections.abc import Mapping
from itertools import pairwise

from onmt_entmax.search import SearchConfig, SearchResult
from onmt_entmax.search.certificate import Level
from tests.search.checks import check
from tests.search.enumeration import EnumeratedSupport, Tokens
from tests.search.expressions import Matcher

# Scores are sums of steps in float32, over at most six of them.
_SCORE_TOLERANCE = 1e-4


def check_result(
    result: SearchResult,
    support: EnumeratedSupport,
    config: SearchConfig,
    tolerance: float,
    ruled_out: float | None = None,
) -> Level:
    """Check all claims of a result; return the level of its certificate.

    `check` checks most of them, and has the same arguments. The gap and the number of hypotheses
    are checked here.
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
        result: the result of the search.
        support: all sequences of the model, also those that do not satisfy the expression.
        matches: tells whether a sequence satisfies the expression.
        tolerance: tolerance of sums of probabilities.
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
        result: the result of the search.
        scores: the scores of all sequences.
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
