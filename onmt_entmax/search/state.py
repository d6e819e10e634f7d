"""The step that beam search and exact search share: live prefixes in, candidates out.

A search calls `SearchState` in this order:

    add                     sentences, each with the empty prefix alive
    for each step
        expand              the next tokens of all live prefixes, without what is excluded
        finish              those that may end here become finished hypotheses
        keep_unfinished     remember the best of those that are as long as an output may be
        rank                sort the candidates for a beam; an exact search has its own order
        follow              make some of the candidates the next live prefixes
        remove              deactivate sentences that are done
    result                  hypotheses and certificate of a sentence that is done

If a search neither follows a candidate nor keeps it for later, it must count it with `Proof.drop`
of the candidate's sentence; certificate.py explains why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from onmt_entmax.search.arrays import (
    Flags,
    Ints,
    count_within,
    rank_in_turns,
    rank_within,
)
from onmt_entmax.search.automaton import RowAutomata
from onmt_entmax.search.certificate import SearchResult
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.exclusion import Exclusion
from onmt_entmax.search.expansion import expand, with_candidates
from onmt_entmax.search.log_probs import check_size
from onmt_entmax.search.penalties import Amount, Count
from onmt_entmax.search.prefixes import Continuations, Prefix, Rows
from onmt_entmax.search.ranking import Ranking
from onmt_entmax.search.sentences import Sentence
from onmt_entmax.search.stepper import Stepper, no_support
from onmt_entmax.search.token_checks import check_tokens


class SearchState:
    """The active sentences of a search and their live prefixes.

    Attributes:
        sentences: the active sentences.
        rows: the live prefixes; their `sentence_index` is the position in `sentences`.
        source_lengths: `(sentences,)` tokens of each source, on which a length reward depends.

    Raises:
        ValueError: if a banned token, or a special one of the stepper, is not in the vocabulary.
    """

    def __init__(self, stepper: Stepper, config: SearchConfig) -> None:
        special = {*config.constraints.banned, *stepper.excluded, stepper.bos, stepper.eos}
        check_tokens(special, stepper.vocabulary_size)
        self._stepper, self._config = stepper, config
        self._ranking = Ranking(config)
        nothing = np.empty(0, dtype=np.int64)
        self.rows = Rows.of_empty_prefixes(None, nothing, stepper.bos, automaton_states=nothing)
        self.sentences: list[Sentence] = []
        self.source_lengths = nothing
        self._automata = RowAutomata([], stepper.vocabulary_size)

    def add(self, decoder_state: Any, sentences: Sequence[Sentence]) -> None:
        """Activate sentences, each with the empty prefix alive.

        Args:
            decoder_state: the stepper's state, with one row for each sentence.
            sentences: the new sentences.
        """
        automata = [sentence.request.automaton for sentence in sentences]
        starts = [0 if automaton is None else automaton.start for automaton in automata]
        new = Rows.of_empty_prefixes(
            decoder_state,
            sentence_index=len(self.sentences) + np.arange(len(sentences)),
            bos=self._stepper.bos,
            automaton_states=np.array(starts, dtype=np.int64),
        )
        if self.sentences:
            joined = self._stepper.join([self.rows.decoder_state, decoder_state])
            new = self.rows.followed_by(new, joined)
        self.rows = new
        self._set_sentences([*self.sentences, *sentences])

    def remove(self, done: Flags) -> None:
        """Remove the sentences flagged in `done` `(sentences,)`, which have no live prefix left."""
        if done.any():
            new_index = np.cumsum(~done) - 1  # of each sentence that stays
            self.rows = replace(self.rows, sentence_index=new_index[self.rows.sentence_index])
            pairs = zip(self.sentences, done, strict=True)
            self._set_sentences([sentence for sentence, is_done in pairs if not is_done])

    def _set_sentences(self, sentences: list[Sentence]) -> None:
        """Replace the active sentences; `rows.sentence_index` must fit their order."""
        self.sentences = sentences
        automata = [sentence.request.automaton for sentence in sentences]
        self._automata = RowAutomata(automata, self._stepper.vocabulary_size)
        lengths = [sentence.request.source_length for sentence in sentences]
        self.source_lengths = np.array(lengths, np.int64)

    def expand(self, width: int) -> Continuations:
        """Compute the next step of every live prefix, without the tokens that requests rule out.

        Adds the cost to each sentence's `rows` and `support`, and the probability of what is ruled
        out to its proof.

        Args:
            width: a row's `width` most probable tokens are always among the candidates.

        Raises:
            SearchError: if the model gives a prefix no token of positive probability, or a step is
                not about the tokens of the vocabulary.
        """
        rows, stepper = self.rows, self._stepper
        step = stepper.step(
            rows.decoder_state, torch.tensor([prefix.token for prefix in rows.prefixes])
        )
        check_size(step.distribution, stepper.vocabulary_size)
        exclusion = Exclusion(
            rows,
            self.sentences,
            self._automata,
            self._config.constraints,
            eos=stepper.eos,
            vocabulary_size=stepper.vocabulary_size,
        )
        distribution, excluded = exclusion.apply(step.distribution)
        options = expand(distribution, stepper.eos, width)
        some_are_left_out = len(options.row) < options.continuations.sum()
        if self._automata and some_are_left_out:
            # Tokens that bring a row nearer to acceptance may be too improbable to be candidates.
            row, token = self._automata.advancing(rows.sentence_index, rows.automaton_states)
            options = with_candidates(options, distribution, row, token, width)
        support = options.continuations + (options.finish > -np.inf) + excluded
        if not support.all():
            raise no_support()
        self._add_cost(support)
        return Continuations(
            parents=replace(rows, decoder_state=step.state),
            attention=step.attention_rows() or [None] * len(rows.prefixes),
            options=options,
            log_probs=rows.log_probs[options.row] + options.log_prob,
        )

    def _add_cost(self, support: Ints) -> None:
        """Add a step to the cost of each sentence; `support` `(rows,)` is each row's."""
        sentence, number = self.rows.sentence_index, len(self.sentences)
        rows, tokens = count_within(sentence, number), count_within(sentence, number, support)
        for active, more_rows, more_tokens in zip(self.sentences, rows, tokens, strict=True):
            active.rows += more_rows
            active.support += more_tokens

    def rank(self, continuations: Continuations) -> tuple[Ints, Ints]:
        """Sort candidates by sentence, then by probability; return order and ranks, see `arrays`.

        With automata, candidates are grouped by the number of tokens that they still need until
        their automaton accepts, and the best of each group take turns (`rank_in_turns`; Post and
        Vilar 2018). Otherwise prefixes that ignore a constraint would fill the beam.
        """
        options, log_prob = continuations.options, continuations.log_probs
        sentence = self.rows.sentence_index[options.row]
        if not self._automata:
            return rank_within(sentence, log_prob)
        before = self.rows.automaton_states[options.row]
        after = self._automata.step(sentence, before, options.token)
        return rank_in_turns(sentence, self._automata.distance(sentence, after), log_prob)

    def finish(self, continuations: Continuations) -> None:
        """Add the live prefixes that may end here to the finished hypotheses.

        Raises:
            SearchError: if a coverage penalty is set and the model has no attention.
        """
        rows = self.rows
        finish = rows.log_probs + continuations.options.finish
        for row in np.flatnonzero(finish > -np.inf).tolist():
            sentence, log_prob = self.sentences[rows.sentence_index[row]], float(finish[row])
            sentence.proof.finish(log_prob)
            length, last_attention = int(rows.lengths[row]), continuations.attention[row]
            self._ranking.add(sentence, rows.prefixes[row], log_prob, length, last_attention)

    @property
    def at_limit(self) -> Flags:
        """Which live prefixes `(rows,)` are as long as an output may be: nothing may follow."""
        return np.equal(self.rows.lengths, self._config.max_length)

    def keep_unfinished(self, continuations: Continuations) -> None:
        """Remember the best prefix that the length limit cuts, in case no hypothesis finishes.

        A prefix that does not satisfy its sentence's automaton is not remembered, nor is one after
        which no token was possible anyway.
        """
        rows, at_limit = self.rows, self.at_limit
        if not at_limit.any():
            return
        satisfied = self._automata.distance(rows.sentence_index, rows.automaton_states) == 0
        remembered = at_limit & (continuations.options.continuations > 0) & satisfied
        for row in np.flatnonzero(remembered).tolist():
            sentence = self.sentences[rows.sentence_index[row]]
            self._ranking.add_unfinished(sentence, rows.prefixes[row], float(rows.log_probs[row]))

    def follow(self, continuations: Continuations, chosen: Ints) -> None:
        """Make the continuations at `chosen`, positions of candidates `(n,)`, the live prefixes."""
        parents, attention = continuations.parents, continuations.attention
        row, token = continuations.options.row[chosen], continuations.options.token[chosen]
        decoder_state, sentence = parents.decoder_state, parents.sentence_index[row]
        # Selecting copies. If each parent is followed once, in order, the state fits as it is; if
        # no row is left, nothing reads it again.
        if len(row) and not np.array_equal(row, np.arange(len(parents.prefixes))):
            decoder_state = self._stepper.select(decoder_state, torch.from_numpy(row))
        prefixes = [
            Prefix(parents.prefixes[parent], last, attention[parent])
            for parent, last in zip(row.tolist(), token.tolist(), strict=True)
        ]
        self.rows = Rows(
            decoder_state,
            sentence_index=sentence,
            prefixes=prefixes,
            log_probs=continuations.log_probs[chosen],
            lengths=parents.lengths[row] + 1,
            automaton_states=self._automata.step(sentence, parents.automaton_states[row], token),
        )

    def attainable(self, log_prob: Amount, source_length: Count) -> Amount:
        """Return `Penalties.attainable` with the length limit of the search."""
        config = self._config
        return config.penalties.attainable(log_prob, config.max_length, source_length)

    def result(self, sentence: Sentence, log_bound: float = 0.0) -> SearchResult:
        """Return the result of a sentence.

        Args:
            sentence: a sentence that is done.
            log_bound: another bound of the log-probabilities of sequences that have not finished,
                besides that of the sentence's proof; the smaller one counts.
        """
        bound = min(sentence.proof.log_bound, log_bound)
        certificate = sentence.proof.certificate(
            scores=[hypothesis.score for hypothesis in sentence.best],
            attainable=float(self.attainable(bound, sentence.request.source_length)),
            has_automaton=sentence.request.automaton is not None,
        )
        return SearchResult(
            hypotheses=tuple(sentence.best),
            certificate=certificate,
            finished=sentence.proof.finished,
            unfinished=None if sentence.best else sentence.unfinished,
            rows=sentence.rows,
            support=sentence.support,
        )
