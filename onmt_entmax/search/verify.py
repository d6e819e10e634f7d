"""Verify a certificate: search the sentence again, alone and in float64.

A certificate is about the probabilities that its run computed. In another batch or precision the
same prefix rounds differently: two sequences of nearly equal probability may change places, and a
token at the very edge of the support may enter or leave it. The order of sequences with equal
scores means nothing, so the check compares scores, those that float64 gives the proven hypotheses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from onmt_entmax.search.beam import stream_search
from onmt_entmax.search.certificate import SearchResult
from onmt_entmax.search.config import Budget, SearchConfig
from onmt_entmax.search.exact import exact_search, is_settled
from onmt_entmax.search.request import Request
from onmt_entmax.search.stepper import Stepper

_ROUNDING = 1e-9  # scores in float64 that differ by less count as equal


@dataclass(frozen=True)
class Verification:
    """Comparison of a result with its recomputation."""

    agrees: bool | None
    """True: the proven hypotheses are proven again, and their scores in float64 are in the order of
    their ranks; and an exhausted support is exhausted again, with as many sequences. Also if
    nothing was claimed. False: something contradicts the claim. None: nothing does, but the budget
    ended before everything was proven again."""


def verify(
    stepper: Stepper,
    request: Request,
    result: SearchResult,
    config: SearchConfig,
    budget: Budget | None = None,
) -> Verification:
    """Search one sentence again and compare; use an exact search if the beam does not suffice.

    Args:
        stepper: the stepper of the same model in float64 (`stepper.double()`).
        request: a batch of this sentence alone, with the same constraints on its output.
        result: the result to verify.
        config: the configuration of the search that returned the result.
        budget: limits of the exact search; the defaults of `Budget` if None.
    """
    claim = _Claim.of(result)
    ((_, again),) = stream_search(stepper, [request], config)
    budget_ended = False
    if not claim.is_reached_by(again):
        again, budget_ended = _search_exactly(stepper, request, config, claim, budget or Budget())
    scores_again = {hypothesis.tokens: hypothesis.score for hypothesis in again.hypotheses}
    scores = [
        scores_again[tokens] if tokens in scores_again else _score(stepper, request, config, tokens)
        for tokens in claim.proven
    ]
    others = [score for tokens, score in scores_again.items() if tokens not in claim.proven]
    if _contradict(scores, others) or (claim.complete and again.finished > claim.finished):
        return Verification(agrees=False)
    if _is_proven_again(scores, again) and (not claim.complete or claim.is_exhausted_by(again)):
        return Verification(agrees=True)
    return Verification(agrees=None if budget_ended else False)


@dataclass(frozen=True)
class _Claim:
    """What a certificate claims."""

    proven: tuple[tuple[int, ...], ...]
    """Tokens of the hypotheses whose ranks are proven, in the order of their ranks."""
    complete: bool
    """Whether the finished sequences are the whole support."""
    finished: int
    """The number of finished sequences."""

    @staticmethod
    def of(result: SearchResult) -> _Claim:
        """Return the claim of a result."""
        certificate = result.certificate
        proven = result.hypotheses[: certificate.proven]
        return _Claim(
            proven=tuple(hypothesis.tokens for hypothesis in proven),
            complete=certificate.level == "exhaustive",
            finished=result.finished,
        )

    def is_reached_by(self, again: SearchResult) -> bool:
        """Return whether another search has proven as much, whatever its hypotheses are."""
        certificate = again.certificate
        if self.complete and certificate.level != "exhaustive":
            return False
        return certificate.proven >= len(self.proven)

    def is_exhausted_by(self, again: SearchResult) -> bool:
        """Return whether another search has exhausted a support of as many sequences."""
        return again.certificate.level == "exhaustive" and again.finished == self.finished


def _search_exactly(
    stepper: Stepper, request: Request, config: SearchConfig, claim: _Claim, budget: Budget
) -> tuple[SearchResult, bool]:
    """Return the result of an exact search, and whether a larger budget might prove more.

    It is needed if the claim came from an exact search, or if rounding at the edge of the beam let
    the first search prove more than a beam search does now. For a complete claim, it looks for one
    sequence more than there should be, and so has to search everything.
    """
    count = claim.finished + 1 if claim.complete else max(1, len(claim.proven))
    result = exact_search(stepper, request, replace(config, n_best=count), budget)
    spent = result.rows >= budget.expansions
    # Truncated prefixes also leave ranks unproven, and then a larger budget would not help.
    may_prove_more = spent or result.certificate.truncated == 0
    return result, may_prove_more and not is_settled(result, count)


def _score(
    stepper: Stepper, request: Request, config: SearchConfig, tokens: tuple[int, ...]
) -> float:
    """Return the score of a sequence that a search has not kept; nan if it is not an output."""
    if not _obeys(stepper, request, config, tokens):
        return math.nan
    forced = Request(request.batch, prefixes=[tokens], automata=request.automata)
    only = replace(config, n_best=1, max_length=len(tokens))
    ((_, result),) = stream_search(stepper, [forced], only)
    return result.hypotheses[0].score if result.hypotheses else math.nan


def _obeys(
    stepper: Stepper, request: Request, config: SearchConfig, tokens: tuple[int, ...]
) -> bool:
    """Return whether a sequence is short enough, has its forced prefix, and then allowed tokens.

    The search of `_score` does not show this: all tokens of the sequence are forced there, which
    exempts them from bans and from `block_ngram_repeat`, and the length limit is that of the
    sequence itself.
    """
    if len(tokens) > config.max_length:
        return False
    (constraints,) = request.of_sentences(stepper, config)
    start = len(constraints.forced)
    if tokens[:start] != constraints.forced:
        return False
    excluded = set(constraints.excluded.tolist())
    return not any(
        token in excluded | config.constraints.forbidden(tokens[:position], stepper.eos)
        for position, token in enumerate(tokens[start:], start)
    )


def _contradict(scores: Sequence[float], others: Sequence[float]) -> bool:
    """Return whether scores contradict the order that was proven.

    Args:
        scores: the scores in float64 of the proven hypotheses, in their order; nan for an excluded
            one.
        others: the scores of other hypotheses that were found.
    """
    if any(map(math.isnan, scores)):
        return True
    if any(later > score + _ROUNDING for score, later in pairwise(scores)):
        return True
    least = scores[-1] if scores else math.inf
    return any(score > least + _ROUNDING for score in others)


def _is_proven_again(scores: Sequence[float], again: SearchResult) -> bool:
    """Return whether the claimed hypotheses are proven again.

    The last hypothesis that the new search has proven scores at least as much as everything beyond
    it. So if it scores no more than the lowest claimed hypothesis, nothing beyond it does either.

    Args:
        scores: the scores in float64 of the claimed hypotheses, highest first.
        again: the result of the new search.
    """
    if not scores:
        return True
    proven = again.hypotheses[: again.certificate.proven]
    return bool(proven) and proven[-1].score <= scores[-1] + _ROUNDING
