"""Diverse beam search (Vijayakumar et al. 2018, Algorithm 1) with certificates.

The beam is split into groups, which choose in turn at each step: a group continues its own prefixes
and ranks a continuation by its log-probability, less a penalty for each time that an earlier group
has chosen the same token at this step (Hamming diversity). As in `beam.py`, a finished hypothesis
leaves the beam, so the end symbol is never penalised.

A prefix that several groups hold is one row here, which knows its groups. So each sequence is found
once, a prefix is dropped when no group has chosen it, and the certificate is that of a plain beam:
its bound is over what was dropped, however the rest was ranked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from onmt_entmax.search.certificate import SearchResult
from onmt_entmax.search.config import Diversity, SearchConfig
from onmt_entmax.search.constraints import checked_prefixes
from onmt_entmax.search.expansion import Flags, Floats, Ints, largest_within, rank_within
from onmt_entmax.search.state import Continuations, SearchState
from onmt_entmax.search.statistics import Statistics
from onmt_entmax.search.stepper import Stepper


def diverse_search(
    stepper: Stepper,
    batch: Any,
    config: SearchConfig,
    diversity: Diversity,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[SearchResult]:
    """Search every sentence of a batch with several groups.

    A sentence is done when every group's `beam_size / groups` best hypotheses are at least as good
    as any that the group could still find; with `stop` exhaustive, not before a prefix is dropped.
    Of these, `n_best` are returned: the best of every group, then the second best of every group,
    and so on, each once. They are ordered by score.

    Args:
        stepper: the model.
        batch: what the stepper's `start` takes; its `len` is the number of sentences.
        config: how to search; `stop` must not be `first`.
        diversity: the groups.
        prefixes: for each sentence the token ids that its output must start with.

    Returns and raises: as `beam_search`; ValueError also for the number of groups.
    """
    diversity.check(config)
    search = _DiverseSearch(stepper, batch, config, diversity, prefixes)
    with torch.inference_mode():
        while len(search.state):
            search.advance()
    return [search.results[number] for number in sorted(search.results)]


class _DiverseSearch:
    """The sentences of one batch; for the arguments see `diverse_search`."""

    def __init__(
        self,
        stepper: Stepper,
        batch: Any,
        config: SearchConfig,
        diversity: Diversity,
        prefixes: Sequence[Sequence[int]] | None,
    ) -> None:
        count = len(batch)
        prefixes = checked_prefixes(prefixes, count, stepper.vocabulary_size, stepper.eos)
        self._config, self._groups, self._penalty = config, diversity.groups, diversity.penalty
        self._size = config.beam_size // self._groups  # prefixes of a group
        self._tokens = stepper.vocabulary_size
        self.state = SearchState(stepper, replace(config, all_found=True))
        self.results: dict[int, SearchResult] = {}
        with torch.inference_mode():
            start = stepper.start(batch)
        statistics = self.state.new_statistics(count, config.beam_size)
        self.state.add(start, np.arange(count), statistics, prefixes, [None] * count)
        self._holds = np.ones((count, self._groups), dtype=np.bool_)  # of each live prefix
        self._found = Statistics(count * self._groups, self._size)  # by each group: its best scores
        self._finders: list[list[Flags]] = [[] for _ in range(count)]  # of each finished hypothesis

    def advance(self) -> None:
        """Take one step in every sentence, and keep the results of those that are done."""
        state = self.state
        continuations = state.expand(self._config.beam_size + 1)
        self._finish(continuations)
        chosen = self._choose(continuations)
        self._leave(continuations, chosen)
        sentence = state.sentence[continuations.options.row]
        done = self._stopped(sentence, chosen, continuations.log_prob)
        for place in np.flatnonzero(done).tolist():
            number = int(state.numbers[place])
            self.results[number] = self._listed(number, state.result(place))
        kept = np.flatnonzero(chosen.any(1) & ~done[sentence])
        row, token = continuations.options.row[kept], continuations.options.token[kept]
        state.follow(continuations.parents, row, token, continuations.log_prob[kept])
        self._holds = chosen[kept]
        state.remove(done)
        self._found.select(np.repeat(~done, self._groups))

    def _finish(self, continuations: Continuations) -> None:
        """Add the live prefixes that may end here to the finished hypotheses of their groups."""
        state = self.state
        state.finish(continuations)
        rows = np.flatnonzero(continuations.options.finish > -np.inf)
        found = []
        for number, row in zip(state.numbers[state.sentence[rows]].tolist(), rows, strict=True):
            finders = self._finders[number]
            found.append(state.hypotheses.of(number)[len(finders)])
            finders.append(self._holds[row])
        item, group = np.nonzero(self._holds[rows])
        log_prob, score = (
            np.array([getattr(each, name) for each in found])[item]
            for name in ("log_prob", "score")
        )
        self._found.finish(state.sentence[rows[item]] * self._groups + group, log_prob, score)

    def _choose(self, continuations: Continuations) -> Flags:
        """Tell which groups choose which candidates `(candidates, groups)`, as in Algorithm 1."""
        options, state = continuations.options, self.state
        sentence = state.sentence[options.row]
        at_limit = state.at_limit
        _, pair = np.unique(sentence * self._tokens + options.token, return_inverse=True)
        times = np.zeros(len(pair))  # that earlier groups have chosen the token in the sentence
        chosen = np.zeros((len(pair), self._groups), dtype=np.bool_)
        for group in range(self._groups):
            own = np.flatnonzero(self._holds[options.row, group] & ~at_limit[sentence])
            score = continuations.log_prob[own] - self._penalty * times[pair[own]]
            order, rank = rank_within(sentence[own], score)
            best = own[order[rank < self._size]]
            chosen[best, group] = True
            np.add.at(times, pair[best], 1)
        return chosen

    def _leave(self, continuations: Continuations, chosen: Flags) -> None:
        """Count the candidates that no group has chosen as dropped or cut."""
        options, state = continuations.options, self.state
        sentence, kept = state.sentence[options.row], chosen.any(1)
        # `options` may leave out candidates, each below one of its row that no group has chosen.
        followed = np.bincount(sentence[kept], minlength=len(state))
        state.leave(continuations, state.alive(continuations), followed)
        state.statistics.raise_bound("bound", sentence[~kept], continuations.log_prob[~kept])

    def _stopped(self, sentence: Ints, chosen: Flags, log_prob: Floats) -> Flags:
        """Decide which sentences are done `(sentences,)`, and count their prefixes as dropped."""
        table = self.state.statistics.table
        place, group = np.nonzero(chosen)
        best = largest_within(
            sentence[place] * self._groups + group, log_prob[place], len(self._found)
        )
        beaten = self._found.table["top"][:, -1] >= self.state.attainable(best)
        done: Flags = beaten.reshape(-1, self._groups).all(1)
        kept = chosen.any(1)
        alive = np.bincount(sentence[kept], minlength=len(table))
        if self._config.stop == "exhaustive":
            done &= (table["dropped"] > 0) | (alive == 0)
        table["dropped"] += np.where(done, alive, 0)
        ended = kept & done[sentence]
        self.state.statistics.raise_bound("bound", sentence[ended], log_prob[ended])
        return done

    def _listed(self, number: int, result: SearchResult) -> SearchResult:
        """Return the result of a sentence with only the hypotheses that its groups list."""
        found = zip(self.state.hypotheses.of(number), self._finders[number], strict=True)
        ranked = sorted(found, key=lambda pair: (-pair[0].score, -pair[0].log_prob))
        holds = np.array([groups for _, groups in ranked]).reshape(-1, self._groups)
        in_group = np.where(holds, holds.cumsum(0), self._size + 1).min(1)  # from 1
        listed = np.argsort(in_group, kind="stable")[: (in_group <= self._size).sum()]
        chosen = np.sort(listed[: self._config.n_best])
        # A hypothesis has its rank among all only if those before it are returned too.
        leading = int((chosen == np.arange(len(chosen))).sum())
        proven = min(result.certificate.proven, leading)
        return replace(
            result,
            hypotheses=tuple(result.hypotheses[place] for place in chosen),
            certificate=replace(result.certificate, proven=proven),
        )
