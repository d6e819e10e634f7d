"""The steps of a batched beam search, which sentences may join and leave.

Only live prefixes compete for the beam: a finished hypothesis leaves it. Each live prefix is a row
of the decoder. Sentences leave the batch when they are done. Each sentence's `Proof` counts what
finishes and what is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from onmt_entmax.search.arrays import Flags, Floats, Ints, count_within, largest_within
from onmt_entmax.search.certificate import SearchResult
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.narrow_first import NarrowFirst
from onmt_entmax.search.prefixes import Continuations
from onmt_entmax.search.request import Request
from onmt_entmax.search.sentences import Sentence, Start
from onmt_entmax.search.state import SearchState
from onmt_entmax.search.stepper import Stepper


class _SentenceStep(NamedTuple):
    """What one sentence keeps and drops at one step."""

    total: int
    """Continuations of positive probability, candidates or not."""
    kept: int
    """Candidates that are kept."""
    best_kept: float
    """The largest log-probability of the kept candidates; -inf without any."""
    best_dropped: float
    """No other continuation, candidate or not, has a log-probability above this; -inf without
    any."""
    at_limit: bool
    """Whether the live prefixes are as long as an output may be, so that nothing is kept."""
    length: int
    """Tokens of each live prefix."""
    may_exhaust: bool
    """Whether the whole support may still be found."""


class _Selection(NamedTuple):
    """The candidates of one step, sorted by sentence and then by rank, and which are kept."""

    position: Ints
    """`(candidates,)` position of each candidate in the continuations"""
    sentence: Ints
    """`(candidates,)` index of each candidate's sentence among the active ones"""
    kept: Flags
    """`(candidates,)` whether each candidate is kept"""
    steps: list[_SentenceStep]
    """What each active sentence keeps and drops."""


class BeamSearch:
    """A beam search that sentences may join and leave at any step.

    Call `admit` for the sentences of a batch, and `advance` as long as any is not done.

    A sentence may follow a single prefix first, and start again with the full beam: see
    `NarrowFirst`.

    Raises:
        ValueError: if a banned token, or a special one of the stepper, is not in the vocabulary.
    """

    def __init__(self, stepper: Stepper, config: SearchConfig) -> None:
        self._stepper, self._config = stepper, config
        self._state = SearchState(stepper, config)
        self._admitted = 0
        self._narrow_first = NarrowFirst(stepper, config)

    def __len__(self) -> int:
        """Return the number of sentences that are not done."""
        return len(self._state.sentences) + len(self._narrow_first.waiting)

    @property
    def live_prefixes(self) -> int:
        """Number of live prefixes, which is that of the decoder's rows."""
        return len(self._state.rows.prefixes)

    def has_room(self, rows: int) -> bool:
        """Return whether a new batch may start beside at most `rows` live prefixes."""
        if not len(self):
            return True
        return self._stepper.can_join and self.live_prefixes <= rows

    @torch.inference_mode()
    def admit(self, request: Request) -> None:
        """Start the sentences of a batch; they are numbered from 0 in the order of admission.

        Raises:
            SearchError, ValueError: as `beam_search`.
        """
        stepper = self._stepper
        sentence_requests = request.of_sentences(stepper, self._config)
        decoder_state = stepper.start(request.batch)
        may_start_again = self._narrow_first.may_start_again
        sentences = [
            Sentence(
                number=self._admitted + row,
                request=sentence_request,
                beam=self._narrow_first.first_beam,
                start=Start(decoder_state, row) if may_start_again else None,
            )
            for row, sentence_request in enumerate(sentence_requests)
        ]
        self._admitted += len(sentences)
        self._state.add(decoder_state, sentences)

    @torch.inference_mode()
    def advance(self) -> list[tuple[int, SearchResult]]:
        """Take one step in every sentence: expand its live prefixes, finish, keep and drop.

        Returns:
            The sentences that are done: number and result.
        """
        state = self._state
        while self._narrow_first.is_time(len(state.sentences)):
            state.add(*self._narrow_first.start_again())
        # One candidate more than can be kept, so that the bound is that of the best one dropped.
        continuations = state.expand(self._config.beam_size + 1)
        state.finish(continuations)
        state.keep_unfinished(continuations)
        selection = self._keep(continuations)
        done, results = self._drop(selection)
        state.follow(continuations, selection.position[selection.kept & ~done[selection.sentence]])
        state.remove(done)
        return results

    def _keep(self, continuations: Continuations) -> _Selection:
        """Select the candidates that become live prefixes, unless their sentence is done.

        There are three kinds of continuations of positive probability: candidates that are kept,
        candidates that are not, and tokens that are too improbable to be candidates. Each
        `_SentenceStep` has a bound on the latter two, `best_dropped`.
        """
        state, options = self._state, continuations.options
        rows, count = state.rows, len(state.sentences)
        position, rank = state.rank(continuations)
        row, log_prob = options.row[position], continuations.log_probs[position]
        sentence = rows.sentence_index[row]
        total = count_within(rows.sentence_index, count, options.continuations)
        may_exhaust = self._may_exhaust(total)
        promising = self._is_promising(sentence, rank, log_prob, may_exhaust)
        kept = promising & ~state.at_limit[row]
        kept_numbers = count_within(sentence[kept], count)
        best_kept = largest_within(sentence[kept], log_prob[kept], count).tolist()
        best_listed = largest_within(sentence[~kept], log_prob[~kept], count)
        best_unlisted = largest_within(
            rows.sentence_index, rows.log_probs + options.unlisted, count
        )
        best_dropped = np.maximum(best_listed, best_unlisted).tolist()
        # All rows of a sentence have the same length, so any of them tells both.
        at_limit, length = np.zeros(count, bool), np.zeros(count, np.int64)
        at_limit[rows.sentence_index], length[rows.sentence_index] = state.at_limit, rows.lengths
        steps = [
            _SentenceStep(
                total=total[index],
                kept=kept_numbers[index],
                best_kept=best_kept[index],
                best_dropped=best_dropped[index],
                at_limit=bool(at_limit[index]),
                length=int(length[index]),
                may_exhaust=bool(may_exhaust[index]),
            )
            for index in range(count)
        ]
        return _Selection(position, sentence, kept, steps)

    def _is_promising(
        self, sentence: Ints, rank: Ints, log_prob: Floats, may_exhaust: Flags
    ) -> Flags:
        """Return which candidates `(candidates,)` are in the beam and may still be of use.

        A candidate that cannot beat the n-th best hypothesis is of use only if the whole support
        may still be found.

        Args:
            sentence: `(candidates,)` index of each candidate's sentence.
            rank: `(candidates,)` rank of each candidate in its sentence.
            log_prob: `(candidates,)`.
            may_exhaust: `(sentences,)` whether the whole support may still be found.
        """
        state, n_best = self._state, self._config.n_best
        beam = np.array([active.beam for active in state.sentences])
        in_beam = rank < beam[sentence]
        if n_best == 0:
            return in_beam
        worst = np.array([active.score(n_best) for active in state.sentences])
        attainable = state.attainable(log_prob, state.source_lengths[sentence])
        return in_beam & (may_exhaust[sentence] | (attainable > worst[sentence]))

    def _may_exhaust(self, total: Sequence[int]) -> Flags:
        """Return for each sentence `(sentences,)` whether its whole support may still be found.

        It may if nothing has been dropped yet, and all continuations fit the beam now.

        Args:
            total: the number of continuations of positive probability of each sentence.
        """
        if self._config.stop != "exhaustive":
            return np.zeros(len(total), dtype=bool)
        pairs = zip(self._state.sentences, total, strict=True)
        return np.array(
            [left <= sentence.beam and not sentence.proof.dropped for sentence, left in pairs],
            dtype=bool,
        )

    def _drop(self, selection: _Selection) -> tuple[Flags, list[tuple[int, SearchResult]]]:
        """Tell each sentence's proof what is dropped, and find the sentences that are done.

        Every continuation of positive probability is either kept or counted in the proof here. When
        a sentence is done, the candidates that it has kept are counted, too. This is the invariant
        of docs/certificates.md.

        Returns:
            Which sentences `(sentences,)` are done; and the numbers and results of those among them
            that do not start again.
        """
        done, results = np.zeros(len(self._state.sentences), dtype=bool), []
        pairs = zip(self._state.sentences, selection.steps, strict=True)
        for index, (sentence, step) in enumerate(pairs):
            proof = sentence.proof
            if proof.finished + step.total > self._config.beam_size:
                proof.strict = False
            proof.drop(step.total - step.kept, step.best_dropped, cut=step.at_limit)
            if self._goes_on(sentence, step):
                continue
            proof.drop(step.kept, step.best_kept)
            done[index] = True
            if self._narrow_first.must_start_again(sentence, sentence.score(1)):
                self._narrow_first.waiting.append(sentence)
            else:
                results.append((sentence.number, self._state.result(sentence)))
        return done, results

    def _goes_on(self, sentence: Sentence, step: _SentenceStep) -> bool:
        """Return whether a sentence goes on with the candidates it has kept; if not, it is done."""
        if not step.kept:
            return False
        if not step.may_exhaust and self._is_beaten(sentence, step):
            return False
        best = max(sentence.score(1), step.best_kept)
        return not self._narrow_first.must_start_again(sentence, best)

    def _is_beaten(self, sentence: Sentence, step: _SentenceStep) -> bool:
        """Return whether nothing that a sentence has kept can be better than what has finished.

        With `stop: first`, as in OpenNMT-py, the best prefix kept counts as if it ended now, which
        proves nothing. Otherwise the best score that it could attain counts.
        """
        config, best_kept = self._config, step.best_kept
        if config.stop == "first":
            enough = max(1, config.n_best, config.beam_size)
            rival = config.penalties.score_without_coverage(
                best_kept, step.length, sentence.request.source_length
            )
            return bool(sentence.score(1) >= rival) and sentence.proof.finished >= enough
        attainable = self._state.attainable(best_kept, sentence.request.source_length)
        return bool(sentence.score(max(1, config.n_best)) >= attainable)
