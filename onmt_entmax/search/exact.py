"""Exact search of one sentence: best-first branch and bound.

Prefixes that a beam would drop wait in a frontier with the decoder's state, and the most probable
ones are followed first, until none can lead to a better hypothesis than those found (Zhou and
Hansen 2005, beam-stack search; Stahlberg and Byrne 2019 for neural models). A beam search goes
first: a good hypothesis at the start cuts off most of the tree.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from onmt_entmax.search.automaton import Automaton
from onmt_entmax.search.beam import beam_search
from onmt_entmax.search.certificate import SearchResult
from onmt_entmax.search.config import Budget, SearchConfig
from onmt_entmax.search.constraints import checked_prefixes
from onmt_entmax.search.expansion import Floats, Ints
from onmt_entmax.search.state import Continuations, Parents, SearchState
from onmt_entmax.search.stepper import Stepper


def exact_search(
    stepper: Stepper,
    batch: Any,
    config: SearchConfig,
    budget: Budget | None = None,
    prefix: Sequence[int] = (),
    mass: float = 1.0,
    start: SearchResult | None = None,
    automaton: Automaton | None = None,
) -> SearchResult:
    """Find the best hypotheses of one sentence and prove it, or report what is not proven.

    Args:
        stepper: the model.
        batch: one sentence; what the stepper's `start` takes, of `len` 1.
        config: beam size of the first search, number of hypotheses, length limit, constraints and
            penalties; `stop` is ignored. With `n_best` 0, hypotheses are listed from the most
            probable down, until they hold `mass`.
        budget: limits of the search; the defaults of `Budget` if None.
        prefix: token ids that the output must start with.
        mass: with `n_best` 0, the total probability that the proven hypotheses must reach; 1 lists
            the whole support.
        start: the result of a beam search of the sentence with the same `config`; if None, one is
            made (but not for a list).
        automaton: what the output must satisfy, if anything. `mass` is then the share of the
            probability of all outputs that do.

    Returns:
        The result. All `n_best` ranks are proven (or hypotheses of that mass), unless the budget
        ended or prefixes cut by the length limit are more probable; never fewer than the beam
        search has proven.

    Raises:
        ValueError: if `n_best` is 0 under penalties, the batch is not of one sentence, or as
            `beam_search`.
    """
    if len(batch) != 1:
        raise ValueError(f"an exact search is of one sentence, not of {len(batch)}")
    listing = config.n_best == 0
    if listing and config.penalties.any:
        raise ValueError(
            "a support is listed by probability: take the penalties away, or set n_best"
        )
    if not listing:
        if start is None:
            first = replace(config, stop="optimal")
            start = beam_search(stepper, batch, first, [prefix], [automaton])[0]
        if is_settled(start, config.n_best):
            return start
    search = _ExactSearch(stepper, config, budget or Budget(), mass if listing else None)
    return search.run(batch, prefix, automaton, None if listing else start)


def is_settled(result: SearchResult, n_best: int) -> bool:
    """Tell whether all `n_best` ranks of a sentence (0: of its whole support) are proven."""
    certificate = result.certificate
    return certificate.level == "exhaustive" or certificate.proven >= n_best > 0


@dataclass
class _Waiting:
    """Continuations of one step that were not followed yet, the most probable first."""

    parents: Parents
    row: Ints
    """`(prefixes,)` row of `parents` that each continues"""
    token: Ints
    log_prob: Floats

    def take(self, count: int) -> _Waiting:
        """Remove the first prefixes and return them."""
        first = replace(
            self, row=self.row[:count], token=self.token[:count], log_prob=self.log_prob[:count]
        )
        self.row, self.token = self.row[count:], self.token[count:]
        self.log_prob = self.log_prob[count:]
        return first


class _ExactSearch:
    """The search of one sentence, and its frontier.

    With a `mass`, hypotheses are listed until they hold it; otherwise the `n_best` are looked for.
    """

    def __init__(
        self, stepper: Stepper, config: SearchConfig, budget: Budget, mass: float | None
    ) -> None:
        self._stepper, self._config, self._budget = stepper, config, budget
        self._state = SearchState(stepper, config)
        # Rounding can let a part of the support reach a mass of 1; then the whole is wanted.
        self._mass = math.inf if mass is not None and mass >= 1 else mass
        self._frontier: list[tuple[float, int, _Waiting]] = []  # a heap, the most probable first
        self._pushes = 0
        self._start: SearchResult | None = None
        self._known: set[tuple[int, ...]] = set()  # hypotheses of the beam search before

    @torch.inference_mode()
    def run(
        self,
        batch: Any,
        prefix: Sequence[int],
        automaton: Automaton | None,
        start: SearchResult | None,
    ) -> SearchResult:
        """Search until everything asked for is proven or the budget ends; add the cost of `start`.

        Args: as `exact_search`.
        """
        stepper, state = self._stepper, self._state
        prefixes = checked_prefixes([prefix], 1, stepper.vocabulary_size, stepper.eos)
        number = np.zeros(1, dtype=np.int64)
        state.add(stepper.start(batch), number, state.new_statistics(1), prefixes, [automaton])
        state.statistics.table["strict"] = False  # there is no beam to fit
        if start is not None:
            self._start = start
            state.enter(start)
            self._known = {hypothesis.tokens for hypothesis in start.hypotheses}
        self._expand()
        while self._frontier and not self._enough():
            waiting = heapq.heappop(self._frontier)[2]
            left = self._budget.expansions - int(state.statistics.table["rows"][0])
            self._follow(waiting.take(min(self._budget.rows, left)))
            self._push(waiting)
            if len(state.token):
                self._expand()
        for _, _, waiting in self._frontier:
            self._drop(waiting.log_prob)
        table = state.statistics.table
        if not self._config.penalties.any:
            table["bound"] = self._within_start(table["bound"])
        if start is not None:
            self._count_start(start)
        # Under penalties the bound orders log-probabilities, not scores: it is lowered only here.
        return state.result(0, lambda bound: state.attainable(float(self._within_start(bound))))

    def _count_start(self, start: SearchResult) -> None:
        """Carry over what the earlier search has found and excluded.

        It may have found more than it returned. What it excluded may start with prefixes that this
        search did not follow, and the bound used here may be the earlier one.
        """
        table, before = self._state.statistics.table, start.certificate
        table["excluded"] = np.maximum(table["excluded"], before.excluded)
        table["mass"] = np.maximum(table["mass"], before.mass)
        if before.satisfied is not None:
            table["satisfied"] = np.maximum(table["satisfied"], before.satisfied[0])
            table["violated"] = np.maximum(table["violated"], 1.0 - before.satisfied[1])
        table["finished"] = np.maximum(table["finished"], start.finished)
        table["excluded_bound"] = np.maximum(table["excluded_bound"], before.log_excluded_bound)

    def _within_start(self, log_bound: Any) -> Any:
        """Return a bound, lowered to that of the earlier search if that is lower.

        The earlier bound is valid here too. Hypotheses that search found but did not return rank
        below its last one, which is itself below the bound; otherwise everything would be proven
        and this search would not run.
        """
        if self._start is None:
            return log_bound
        return np.minimum(log_bound, self._start.certificate.log_bound)

    def _enough(self) -> bool:
        """Tell whether the budget has ended, or no waiting prefix matters."""
        if self._state.statistics.table["rows"][0] >= self._budget.expansions:
            return True
        best = -self._frontier[0][0]
        if self._mass is None:
            return bool(self._hopeless(best))
        finished = self._state.hypotheses.of(0)
        proven = (each.log_prob for each in finished if each.log_prob >= best)
        satisfying = 1.0 - self._state.statistics.table["violated"][0]  # at most
        return sum(map(math.exp, proven)) >= self._mass * satisfying

    def _hopeless(self, log_prob: Any) -> Any:
        """Tell which prefixes cannot lead to a better hypothesis than the n-th best found."""
        if self._mass is not None:
            return np.zeros(np.shape(log_prob), dtype=bool)
        return self._state.attainable(log_prob) <= self._state.statistics.table["top"][0, -1]

    def _expand(self) -> None:
        """Compute the live prefixes; put those of their continuations that matter in the
        frontier."""
        state = self._state
        continuations = state.expand(self._stepper.vocabulary_size)
        self._finish(continuations)
        options, log_prob = continuations.options, continuations.log_prob
        if state.at_limit[0]:
            alive = state.alive(continuations)
            state.leave(continuations, alive, np.zeros_like(alive))
            state.statistics.raise_bound("bound", np.zeros_like(options.row), log_prob)
            return
        out = self._hopeless(log_prob)
        self._drop(log_prob[out])
        order = np.argsort(-log_prob[~out], kind="stable")
        row, token = options.row[~out][order], options.token[~out][order]
        self._push(_Waiting(continuations.parents, row, token, log_prob[~out][order]))

    def _finish(self, continuations: Continuations) -> None:
        """Add the live prefixes that may end here, except hypotheses that are known already."""
        finish, node = continuations.options.finish, self._state.node
        if self._known:
            for row in np.flatnonzero(finish > -np.inf).tolist():
                if self._state.hypotheses.tokens(int(node[row])) in self._known:
                    finish[row] = -np.inf
        self._state.finish(continuations)

    def _push(self, waiting: _Waiting) -> None:
        """Add prefixes to the frontier; drop the least probable ones if it holds too many."""
        if len(waiting.row):
            self._pushes += 1  # among equally probable ones the latest, which are longest, go first
            heapq.heappush(self._frontier, (-waiting.log_prob[0], -self._pushes, waiting))
        while sum(len(each.parents.node) for _, _, each in self._frontier) > self._budget.states:
            worst = max(self._frontier)
            self._frontier.remove(worst)
            heapq.heapify(self._frontier)
            self._drop(worst[2].log_prob)

    def _follow(self, waiting: _Waiting) -> None:
        """Make waiting prefixes the live ones, except those that have become hopeless."""
        wanted = ~self._hopeless(waiting.log_prob)
        self._drop(waiting.log_prob[~wanted])
        row, token = waiting.row[wanted], waiting.token[wanted]
        self._state.follow(waiting.parents, row, token, waiting.log_prob[wanted])

    def _drop(self, log_prob: Floats) -> None:
        """Count prefixes `(n,)` that nobody will follow."""
        self._state.statistics.drop(np.zeros(len(log_prob), dtype=np.int64), log_prob)
