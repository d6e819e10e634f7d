"""Verification of a certificate: search the sentence again, alone and in float64.

A certificate is about the probabilities that its run computed. In another batch or precision the
same prefix rounds differently: two sequences of nearly equal probability may change places, and a
token at the very edge of the support may enter or leave it. Sequences of equal score have no order,
so the scores decide: those that float64 gives the proven hypotheses.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from onmt_entmax.search.automaton import Automaton
from onmt_entmax.search.beam import beam_search
from onmt_entmax.search.certificate import SearchResult
from onmt_entmax.search.config import Budget, SearchConfig
from onmt_entmax.search.exact import exact_search, is_settled
from onmt_entmax.search.stepper import Stepper

_ROUNDING = 1e-9  # of scores in float64; less apart, they are equal


@dataclass(frozen=True)
class Verification:
    """Comparison of a result with its recomputation."""

    agrees: bool | None
    """Whether the proven hypotheses are proven again, in an order of falling scores, and an
    exhausted support is exhausted again with as many sequences. True if nothing was claimed; None
    if the budget ended before all was proven again, and nothing found contradicts it."""


def verify(
    stepper: Stepper,
    batch: Any,
    result: SearchResult,
    config: SearchConfig,
    prefix: Sequence[int] = (),
    budget: Budget | None = None,
    automaton: Automaton | None = None,
    banned: Collection[int] = (),
) -> Verification:
    """Search one sentence again and compare; use an exact search if the beam does not suffice.

    Args:
        stepper: of the same model in float64 (`stepper.double()`).
        batch: the sentence alone.
        result: what is to be verified.
        config: of the search that gave it.
        prefix: target prefix of that search.
        budget: of the exact search.
        automaton: of that search.
        banned: token ids that its output could not have.
    """
    claimed = result.certificate
    proven = [hypothesis.tokens for hypothesis in result.hypotheses[: claimed.proven]]
    complete, budget = claimed.level == "exhaustive", budget or Budget()
    budget_ended = False
    again = beam_search(stepper, batch, config, [prefix], [automaton], [banned])[0]
    if again.certificate.proven < len(proven) or (
        complete and again.certificate.level != "exhaustive"
    ):
        # An exact search, or rounding at the edge of the beam, may have proven more than this beam.
        # Looking for one sequence more than there should be makes the search go everywhere.
        count = result.finished + 1 if complete else max(1, len(proven))
        more = replace(config, n_best=count)
        again = exact_search(
            stepper, batch, more, budget, prefix, automaton=automaton, banned=banned
        )
        # Truncated prefixes also leave it unsettled, and a larger budget would not help.
        spent = again.rows >= budget.expansions
        budget_ended = not is_settled(again, count) and (spent or again.certificate.truncated == 0)
    scores_again = {hypothesis.tokens: hypothesis.score for hypothesis in again.hypotheses}
    scores = [
        scores_again[tokens]
        if tokens in scores_again
        else _score(stepper, batch, config, tokens, automaton)
        for tokens in proven
    ]
    others = [score for tokens, score in scores_again.items() if tokens not in proven]
    contradicted = _contradict(scores, others)
    # The last hypothesis that is proven now bounds the scores of all that was not found.
    least = scores[-1] if scores else math.inf
    last_proven = again.hypotheses[: again.certificate.proven][-1:]
    proven_again = not proven or any(last.score <= least + _ROUNDING for last in last_proven)
    agrees = not contradicted and proven_again
    if complete:
        contradicted = contradicted or again.finished > result.finished
        exhausted_again = again.certificate.level == "exhaustive"
        agrees = agrees and exhausted_again and again.finished == result.finished
    if budget_ended and not agrees and not contradicted:
        return Verification(None)
    return Verification(agrees)


def _contradict(scores: Sequence[float], others: Sequence[float]) -> bool:
    """Return whether scores contradict the order that was proven.

    Args:
        scores: in float64, of the proven hypotheses, in their order; nan for an excluded one.
        others: of other hypotheses that were found.
    """
    if any(map(math.isnan, scores)):
        return True
    if any(later > score + _ROUNDING for score, later in pairwise(scores)):
        return True
    least = scores[-1] if scores else math.inf
    return any(score > least + _ROUNDING for score in others)


def _score(
    stepper: Stepper,
    batch: Any,
    config: SearchConfig,
    tokens: tuple[int, ...],
    automaton: Automaton | None,
) -> float:
    """Return the score of a sequence that a search has not kept; nan if the model excludes it."""
    only = replace(config, n_best=1, max_length=len(tokens))
    (result,) = beam_search(stepper, batch, only, [tokens], [automaton])
    return result.hypotheses[0].score if result.hypotheses else math.nan
