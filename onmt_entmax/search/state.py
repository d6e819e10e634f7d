"""What all searches share: the active sentences, their live prefixes and what may follow these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.nn.support import Distribution
from onmt_entmax.search.automaton import SATISFIED, VIOLATED, Automaton, RowAutomata
from onmt_entmax.search.certificate import Hypothesis, SearchResult
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.constraints import check_tokens, force
from onmt_entmax.search.expansion import (
    Expansion,
    Flags,
    Floats,
    Ints,
    check_columns,
    expand,
    look_up,
    rank_within,
    remove,
)
from onmt_entmax.search.hypotheses import Finished, Hypotheses
from onmt_entmax.search.statistics import Statistics
from onmt_entmax.search.stepper import SearchError, Stepper, no_support


@dataclass(frozen=True)
class Parents:
    """Prefixes that one step computed; whoever keeps them can follow their continuations later."""

    decoder_state: Any
    """Of the stepper after the step, with `rows` rows."""
    sentence: Ints
    """`(rows,)` place of each prefix's sentence"""
    node: Ints
    """`(rows,)` of the tree"""
    attention: list[Tensor] | None
    """`(source length,)` of each row, where the stepper returns it"""
    length: Ints
    """`(sentences,)` tokens of the prefixes"""
    automaton_state: Ints
    """`(rows,)` state of each prefix's automaton; 0 without one"""


@dataclass(frozen=True)
class Continuations:
    """What may follow the live prefixes."""

    parents: Parents
    options: Expansion
    log_prob: Floats
    """`(candidates,)` of the prefix that each candidate of `options` makes"""


class SearchState:
    """The active sentences of a search, their live prefixes and their statistics.

    Live prefixes are rows sorted by sentence. A sentence has a number, for good, and a place among
    the active ones, which changes when others leave.

    Attributes:
        numbers: `(sentences,)` number of each active sentence.
        statistics: their statistics.
        hypotheses: prefixes and finished hypotheses.
        sentence: `(rows,)` place of each live prefix's sentence.
        node: `(rows,)` of the tree.
        token: `(rows,)` last token.
        log_prob: `(rows,)` of the prefix.
        automaton_state: `(rows,)` state of its sentence's automaton; 0 without one.

    Raises:
        ValueError: if a banned token, or a special one of the stepper, is not in the vocabulary.
    """

    def __init__(self, stepper: Stepper, config: SearchConfig) -> None:
        special = {*config.constraints.banned, *stepper.excluded, stepper.bos, stepper.eos}
        check_tokens(special, stepper.vocabulary_size)
        self._stepper, self._config = stepper, config
        self.numbers: Ints = np.empty(0, dtype=np.int64)
        self.statistics = self.new_statistics(0)
        self.hypotheses = Hypotheses()
        self.sentence: Ints = np.empty(0, dtype=np.int64)
        self.node: Ints = np.empty(0, dtype=np.int64)
        self.token: Ints = np.empty(0, dtype=np.int64)
        self.log_prob: Floats = np.empty(0)
        self.automaton_state: Ints = np.empty(0, dtype=np.int64)
        self._decoder_state: Any = None
        self._automata = RowAutomata(stepper.vocabulary_size)
        self._forced: dict[int, tuple[int, ...]] = {}  # nonempty target prefixes by number
        self._truncated: dict[int, Hypothesis] = {}  # best truncated prefix by number

    def __len__(self) -> int:
        return len(self.numbers)

    def new_statistics(self, sentences: int, beam: int = 1) -> Statistics:
        """Return statistics of sentences that nothing is known of yet."""
        return Statistics(sentences, max(1, self._config.n_best), beam)

    def add(
        self,
        decoder_state: Any,
        numbers: Ints,
        statistics: Statistics,
        prefixes: Sequence[Sequence[int]],
        automata: Sequence[Automaton | None],
    ) -> None:
        """Activate sentences, each with the empty prefix alive.

        Args:
            decoder_state: of the stepper, one row a sentence.
            numbers: `(n,)` of the sentences.
            statistics: of the sentences.
            prefixes: the token ids that each sentence's output must start with.
            automata: what each sentence's output must satisfy, if anything.
        """
        joined = [self._decoder_state, decoder_state]
        self._decoder_state = self._stepper.join(joined) if len(self) else decoder_state
        count = len(numbers)
        self.sentence = np.concatenate([self.sentence, len(self) + np.arange(count)])
        self.node = np.concatenate([self.node, np.full(count, -1)])
        self.token = np.concatenate([self.token, np.full(count, self._stepper.bos)])
        self.log_prob = np.concatenate([self.log_prob, np.zeros(count)])
        self.numbers = np.concatenate([self.numbers, numbers])
        self.statistics.append(statistics)
        self.hypotheses.open(numbers.tolist())
        pairs = zip(numbers.tolist(), prefixes, strict=True)
        self._forced.update((number, tuple(prefix)) for number, prefix in pairs if prefix)
        starts = self._automata.add(numbers, automata)
        if self._automata:
            new, given = self.statistics.table[-count:], [each is not None for each in automata]
            new["satisfied"], new["violated"] = starts == SATISFIED, given & (starts == VIOLATED)
        self.automaton_state = np.concatenate([self.automaton_state, starts])

    def expand(self, width: int) -> Continuations:
        """Compute the next step of every live prefix; count rows, supports and excluded tokens.

        Args:
            width: a row's `width` most probable tokens are always among the candidates.

        Raises:
            SearchError: if the model gives a prefix no token of positive probability.
        """
        step = self._stepper.step(self._decoder_state, torch.from_numpy(self.token))
        attention = step.attention_rows()
        distribution, excluded = self._exclude(step.distribution)
        options = self._add_advancing(
            expand(distribution, self._stepper.eos, width), distribution, width
        )
        support = options.continuations + (options.finish > -np.inf) + excluded
        if not support.all():
            raise no_support()
        self.statistics.count("rows", self.sentence)
        self.statistics.count("support", self.sentence, support)
        length = self.statistics.table["length"].copy()
        parents = Parents(
            step.state, self.sentence, self.node, attention, length, self.automaton_state
        )
        return Continuations(parents, options, self.log_prob[options.row] + options.log_prob)

    def _exclude(self, distribution: Distribution) -> tuple[Distribution, Ints]:
        """Remove tokens that the request rules out, and count their probability.

        Args:
            distribution: of the live prefixes; may be changed in place.

        Returns:
            The distribution without them, and how many of positive probability each row lost.
        """
        check_columns(distribution, self._stepper.vocabulary_size)
        violating = self._decide(distribution) if self._automata else None
        distribution, row, log_prob = remove(distribution, *self._forbidden())
        lost = np.bincount(row, minlength=len(self.token))
        if len(row):
            self.statistics.exclude(self.sentence[row], self.log_prob[row] + log_prob)
            self.statistics.table["missed"][self.sentence[row]] = True
        if violating is not None:
            distribution, row, log_prob = remove(distribution, *violating)
            lost += np.bincount(row, minlength=len(self.token))
            self.statistics.exclude(self.sentence[row], self.log_prob[row] + log_prob)
        return distribution, lost

    def _decide(self, distribution: Distribution) -> tuple[Ints, Ints]:
        """Count the probability of the tokens that decide whether an automaton is satisfied.

        Returns:
            Pairs of a row and a token after which it is not, as two arrays `(pairs,)`.
        """
        owner = self.numbers[self.sentence]
        row, token, satisfied = self._automata.deciding(owner, self.automaton_state, distribution)
        prob = np.exp(self.log_prob[row] + look_up(distribution, row, token))
        for name, chosen in (("satisfied", satisfied), ("violated", ~satisfied)):
            self.statistics.count(name, self.sentence[row[chosen]], prob[chosen])
        return row[~satisfied], token[~satisfied]

    def _add_advancing(
        self, options: Expansion, distribution: Distribution, width: int
    ) -> Expansion:
        """Add each row's `width` most probable tokens of those that its automaton waits for."""
        if not self._automata or len(options.row) == options.continuations.sum():
            return options
        owner = self.numbers[self.sentence]
        row, token = self._automata.advancing(owner, self.automaton_state)
        log_prob = look_up(distribution, row, token)
        order, rank = rank_within(row, log_prob)
        order = order[rank < width]
        size = self._stepper.vocabulary_size
        known = np.isin(row[order] * size + token[order], options.row * size + options.token)
        new = order[~known & (log_prob[order] > -np.inf)]
        rows = np.concatenate([options.row, row[new]])
        tokens = np.concatenate([options.token, token[new]])
        log_probs = np.concatenate([options.log_prob, log_prob[new]])
        by_row = np.argsort(rows, kind="stable")
        return options._replace(row=rows[by_row], token=tokens[by_row], log_prob=log_probs[by_row])

    def rank(self, continuations: Continuations) -> tuple[Ints, Ints]:
        """Sort candidates by sentence; return their order and ranks as `rank_within`.

        The more probable are first. Those as far from what their automaton accepts compete among
        themselves, and the best of each distance come in turn (Post and Vilar 2018), those that
        satisfy it first: otherwise prefixes that ignore a constraint fill the beam.
        """
        options, log_prob = continuations.options, continuations.log_prob
        sentence = self.sentence[options.row]
        if not self._automata:
            return rank_within(sentence, log_prob)
        owner = self.numbers[sentence]
        state = self._automata.step(owner, self.automaton_state[options.row], options.token)
        distance = self._automata.distance(owner, state)
        group = sentence * (distance.max(initial=0) + 1) + distance
        turn = np.empty_like(sentence)
        order, rank = rank_within(group, log_prob)
        turn[order] = 2 * rank + (distance[order] > 0)
        return rank_within(sentence, log_prob, turn)

    def _forbidden(self) -> tuple[Ints, Ints]:
        """Return pairs of a row and a token that may not follow it, as two arrays `(pairs,)`."""
        lengths = self.statistics.table["length"][self.sentence]
        row, token = self._config.constraints.forbidden(
            self._stepper.excluded,
            self._stepper.eos,
            lengths,
            lambda row: self.hypotheses.tokens(int(self.node[row])),
        )
        if not self._forced:
            return row, token
        numbers = self.numbers[self.sentence].tolist()
        prefixes = [self._forced.get(number, ()) for number in numbers]
        forced = {
            i: prefix[lengths[i]] for i, prefix in enumerate(prefixes) if lengths[i] < len(prefix)
        }
        return force(row, token, forced, self._stepper.vocabulary_size)

    def finish(self, continuations: Continuations) -> None:
        """Add the live prefixes that may end here to the finished hypotheses."""
        finish, attention = continuations.options.finish, continuations.parents.attention
        rows = np.flatnonzero(finish > -np.inf)
        if not len(rows):
            return
        sentence, log_prob = self.sentence[rows], self.log_prob[rows] + finish[rows]
        found = [
            Finished(value, value, node, None if attention is None else attention[row])
            for row, value, node in zip(
                rows.tolist(), log_prob.tolist(), self.node[rows].tolist(), strict=True
            )
        ]
        score = log_prob
        if self._config.penalties.any:
            lengths = self.statistics.table["length"][sentence].tolist()
            found = [self._penalised(*pair) for pair in zip(found, lengths, strict=True)]
            score = np.array([each.score for each in found])
        self.statistics.finish(sentence, log_prob, score)
        for number, each in zip(self.numbers[sentence].tolist(), found, strict=True):
            self.hypotheses.finish(number, each)

    def _penalised(self, finished: Finished, length: int) -> Finished:
        """Return a finished hypothesis of `length` tokens with its score under penalties."""
        penalties, attention = self._config.penalties, None
        if penalties.covers:
            attention = self.hypotheses.attention(finished.node, finished.attention)
            if attention is None:
                raise SearchError("a coverage penalty needs a model with attention")
        return finished._replace(score=penalties.score(finished.log_prob, length, attention))

    def enter(self, result: SearchResult) -> None:
        """Add what another search of the only active sentence has found, and its cost."""
        table = self.statistics.table
        table["rows"], table["support"] = result.rows, result.support
        number = int(self.numbers[0])
        if result.unfinished is not None:
            self._truncated[number] = result.unfinished
        for hypothesis in result.hypotheses:
            steps = None if hypothesis.attention is None else list(hypothesis.attention.unbind(0))
            last = steps.pop() if steps else None
            node = np.array([-1])
            for i, token in enumerate(hypothesis.tokens):
                attention = None if steps is None else [steps[i]]
                node = self.hypotheses.grow(node, np.array([token]), attention)
            finished = Finished(hypothesis.score, hypothesis.log_prob, int(node[0]), last)
            self.hypotheses.finish(number, finished)
        log_probs = np.array([hypothesis.log_prob for hypothesis in result.hypotheses])
        scores = np.array([hypothesis.score for hypothesis in result.hypotheses])
        self.statistics.finish(np.zeros(len(scores), dtype=np.int64), log_probs, scores)

    @property
    def at_limit(self) -> Flags:
        """`(sentences,)` whether the length limit cuts what continues the live prefixes."""
        return np.equal(self.statistics.table["length"], self._config.max_length)

    def alive(self, continuations: Continuations) -> Ints:
        """Return the number of continuations of each sentence `(sentences,)`, candidates or not."""
        counts = np.bincount(self.sentence, continuations.options.continuations, len(self))
        return counts.astype(np.int64)

    def leave(self, continuations: Continuations, alive: Ints, followed: Ints) -> None:
        """Count the continuations that nobody will follow as dropped or, at the limit, as cut.

        Their log-probabilities are the caller's to enter, by `Statistics.raise_bound`.

        Args:
            continuations: of the live prefixes.
            alive: `(sentences,)` their number, as `alive` returns it.
            followed: `(sentences,)` how many will be; 0 at the limit.
        """
        table, at_limit, left = self.statistics.table, self.at_limit, alive - followed
        table["strict"] &= table["finished"] + alive <= self._config.beam_size
        table["truncated"] += np.where(at_limit, left, 0)
        table["dropped"] += np.where(at_limit, 0, left)
        cut = at_limit & (table["finished"] == 0)
        rows = cut[self.sentence] & (continuations.options.continuations > 0)
        self._keep_truncated(np.flatnonzero(rows))

    def _keep_truncated(self, rows: Ints) -> None:
        """Remember each sentence's most probable prefix among `rows`, cut by the length limit.

        A prefix that does not satisfy its sentence's automaton is none.
        """
        owner, states = self.numbers[self.sentence[rows]], self.automaton_state[rows]
        for row in rows[self._automata.distance(owner, states) == 0].tolist():
            number, log_prob = int(self.numbers[self.sentence[row]]), float(self.log_prob[row])
            before = self._truncated.get(number)
            if before is None or log_prob > before.log_prob:
                prefix = Finished(log_prob, log_prob, int(self.node[row]), None)
                self._truncated[number] = self.hypotheses.hypothesis(prefix)

    def follow(self, parents: Parents, row: Ints, token: Ints, log_prob: Floats) -> None:
        """Make chosen continuations the live prefixes.

        Args:
            parents: the prefixes that they continue.
            row: `(new rows,)` row of `parents` that each continues.
            token: `(new rows,)` its next token.
            log_prob: `(new rows,)` of the longer prefix.
        """
        state, attention = parents.decoder_state, parents.attention
        if len(row) and not np.array_equal(row, np.arange(len(parents.node))):
            state = self._stepper.select(state, torch.from_numpy(row))
        chosen = None if attention is None else [attention[i] for i in row.tolist()]
        self._decoder_state = state
        self.node = self.hypotheses.grow(parents.node[row], token, chosen)
        self.sentence, self.token, self.log_prob = parents.sentence[row], token, log_prob
        owner, states = self.numbers[self.sentence], parents.automaton_state[row]
        self.automaton_state = self._automata.step(owner, states, token)
        self.statistics.table["length"] = parents.length + 1

    def remove(self, done: Flags) -> None:
        """Remove the sentences flagged in `done` `(sentences,)`, which have no live prefix left."""
        if not done.any():
            return
        for number in self.numbers[done].tolist():
            self.hypotheses.close(number)
            self._truncated.pop(number, None)
            self._forced.pop(number, None)
            self._automata.remove(number)
        self.sentence = (np.cumsum(~done) - 1)[self.sentence]
        self.numbers = self.numbers[~done]
        self.statistics.select(~done)
        self.node = self.hypotheses.compact(self.node)

    def attainable(self, log_prob: Any) -> Any:
        """Return `Penalties.attainable` of a log-probability, or of an array of them."""
        return self._config.penalties.attainable(log_prob, self._config.max_length)

    def result(
        self, place: int, attainable: Callable[[float], float] | None = None
    ) -> SearchResult:
        """Return the result of the sentence at `place`, with `attainable` as for `certify`."""
        number, row = int(self.numbers[place]), self.statistics.table[place]
        best = self.hypotheses.best(number, 0 if self._config.all_found else self._config.n_best)
        scores = [hypothesis.score for hypothesis in best]
        return SearchResult(
            hypotheses=best,
            certificate=self.statistics.certify(
                place, scores, attainable or self.attainable, number in self._automata
            ),
            finished=int(row["finished"]),
            unfinished=None if best else self._truncated.get(number),
            rows=int(row["rows"]),
            support=int(row["support"]),
        )
