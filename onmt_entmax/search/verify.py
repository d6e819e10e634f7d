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
    proven = [h.tokens for h in result.hypotheses[: claimed.proven]]
    complete, budget = claimed.level == "exhaustive", budget or Budget()
    ended = False
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
        ended = not is_settled(again, count) and (spent or again.certificate.truncated == 0)
    found = {h.tokens: h.score for h in again.hypotheses}
    scores = [
        found[tokens] if tokens in found else _score(stepper, batch, config, tokens, automaton)
        for tokens in proven
    ]
    least = scores[-1] if scores else math.inf
    others = (score for tokens, score in found.items() if tokens not in proven)
    contradicted = (
        any(map(math.isnan, scores))
        or any(later > score + _ROUNDING for score, later in pairwise(scores))
        or any(score > least + _ROUNDING for score in others)
        or (complete and again.finished > result.finished)
    )
    # The last hypothesis that is proven now bounds the scores of all that was not found.
    last = again.hypotheses[: again.certificate.proven][-1:]
    agrees = not contradicted and (not proven or any(h.score <= least + _ROUNDING for h in last))
    if complete:
        agrees &= again.certificate.level == "exhaustive" and again.finished == result.finished
    undecided = ended and not agrees and not contradicted
    return Verification(None if undecided else agrees)


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
