"""Verification of a certificate: search the sentence again, alone and in float64.

A certificate is about the probabilities that its run computed. In another batch or precision the
same prefix rounds differently: two sequences of nearly equal probability may change places, and a
token at the very edge of the support may enter or leave it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from onmt_entmax.search.automaton import Automaton
from onmt_entmax.search.beam import beam_search
from onmt_entmax.search.certificate import Level, SearchResult
from onmt_entmax.search.config import Budget, SearchConfig
from onmt_entmax.search.exact import exact_search, is_settled
from onmt_entmax.search.stepper import Stepper


@dataclass(frozen=True)
class Verification:
    """Comparison of a result with its recomputation."""

    agrees: bool | None
    """Whether the proven hypotheses are proven again, in the same order, and an exhausted support
    is exhausted again with as many sequences. True if nothing was claimed; None if the budget ended
    before all was proven again, and nothing found contradicts it."""
    level: Level
    """Of the recomputation."""
    difference: float
    """Largest difference between the log-probabilities of proven hypotheses that both found."""


def _complete(result: SearchResult) -> bool:
    return result.certificate.level == "exhaustive"


def _contradicts(again: SearchResult, result: SearchResult) -> bool:
    """Tell whether what an unfinished search found contradicts a result."""
    proven = [h.tokens for h in result.hypotheses[: result.certificate.proven]]
    both = min(again.certificate.proven, len(proven))
    if [h.tokens for h in again.hypotheses[:both]] != proven[:both]:
        return True
    if _complete(result) and again.finished > result.finished:
        return True
    least = result.hypotheses[len(proven) - 1].score if proven else math.inf
    return any(h.score > least for h in again.hypotheses if h.tokens not in proven)


def verify(
    stepper: Stepper,
    batch: Any,
    result: SearchResult,
    config: SearchConfig,
    prefix: Sequence[int] = (),
    budget: Budget | None = None,
    automaton: Automaton | None = None,
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
    """
    proven = result.hypotheses[: result.certificate.proven]
    complete = _complete(result)
    ended = False
    again = beam_search(stepper, batch, config, [prefix], [automaton])[0]
    if again.certificate.proven < len(proven) or (complete and not _complete(again)):
        # An exact search, or rounding at the edge of the beam, may have proven more than this beam.
        # Looking for one sequence more than there should be makes the search go everywhere.
        count = result.finished + 1 if complete else max(1, len(proven))
        more = replace(config, n_best=count)
        again = exact_search(stepper, batch, more, budget, prefix, automaton=automaton)
        # Truncated prefixes also leave it unsettled, and a larger budget would not help.
        spent = again.rows >= (budget or Budget()).expansions
        ended = not is_settled(again, count) and (spent or again.certificate.truncated == 0)
    agrees = [h.tokens for h in proven] == [h.tokens for h in again.hypotheses[: len(proven)]]
    agrees &= again.certificate.proven >= len(proven)
    if complete:
        agrees &= _complete(again) and again.finished == result.finished
    undecided = ended and not agrees and not _contradicts(again, result)
    found = {h.tokens: h.log_prob for h in again.hypotheses}
    differences = [abs(found[h.tokens] - h.log_prob) for h in proven if h.tokens in found]
    return Verification(
        None if undecided else agrees, again.certificate.level, max(differences, default=0.0)
    )
