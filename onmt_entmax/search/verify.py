"""A second opinion: what a certificate claims, recomputed alone and in float64.

A certificate speaks of the probabilities as its own run computed them. In another batch, or another
precision, the same prefix rounds differently, and two strings whose probabilities nearly agree may
change places; a token at the very edge of the support may enter or leave it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onmt_entmax.search.beam import beam_search
from onmt_entmax.search.certificate import Level, SearchResult
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.stepper import Stepper


@dataclass(frozen=True)
class Verification:
    """How a result and its recomputation compare."""

    agrees: bool
    """Whether the proven hypotheses are the same strings in the same order, and an exhausted
    support has as many strings again. True where nothing was claimed."""
    level: Level
    """Of the recomputation."""
    difference: float
    """The largest difference between the log-probabilities of proven strings found by both."""


def verify(
    stepper: Stepper,
    batch: Any,
    result: SearchResult,
    config: SearchConfig,
    prefix: Sequence[int] = (),
) -> Verification:
    """Search one sentence again and compare.

    Args:
        stepper: of the same model in float64 (`stepper.double()`).
        batch: the sentence alone.
        result: what is claimed.
        config: with which it was searched.
        prefix: with which it was searched.
    """
    again = beam_search(stepper, batch, config, [prefix])[0]
    proven = result.hypotheses[: result.certificate.proven]
    agrees = [h.tokens for h in proven] == [h.tokens for h in again.hypotheses[: len(proven)]]
    if result.certificate.level == "exhaustive":
        agrees &= again.certificate.level == "exhaustive" and again.finished == result.finished
    found = {h.tokens: h.log_prob for h in again.hypotheses}
    differences = [abs(found[h.tokens] - h.log_prob) for h in proven if h.tokens in found]
    return Verification(agrees, again.certificate.level, max(differences, default=0.0))
