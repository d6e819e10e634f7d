"""What all searches share: the active sentences and the steps of their live prefixes."""

from __future__ import annotations

import sys
from bisect import insort
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from onmt_entmax.nn.support import Distribution, Support
from onmt_entmax.search.automaton import SATISFIED, VIOLATED, RowAutomata
from onmt_entmax.search.certificate import Hypothesis, SearchResult
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.constraints import check_tokens
from onmt_entmax.search.expansion import (
    Expansion,
    Flags,
    Floats,
    Ints,
    expand,
    largest_within,
    look_up,
    rank_within,
    remove,
)
from onmt_entmax.search.prefixes import Continuations, Prefix, Rows, Sentence
from onmt_entmax.search.stepper import SearchError, Stepper, no_support


def source_lengths(stepper: Stepper, batch: Any, config: SearchConfig) -> Sequence[int]:
    """Return the source lengths of a batch, or zeros where no length reward reads them."""
    needed = config.penalties.length_reward > 0
    return stepper.source_lengths(batch) if needed else [0] * len(batch)


class SearchState:
    """The active sentences of a search and their live prefixes.

    Attributes:
        sentences: the active ones.
        rows: the live prefixes.
        source_lengths: `(sentences,)`, see the function of this name.

    Raises:
        ValueError: if a banned token, or a special one of the stepper, is not in the vocabulary.
    """

    def __init__(self, stepper: Stepper, config: SearchConfig) -> None:
        special = {*config.constraints.banned, *stepper.excluded, stepper.bos, stepper.eos}
        check_tokens(special, stepper.vocabulary_size)
        self._stepper, self._config = stepper, config
        self._ranks = sys.maxsize if config.all_found else config.n_best or sys.maxsize
        self.sentences: list[Sentence] = []
        self.source_lengths = np.empty(0, dtype=np.int64)
        none = np.empty(0, dtype=np.int64)
        self.rows = Rows(None, none, [], np.empty(0), none, none)
        self._automata = RowAutomata([], stepper.vocabulary_size)

    def add(self, decoder_state: Any, sentences: Sequence[Sentence]) -> None:
        """Activate sentences, each with the empty prefix alive.

        Args:
            decoder_state: of the stepper, one row a sentence.
            sentences: new ones.
        """
        old, count = self.rows, len(sentences)
        if self.sentences:
            decoder_state = self._stepper.join([old.decoder_state, decoder_state])
        always = {*self._stepper.excluded, *self._config.constraints.banned}
        for sentence in sentences:
            sentence.never = np.array(sorted(always | sentence.banned), dtype=np.int64)
        automata = [sentence.automaton for sentence in sentences]
        starts = np.array([0 if each is None else each.start for each in automata], np.int64)
        for sentence, start in zip(sentences, starts.tolist(), strict=True):
            if sentence.automaton is not None:
                sentence.proof.satisfied = float(start == SATISFIED)
                sentence.proof.violated = float(start == VIOLATED)
        self.rows = Rows(
            decoder_state,
            np.concatenate([old.sentence, len(self.sentences) + np.arange(count)]),
            old.prefix + [Prefix(None, self._stepper.bos)] * count,
            np.concatenate([old.log_prob, np.zeros(count)]),
            np.concatenate([old.length, np.zeros(count, dtype=np.int64)]),
            np.concatenate([old.automaton_state, starts]),
        )
        self._set_sentences([*self.sentences, *sentences])

    def remove(self, done: Flags) -> None:
        """Remove the sentences flagged in `done` `(sentences,)`, which have no live prefix left."""
        if done.any():
            self.rows = replace(self.rows, sentence=(np.cumsum(~done) - 1)[self.rows.sentence])
            pairs = zip(self.sentences, done, strict=True)
            self._set_sentences([sentence for sentence, is_done in pairs if not is_done])

    def _set_sentences(self, sentences: list[Sentence]) -> None:
        """Make sentences the active ones; rows number them by their order."""
        self.sentences = sentences
        automata = [sentence.automaton for sentence in sentences]
        self._automata = RowAutomata(automata, self._stepper.vocabulary_size)
        self.source_lengths = np.array([sentence.source_length for sentence in sentences], np.int64)

    def count(self, sentence: Ints, amount: Ints | None = None) -> list[int]:
        """Return how many rows, or what amount of them `(rows,)`, each sentence has."""
        return np.bincount(sentence, amount, len(self.sentences)).astype(np.int64).tolist()

    def largest(self, sentence: Ints, log_prob: Floats) -> list[float]:
        """Return the largest log-probability of each sentence; -inf without any."""
        return largest_within(sentence, log_prob, len(self.sentences)).tolist()

    def expand(self, width: int) -> Continuations:
        """Compute the next step of every live prefix.

        Rows, supports and excluded tokens are counted.

        Args:
            width: a row's `width` most probable tokens are always among the candidates.

        Raises:
            SearchError: if the model gives a prefix no token of positive probability.
        """
        rows = self.rows
        last = torch.tensor([prefix.token for prefix in rows.prefix])
        step = self._stepper.step(rows.decoder_state, last)
        distribution, excluded = self._exclude(step.distribution)
        options = expand(distribution, self._stepper.eos, width)
        if self._automata and len(options.row) < options.continuations.sum():
            options = self._with_advancing(options, distribution, width)
        support = options.continuations + (options.finish > -np.inf) + excluded
        if not support.all():
            raise no_support()
        counts = self.count(rows.sentence), self.count(rows.sentence, support)
        for sentence, computed, tokens in zip(self.sentences, *counts, strict=True):
            sentence.rows += computed
            sentence.support += tokens
        return Continuations(
            replace(rows, decoder_state=step.state),
            step.attention_rows() or [None] * len(rows.prefix),
            options,
            rows.log_prob[options.row] + options.log_prob,
        )

    def _exclude(self, distribution: Distribution) -> tuple[Distribution, Ints]:
        """Remove tokens that the request rules out, and count their probability.

        Args:
            distribution: of the live prefixes; may be changed in place.

        Returns:
            The distribution without them, and how many of positive probability each row lost.
        """
        size = self._stepper.vocabulary_size
        if isinstance(distribution, Support):
            columns = distribution.vocabulary
        else:
            columns = distribution.shape[1]
        if columns != size:
            raise SearchError(
                f"a step gives probabilities of size {columns}, the vocabulary has {size}"
            )
        forbidden = self._forbidden()
        # Before anything is removed: it also counts what must satisfy the automaton.
        violating = self._violating(distribution) if self._automata else None
        # Whether forbidden outputs satisfy their automaton is not known.
        distribution, row = self._remove(distribution, *forbidden, decided=False)
        lost = np.bincount(row, minlength=len(self.rows.prefix))
        if violating is not None:
            distribution, row = self._remove(distribution, *violating, decided=True)
            lost = lost + np.bincount(row, minlength=len(lost))
        return distribution, lost

    def _remove(
        self, distribution: Distribution, row: Ints, token: Ints, decided: bool
    ) -> tuple[Distribution, Ints]:
        """Remove tokens, and tell the proofs of their sentences.

        Args:
            distribution: of the live prefixes; may be changed in place.
            row: `(pairs,)` rows of the tokens.
            token: `(pairs,)` tokens that may not follow.
            decided: whether the automaton has decided on the outputs that are lost.

        Returns:
            The distribution without them, and the rows of those with positive probability.
        """
        distribution, row, log_prob = remove(distribution, row, token)
        if len(row):
            sentence, log_prob = self.rows.sentence[row], self.rows.log_prob[row] + log_prob
            mass = np.bincount(sentence, np.exp(log_prob), len(self.sentences))
            largest = self.largest(sentence, log_prob)
            for index in np.unique(sentence).tolist():
                proof = self.sentences[index].proof
                proof.exclude(float(mass[index]), largest[index])
                if not decided:
                    proof.undecided = True
        return distribution, row

    def _forbidden(self) -> tuple[Ints, Ints]:
        """Return pairs of a row and a token that may not follow it, as two arrays `(pairs,)`."""
        rows, constraints = self.rows, self._config.constraints
        tokens = []
        for index, length, prefix in zip(
            rows.sentence.tolist(), rows.length.tolist(), rows.prefix, strict=True
        ):
            sentence = self.sentences[index]
            forbidden = sentence.never
            if length < len(sentence.forced):
                every = np.arange(self._stepper.vocabulary_size)
                forbidden = np.delete(every, sentence.forced[length])
            elif length < constraints.min_length or constraints.block_ngram_repeat:
                more = constraints.forbidden(prefix.tokens(), self._stepper.eos)
                forbidden = np.array(sorted({*forbidden.tolist(), *more}), dtype=np.int64)
            tokens.append(forbidden)
        return np.repeat(np.arange(len(tokens)), list(map(len, tokens))), np.concatenate(tokens)

    def _violating(self, distribution: Distribution) -> tuple[Ints, Ints]:
        """Return pairs of a row and a token after which its automaton cannot be satisfied.

        The probability of these, and of tokens after which it must be, is counted.
        """
        sentence, state = self.rows.sentence, self.rows.automaton_state
        row, token, satisfied = self._automata.deciding(sentence, state, distribution)
        prob = np.exp(self.rows.log_prob[row] + look_up(distribution, row, token))
        for index, is_satisfied, value in zip(
            sentence[row].tolist(), satisfied.tolist(), prob.tolist(), strict=True
        ):
            proof = self.sentences[index].proof
            if is_satisfied:
                proof.satisfied += value
            else:
                proof.violated += value
        return row[~satisfied], token[~satisfied]

    def _with_advancing(
        self, options: Expansion, distribution: Distribution, width: int
    ) -> Expansion:
        """Add each row's `width` most probable tokens of those that its automaton waits for."""
        row, token = self._automata.advancing(self.rows.sentence, self.rows.automaton_state)
        log_prob = look_up(distribution, row, token)
        order, rank = rank_within(row, log_prob)
        order = order[rank < width]
        size = self._stepper.vocabulary_size
        listed = np.isin(row[order] * size + token[order], options.row * size + options.token)
        new = order[~listed & (log_prob[order] > -np.inf)]
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
        sentence = self.rows.sentence[options.row]
        if not self._automata:
            return rank_within(sentence, log_prob)
        before = self.rows.automaton_state[options.row]
        state = self._automata.step(sentence, before, options.token)
        distance = self._automata.distance(sentence, state)
        group = sentence * (distance.max(initial=0) + 1) + distance
        turn = np.empty_like(sentence)
        order, rank = rank_within(group, log_prob)
        turn[order] = 2 * rank + (distance[order] > 0)
        return rank_within(sentence, log_prob, turn)

    def finish(self, continuations: Continuations) -> None:
        """Add the live prefixes that may end here to the finished hypotheses."""
        rows, penalties = self.rows, self._config.penalties
        finish = rows.log_prob + continuations.options.finish
        for row in np.flatnonzero(finish > -np.inf).tolist():
            sentence, prefix = self.sentences[rows.sentence[row]], rows.prefix[row]
            last, attention = continuations.attention[row], None
            log_prob = score = float(finish[row])
            if penalties.covers:
                attention = prefix.all_attention(last)
                if attention is None:
                    raise SearchError("a coverage penalty needs a model with attention")
            if penalties.any:
                length, source_length = int(rows.length[row]), sentence.source_length
                score = penalties.score(log_prob, length, attention, source_length)
            sentence.proof.finish(log_prob)
            best = sentence.best
            if len(best) < self._ranks or (score, log_prob) > (best[-1].score, best[-1].log_prob):
                attention = prefix.all_attention(last) if attention is None else attention
                hypothesis = Hypothesis(prefix.tokens(), log_prob, score, attention)
                insort(best, hypothesis, key=lambda other: (-other.score, -other.log_prob))
                del best[self._ranks :]

    def cut(self, continuations: Continuations) -> Flags:
        """Return which rows `(rows,)` the length limit cuts, and remember the best as unfinished.

        A prefix that does not satisfy its sentence's automaton is not remembered.
        """
        rows = self.rows
        at_limit = np.equal(rows.length, self._config.max_length)
        if at_limit.any():
            satisfied = self._automata.distance(rows.sentence, rows.automaton_state) == 0
            remembered = at_limit & (continuations.options.continuations > 0) & satisfied
            for row in np.flatnonzero(remembered).tolist():
                sentence, log_prob = self.sentences[rows.sentence[row]], float(rows.log_prob[row])
                before = sentence.unfinished
                if before is None or log_prob > before.log_prob:
                    prefix = rows.prefix[row]
                    attention = prefix.all_attention(None)
                    tokens = prefix.tokens()
                    sentence.unfinished = Hypothesis(tokens, log_prob, log_prob, attention)
        return at_limit

    def follow(self, continuations: Continuations, chosen: Ints) -> None:
        """Make the continuations at `chosen`, positions of candidates `(n,)`, the live prefixes."""
        parents, attention = continuations.parents, continuations.attention
        row, token = continuations.options.row[chosen], continuations.options.token[chosen]
        state, sentence = parents.decoder_state, parents.sentence[row]
        if len(row) and not np.array_equal(row, np.arange(len(parents.prefix))):
            state = self._stepper.select(state, torch.from_numpy(row))
        prefixes = [
            Prefix(parents.prefix[parent], last, attention[parent])
            for parent, last in zip(row.tolist(), token.tolist(), strict=True)
        ]
        self.rows = Rows(
            state,
            sentence,
            prefixes,
            continuations.log_prob[chosen],
            parents.length[row] + 1,
            self._automata.step(sentence, parents.automaton_state[row], token),
        )

    def attainable(self, log_prob: Any, source_length: Any) -> Any:
        """Return `Penalties.attainable` of log-probabilities: numbers, or arrays of one size."""
        config = self._config
        return config.penalties.attainable(log_prob, config.max_length, source_length)

    def result(self, sentence: Sentence, log_bound: float = 0.0) -> SearchResult:
        """Return the result of a sentence.

        Args:
            sentence: one that is done.
            log_bound: another bound of the log-probabilities outside F, where that is known.
        """
        scores = [hypothesis.score for hypothesis in sentence.best]
        bound = min(sentence.proof.log_bound, log_bound)
        unseen = self.attainable(bound, sentence.source_length)
        return SearchResult(
            hypotheses=tuple(sentence.best),
            certificate=sentence.proof.certificate(
                scores, float(unseen), sentence.automaton is not None
            ),
            finished=sentence.proof.finished,
            unfinished=None if sentence.best else sentence.unfinished,
            rows=sentence.rows,
            support=sentence.support,
        )
