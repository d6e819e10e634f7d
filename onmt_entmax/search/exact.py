"""Exact search of one sentence: best-first branch and bound.

Prefixes that a beam would drop wait in a frontier with the decoder's state. The most probable ones
are followed first, until none can lead to a better hypothesis than those found (Zhou and Hansen
2005, beam-stack search; Stahlberg and Byrne 2019 for neural models). A beam search goes first,
since a good hypothesis at the start cuts off most of the tree.

At any time, every sequence has finished, or starts with a prefix that waits in the frontier or was
dropped. The sentence's `Proof` counts what is dropped; at the end, that is the frontier, too.
"""

import math
from dataclasses import replace
from itertools import takewhile
from typing import Any

import numpy as np
import torch

from onmt_entmax.search.arrays import Floats, Ints
from onmt_entmax.search.beam import stream_search
from onmt_entmax.search.certificate import SearchResult
from onmt_entmax.search.config import Budget, SearchConfig
from onmt_entmax.search.frontier import Frontier
from onmt_entmax.search.penalties import Amount
from onmt_entmax.search.prefixes import Continuations
from onmt_entmax.search.request import Request
from onmt_entmax.search.sentences import Sentence
from onmt_entmax.search.state import SearchState
from onmt_entmax.search.stepper import Stepper


def exact_search(
    stepper: Stepper,
    request: Request,
    config: SearchConfig,
    budget: Budget | None = None,
    mass: float = 1.0,
    beam_result: SearchResult | None = None,
) -> SearchResult:
    """Find the best hypotheses of one sentence and prove it, or report what is not proven.

    With `n_best` 0, list hypotheses instead, from the most probable down, until they hold `mass`.

    Args:
        stepper: the model.
        request: a batch of one sentence, and constraints on its output.
        config: beam size of the first search, number of hypotheses, length limit, constraints and
            penalties; `stop` is ignored.
        budget: limits of the search; the defaults of `Budget` if None.
        mass: the total probability at which a list ends; 1 lists the whole support. With an
            automaton, it is a share of the probability of all outputs that satisfy it. Ignored
            unless hypotheses are listed.
        beam_result: the result of a beam search of the sentence with the same `config`; if None,
            one is made. A list needs none and ignores it.

    Returns:
        The result. All `n_best` ranks are proven (or hypotheses of that mass), unless the budget
        ended or prefixes cut by the length limit are more probable; never fewer than the beam
        search has proven.

    Raises:
        SearchError: as `beam_search`.
        ValueError: if `n_best` is 0 under penalties, the batch is not of one sentence, or as
            `beam_search`.
    """
    if len(request.batch) != 1:
        raise ValueError(f"an exact search is of one sentence, not of {len(request.batch)}")
    if config.n_best == 0:
        if config.penalties.change_scores:
            raise ValueError(
                "a support is listed by probability: take the penalties away, or set n_best"
            )
        beam_result = None
    else:
        if beam_result is None:
            first = replace(config, stop="optimal")
            ((_, beam_result),) = stream_search(stepper, [request], first)
        if is_settled(beam_result, config.n_best):
            return beam_result
    (sentence_request,) = request.of_sentences(stepper, config)
    sentence = Sentence(number=0, request=sentence_request)
    search = _ExactSearch(stepper, config, budget or Budget(), mass, sentence, beam_result)
    with torch.inference_mode():
        return search.run(stepper.start(request.batch))


def is_settled(result: SearchResult, n_best: int) -> bool:
    """Return whether all `n_best` ranks of a sentence are proven; 0: those of its whole support."""
    certificate = result.certificate
    return certificate.level == "exhaustive" or certificate.proven >= n_best > 0


class _ExactSearch:
    """The search of one sentence.

    Args:
        stepper: the model.
        config: the configuration of the search. With `n_best` 0, hypotheses are listed from the
            most probable down.
        budget: limits of the search.
        mass: the total probability at which a list ends; 1: it ends with the whole support.
        sentence: the sentence.
        before: the result of the beam search before, if there was one.
    """

    def __init__(
        self,
        stepper: Stepper,
        config: SearchConfig,
        budget: Budget,
        mass: float,
        sentence: Sentence,
        before: SearchResult | None,
    ) -> None:
        self._config, self._budget, self._sentence = config, budget, sentence
        self._mass, self._before = mass, before
        self._all_tokens = stepper.vocabulary_size
        self._state = SearchState(stepper, config)
        self._frontier = Frontier(budget.states)
        self._finished_before: set[tuple[int, ...]] = set()

    def run(self, decoder_state: Any) -> SearchResult:
        """Search until everything asked for is proven or the budget ends.

        Each turn follows the most probable waiting prefixes of one step, as many as the budget
        allows; the others of that step wait on.

        Args:
            decoder_state: the decoder state of the stepper, after `start`.
        """
        state, sentence = self._state, self._sentence
        state.add(decoder_state, [sentence])
        sentence.proof.strict = False  # there is no beam to fit
        if self._before is not None:
            self._take_over(self._before)
        self._expand()
        while self._frontier and not self._enough():
            continuations, positions = self._frontier.pop()
            count = min(self._budget.rows, self._budget.expansions - sentence.rows)
            self._push(continuations, positions[count:])
            chosen = self._promising(continuations, positions[:count])
            state.follow(continuations, chosen)
            if len(chosen):
                self._expand()
        for log_prob in self._frontier.log_probs():
            self._drop(log_prob)
        return self._result()

    def _take_over(self, before: SearchResult) -> None:
        """Begin with the hypotheses and the cost of the beam search before."""
        sentence = self._sentence
        sentence.rows, sentence.support = before.rows, before.support
        sentence.unfinished = before.unfinished
        sentence.best = list(before.hypotheses)
        for hypothesis in before.hypotheses:
            sentence.proof.finish(hypothesis.log_prob)
            self._finished_before.add(hypothesis.tokens)

    def _result(self) -> SearchResult:
        """Return the result with what the beam search before has proven.

        Let H be the last hypothesis that the beam search returned, and B its bound. H is below B:
        otherwise all ranks were proven, and this search would not run. What the beam search found,
        but did not return, ranks below H. So no sequence that is missing here exceeds B, and B
        holds for this result, too. Not under penalties, whose scores are in another order.

        What the beam search excluded may start with prefixes that this search did not follow: the
        larger of both counts.
        """
        state, proof = self._state, self._sentence.proof
        if self._before is None:
            return state.result(self._sentence)
        before = self._before.certificate
        proof.finished = max(proof.finished, self._before.finished)
        proof.mass = max(proof.mass, before.mass)
        proof.excluded = max(proof.excluded, before.excluded)
        proof.log_excluded_bound = max(proof.log_excluded_bound, before.log_excluded_bound)
        if before.satisfied is not None:
            proof.satisfied = max(proof.satisfied, before.satisfied[0])
            proof.violated = max(proof.violated, 1.0 - before.satisfied[1])
        if not self._config.penalties.change_scores:
            proof.log_bound = min(proof.log_bound, before.log_bound)
        return state.result(self._sentence, before.log_bound)

    def _enough(self) -> bool:
        """Return whether the budget has ended, or no waiting prefix matters; one must wait."""
        if self._sentence.rows >= self._budget.expansions:
            return True
        log_bound = self._frontier.log_bound
        if self._config.n_best:
            return bool(self._attainable(log_bound) <= self._score_to_beat())
        if self._mass >= 1:
            return False  # of the whole support, a part may sum to 1 by rounding
        # Hypotheses are sorted; no waiting prefix can lead to one above these.
        proven = takewhile(lambda hypothesis: hypothesis.log_prob >= log_bound, self._sentence.best)
        satisfying = self._sentence.proof.satisfiable
        return sum(hypothesis.prob for hypothesis in proven) >= self._mass * satisfying

    def _attainable(self, log_prob: Amount) -> Amount:
        """Return the best score of any hypothesis that starts with a prefix.

        Args:
            log_prob: the log-probability of a prefix, or an array `(n,)` of several.
        """
        return self._state.attainable(log_prob, self._sentence.request.source_length)

    def _score_to_beat(self) -> float:
        """Return the score of the n-th best hypothesis found; -inf if all are listed."""
        n_best = self._config.n_best
        return self._sentence.score(n_best) if n_best else -math.inf

    def _expand(self) -> None:
        """Compute the live prefixes, and add those continuations that matter to the frontier."""
        state = self._state
        continuations = state.expand(self._all_tokens)
        options, log_prob = continuations.options, continuations.log_probs
        if self._finished_before:  # these count already, and would be added to the mass twice
            for row in np.flatnonzero(options.finish > -np.inf).tolist():
                if state.rows.prefixes[row].tokens() in self._finished_before:
                    options.finish[row] = -np.inf
        state.finish(continuations)
        if state.at_limit.any():  # all rows are of one step, and so of one length
            state.keep_unfinished(continuations)
            self._drop(log_prob, cut=True)
            return
        order = np.argsort(-log_prob, kind="stable")
        promising = self._promising(continuations, order)
        # Only these are kept: all next tokens of many prefixes may need gigabytes.
        kept = np.sort(promising)
        self._push(continuations.keeping(kept), np.searchsorted(kept, promising))

    def _promising(self, continuations: Continuations, positions: Ints) -> Ints:
        """Return which continuations may lead to a hypothesis among the n best; drop the others.

        Args:
            continuations: the continuations of one step.
            positions: `(n,)` of those that are looked at.
        """
        log_probs = continuations.log_probs[positions]
        hopeless = np.less_equal(self._attainable(log_probs), self._score_to_beat())
        self._drop(log_probs[hopeless])
        return positions[~hopeless]

    def _push(self, continuations: Continuations, positions: Ints) -> None:
        """Add prefixes to the frontier; drop the least probable ones if it holds too many.

        Args:
            continuations: the continuations of one step.
            positions: `(n,)` of these prefixes, the most probable first.
        """
        for log_prob in self._frontier.push(continuations, positions):
            self._drop(log_prob)

    def _drop(self, log_prob: Floats, cut: bool = False) -> None:
        """Add prefixes to D, since they will not be followed; `log_prob` `(n,)` are theirs."""
        self._sentence.proof.drop(len(log_prob), float(log_prob.max(initial=-math.inf)), cut)
