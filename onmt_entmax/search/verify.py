"""A second opinion: what a certificate claims, recomputed alone and in float64.

A certificate speaks of the probabilities as its own run computed them. In another batch, or another
precision, the same prefix rounds differently, and two strings whose probabilities nearly agree may
change places; a token at the very edge of the support may enter or leave it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from onmt_entmax.search.beam import beam_search
from onmt_entmax.search.certificate import Level, SearchResult
from onmt_entmax.search.config import Budget, SearchConfig
from onmt_entmax.search.exact import exact_search, is_settled
from onmt_entmax.search.stepper import Stepper


@dataclass(frozen=True)
class Verification:
    """How a result and its recomputation compare."""

    agrees: bool | None
    """Whether the proven hypotheses are proven again, in the same order, and an exhausted support
    is exhausted again with as many strings. True where nothing was claimed; None where the budget
    ended before all of it was proven again, and nothing that was found contradicts it."""
    level: Level
    """Of the recomputation."""
    difference: float
    """The largest difference between the log-probabilities of proven strings found by both."""


def _complete(result: SearchResult) -> bool:
    return result.certificate.level == "exhaustive"


def _contradicts(again: SearchResult, result: SearchResult) -> bool:
    """Whether what a search found before it was ended is at odds with what is claimed."""
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
) -> Verification:
    """Search one sentence again and compare; by an exact search where the beam does not suffice.

    Args:
        stepper: of the same model in float64 (`stepper.double()`).
        batch: the sentence alone.
        result: what is claimed.
        config: with which it was searched.
        prefix: with which it was searched.
        budget: of the exact search.
    """
    proven = result.hypotheses[: result.certificate.proven]
    complete = _complete(result)
    ended = False
    again = beam_search(stepper, batch, config, [prefix])[0]
    if again.certificate.proven < len(proven) or (complete and not _complete(again)):
        # What was proven by an exact search, or just fitted the beam, deserves another chance.
        # Asked for one string more than there should be, it has to look everywhere.
        count = result.finished + 1 if complete else max(1, len(proven))
        again = exact_search(stepper, batch, replace(config, n_best=count), budget, prefix)
        # Strings cut by their length leave it unsettled too, and more of a budget would not help.
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
