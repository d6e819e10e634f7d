"""Exact search: batched branch and bound over one sentence.

A beam drops the prefixes that do not fit; here they are put aside together with the decoder's state
and taken up again, the most probable first, until no prefix can lead to a better string than those
found (best-first branch and bound; putting aside what a beam would drop is the idea of Zhou and
Hansen's beam-stack search, 2005; for neural models see Stahlberg and Byrne 2019). A beam search
goes first: a good string at the start cuts most of the tree off before it is looked at.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.search.beam import BeamSearch, beam_search
from onmt_entmax.search.certificate import SearchResult
from onmt_entmax.search.config import Budget, SearchConfig
from onmt_entmax.search.expansion import Floats, Ints, expand
from onmt_entmax.search.state import Finished
from onmt_entmax.search.stepper import Stepper


@dataclass
class _Family:
    """The prefixes that continue the rows of one step and were not looked at yet, best first."""

    state: Any
    """The decoder's after that step."""
    length: int
    """Tokens of each prefix."""
    node: Ints
    """(rows of the step,) of the prefixes that they continue"""
    attention: list[Tensor] | None
    """of each row of the step"""
    row: Ints
    """(prefixes,) row of the step that each continues"""
    token: Ints
    log_prob: Floats

    def take(self, count: int) -> _Family:
        """Remove the first prefixes and return them as a family of their own."""
        first = replace(
            self, row=self.row[:count], token=self.token[:count], log_prob=self.log_prob[:count]
        )
        self.row, self.token = self.row[count:], self.token[count:]
        self.log_prob = self.log_prob[count:]
        return first


def exact_search(
    stepper: Stepper,
    batch: Any,
    config: SearchConfig,
    budget: Budget | None = None,
    prefix: Sequence[int] = (),
    mass: float = 1.0,
    start: SearchResult | None = None,
) -> SearchResult:
    """Find the best strings of one sentence and prove it, or say what is missing for a proof.

    Args:
        stepper: the model.
        batch: one sentence; what the stepper's `start` takes, of `len` 1.
        config: beam size of the first search, number of strings, length limit, constraints and
            penalties; `stop` has no meaning here. With `n_best` 0, strings are listed from the
            most probable down, until they hold `mass`.
        budget: what it may cost; the defaults of `Budget` if None.
        prefix: token ids that the strings must start with.
        mass: with `n_best` 0, the probability that the proven strings shall have in total; 1 lists
            the whole support.
        start: what a beam search of the sentence with the same `config` has found, where one was
            made; without it, one goes first (but for a list).

    Returns:
        The result. All `n_best` ranks are proven (or the strings of that mass), unless the budget
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
    search = ExactSearch(stepper, config, budget or Budget(), mass if listing else None)
    if not listing:
        if start is None:
            start = beam_search(stepper, batch, replace(config, stop="optimal"), [prefix])[0]
        if is_settled(start, config.n_best):
            return start
        search.remember(start)
    return search.run(batch, prefix)


def is_settled(result: SearchResult, n_best: int) -> bool:
    """Whether nothing is left to prove about the `n_best` strings of a sentence."""
    certificate = result.certificate
    return certificate.level == "exhaustive" or certificate.proven == n_best


class ExactSearch(BeamSearch):
    """A beam search of one sentence that comes back to what did not fit.

    Args:
        stepper: the model.
        config: what to look for.
        budget: what it may cost.
        mass: list strings until they hold this mass; None to look for `n_best` strings.
    """

    def __init__(
        self, stepper: Stepper, config: SearchConfig, budget: Budget, mass: float | None = None
    ) -> None:
        super().__init__(stepper, config)
        self._budget = budget
        # Rounding can make a part of the support reach a mass of 1; the whole is asked for then.
        self._mass = math.inf if mass is not None and mass >= 1 else mass
        self._families: list[tuple[float, int, _Family]] = []  # a heap, the most probable first
        self._serial = 0
        self._start: SearchResult | None = None
        self._known: set[tuple[int, ...]] = set()

    def remember(self, start: SearchResult) -> None:
        """Start from strings that another search of the sentence has found, and add its cost."""
        self._start = start

    @torch.inference_mode()
    def run(self, batch: Any, prefix: Sequence[int]) -> SearchResult:
        """Search until everything asked for is proven or the budget ends.

        Args:
            batch: one sentence.
            prefix: token ids that the strings must start with.
        """
        self.admit(batch, [prefix])
        self._ledger.lines["strict"] = False  # what fits a beam is not asked
        if self._start is not None:
            self._enter(self._start)
        self._expand()
        while self._families and not self._enough():
            family = heapq.heappop(self._families)[2]
            left = self._budget.expansions - int(self._ledger.lines["rows"][0])
            self._follow(family.take(min(self._budget.rows, left)))
            self._put_aside(family)
            if len(self._token):
                self._expand()
        for _, _, family in self._families:
            self._drop(family.log_prob)
        if not self._config.penalties.any:
            self._ledger.lines["bound"] = self._within_start(self._ledger.lines["bound"])
        self._enter_excluded()
        return self._result(0)

    def _enter_excluded(self) -> None:
        """Carry over what the earlier search excluded. Its bound may be the one used here, but it
        does not cover excluded strings, which may start with prefixes not followed here."""
        if self._start is not None:
            books, before = self._ledger.lines, self._start.certificate
            books["excluded"] = np.maximum(books["excluded"], before.excluded)
            # It may have found more strings than it returned.
            books["mass"] = np.maximum(books["mass"], before.mass)
            books["finished"] = np.maximum(books["finished"], self._start.finished)
            books["excluded_bound"] = np.maximum(books["excluded_bound"], before.log_excluded_bound)

    def _within_start(self, log_bound: Any) -> Any:
        """A bound, lowered to that of the search before if that is lower.

        The earlier bound is valid here too. Strings that search found but did not return rank below
        its last hypothesis, which is itself below the bound; otherwise everything would be proven
        and this search would not run.
        """
        if self._start is None:
            return log_bound
        return np.minimum(log_bound, self._start.certificate.log_bound)

    def _best_unseen(self, log_bound: float) -> float:
        """See `BeamSearch`. Under penalties that order is one of scores, so only here."""
        return super()._best_unseen(float(self._within_start(log_bound)))

    def _enough(self) -> bool:
        """Whether the search is over: the budget, or nothing left that matters."""
        if self._ledger.lines["rows"][0] >= self._budget.expansions:
            return True
        best = -self._families[0][0]
        if self._mass is None:
            return bool(self._hopeless(best))
        proven = (h.log_prob for h in self._strings.of(0) if h.log_prob >= best)
        return sum(map(math.exp, proven)) >= self._mass

    def _hopeless(self, log_prob: Any) -> Any:
        """Whether nothing that starts with such a prefix beats the n-th best string found."""
        if self._mass is not None:
            return np.zeros(np.shape(log_prob), dtype=bool)
        return self._attainable(log_prob) <= self._ledger.lines["top"][0, -1]

    def _enter(self, start: SearchResult) -> None:
        """Enter strings that are known already, and what they cost."""
        books = self._ledger.lines
        books["rows"], books["support"] = start.rows, start.support
        if start.unfinished is not None:
            self._unfinished[0] = start.unfinished
        for found in start.hypotheses:
            steps = None if found.attention is None else list(found.attention.unbind(0))
            last = steps.pop() if steps else None
            node = np.array([-1])
            for i, token in enumerate(found.tokens):
                given = None if steps is None else [steps[i]]
                node = self._strings.grow(node, np.array([token]), given)
            string = Finished(found.score, found.log_prob, int(node[0]), last)
            self._strings.finish(0, string)
            self._known.add(found.tokens)
        scores, log_probs = (
            np.array([getattr(found, name) for found in start.hypotheses])
            for name in ("score", "log_prob")
        )
        self._ledger.finish(np.zeros(len(scores), dtype=np.int64), log_probs, scores)

    def _finish(self, finish: Floats, attention: list[Tensor] | None) -> None:
        """Enter the strings that end here, except those that are known."""
        if self._known:
            for row in np.flatnonzero(finish > -np.inf).tolist():
                if self._strings.tokens(int(self._node[row])) in self._known:
                    finish[row] = -np.inf
        super()._finish(finish, attention)

    def _expand(self) -> None:
        """Compute the live rows and put their continuations aside, where they may matter."""
        step = self._stepper.step(self._state, torch.from_numpy(self._token))
        attention = step.attention_rows()
        distribution, excluded = self._exclude(step.distribution)
        options = expand(distribution, self._stepper.eos, self._stepper.vocabulary_size)
        self._count(options, excluded)
        self._finish(options.finish, attention)
        log_prob = self._log_prob[options.row] + options.log_prob
        length = int(self._ledger.lines["length"][0])
        if length == self._config.max_length:
            self._ledger.lines["truncated"] += len(log_prob)
            self._ledger.raise_bound("bound", np.zeros_like(options.row), log_prob)
            self._keep_unfinished(np.flatnonzero(options.continuations > 0))
            return
        out = self._hopeless(log_prob)
        self._drop(log_prob[out])
        order = np.argsort(-log_prob[~out], kind="stable")
        row, token = options.row[~out][order], options.token[~out][order]
        log_prob = log_prob[~out][order]
        self._put_aside(
            _Family(step.state, length + 1, self._node, attention, row, token, log_prob)
        )

    def _put_aside(self, family: _Family) -> None:
        """Keep a family for later; if there are too many, drop the least probable ones."""
        if len(family.row):
            self._serial -= 1  # of equally probable ones the latest first: it is the longest
            heapq.heappush(self._families, (-family.log_prob[0], self._serial, family))
        while sum(len(kept.node) for _, _, kept in self._families) > self._budget.states:
            worst = max(self._families)
            self._families.remove(worst)
            heapq.heapify(self._families)
            self._drop(worst[2].log_prob)

    def _follow(self, family: _Family) -> None:
        """Make a family the live rows, but for what has become hopeless."""
        wanted = ~self._hopeless(family.log_prob)
        self._drop(family.log_prob[~wanted])
        row = family.row[wanted]
        self._state = self._stepper.select(family.state, torch.from_numpy(row))
        attention = family.attention
        given = None if attention is None else [attention[i] for i in row.tolist()]
        self._node = self._strings.grow(family.node[row], family.token[wanted], given)
        self._token, self._log_prob = family.token[wanted], family.log_prob[wanted]
        self._sentence = np.zeros(len(row), dtype=np.int64)
        self._ledger.lines["length"] = family.length

    def _drop(self, log_prob: Floats) -> None:
        """Enter prefixes that nobody will follow."""
        self._ledger.lines["dropped"] += len(log_prob)
        self._ledger.raise_bound("bound", np.zeros(len(log_prob), dtype=np.int64), log_prob)
