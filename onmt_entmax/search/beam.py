"""Batched beam search with certificates, for one batch or a stream of batches.

Only live prefixes compete for the beam: a finished hypothesis leaves it, and a live prefix costs
one row of the decoder. Sentences leave the batch when they are done. What is finished and dropped
is told to each sentence's `Proof`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from onmt_entmax.errors import counted
from onmt_entmax.search.arrays import Flags, Ints
from onmt_entmax.search.automaton import Automaton
from onmt_entmax.search.certificate import SearchResult
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.constraints import check_tokens, checked_prefixes
from onmt_entmax.search.prefixes import Continuations, Sentence
from onmt_entmax.search.state import SearchState, source_lengths
from onmt_entmax.search.stepper import Stepper

Automata = Sequence[Automaton | None]
"""For each sentence what its output must satisfy, if anything."""

Banned = Sequence[Collection[int]]
"""For each sentence token ids that its output may not have."""

Work = tuple[Any, Sequence[Sequence[int]] | None, Automata | None, Banned | None]
"""A batch, for each sentence the token ids that its output must start with, its automaton, and
token ids that its output may not have."""


def beam_search(
    stepper: Stepper,
    batch: Any,
    config: SearchConfig,
    prefixes: Sequence[Sequence[int]] | None = None,
    automata: Automata | None = None,
    banned: Banned | None = None,
) -> list[SearchResult]:
    """Search every sentence of a batch.

    Args:
        stepper: the model.
        batch: what the stepper's `start` takes; its `len` is the number of sentences.
        config: how to search.
        prefixes: for each sentence the token ids that its output must start with.
        automata: for each sentence what its output must satisfy, if anything.
        banned: for each sentence token ids that its output may not have, besides those of
            `config.constraints`.

    Returns:
        One result for each sentence, in the order of the batch.

    Raises:
        SearchError: if the model gives no token a positive probability, or a coverage penalty is
            set and the stepper returns no attention.
        ValueError: if a token, a prefix or an automaton is not valid.
    """
    results = dict(stream_search(stepper, [(batch, prefixes, automata, banned)], config))
    return [results[sentence] for sentence in sorted(results)]


def stream_search(
    stepper: Stepper, work: Iterable[Work], config: SearchConfig, rows: int = 128
) -> Iterator[tuple[int, SearchResult]]:
    """Search a stream of batches and refill the batch as sentences leave it.

    Memory: at most `rows` sentences and those of one more batch, each with up to `beam_size` live
    prefixes. Batches are taken from `work` when they are needed, and results are not kept.

    Args:
        stepper: the model. Where its rows cannot have different lengths (a Transformer), a batch
            starts when the one before is done.
        work: batches with their prefixes, automata and banned tokens.
        config: how to search.
        rows: a new batch starts when no more live prefixes than this are left.

    Yields:
        The number of a sentence and its result, as soon as it is done. Sentences are numbered from
        0 in the order of `work`, and within a batch in its order.
    """
    search = BeamSearch(stepper, config)
    supply = iter(work)
    exhausted = False
    while len(search) or not exhausted:
        while not exhausted and (
            not len(search) or (stepper.can_join and search.live_prefixes <= rows)
        ):
            following = next(supply, None)
            if following is None:
                exhausted = True
            else:
                search.admit(*following)
        if len(search):
            yield from search.advance()


@dataclass(frozen=True)
class Selection:
    """The candidates of one step that are kept, and what each sentence keeps and drops.

    Candidates are sorted by sentence, and within a sentence by rank.
    """

    position: Ints
    """`(candidates,)` position of each candidate in the continuations"""
    sentence: Ints
    """`(candidates,)` index of each candidate's sentence among the active ones"""
    kept: Flags
    """`(candidates,)`"""
    total: list[int]
    """`(sentences,)` continuations of positive probability, candidates or not"""
    followed: list[int]
    """`(sentences,)` candidates that are kept"""
    best_kept: list[float]
    """`(sentences,)` the largest log-probability of these; -inf without any"""
    best_dropped: list[float]
    """`(sentences,)` no continuation that is not kept, candidate or not, is more probable"""
    at_limit: list[bool]
    """`(sentences,)` whether the length limit cuts the live prefixes"""
    length: list[int]
    """`(sentences,)` tokens of the live prefixes"""
    may_exhaust: list[bool]
    """`(sentences,)` whether the whole support may still be found"""


class BeamSearch:
    """A beam search that sentences may join and leave at any step.

    With a softmax and `n_best` 1, a sentence first follows a single live prefix. If that proves its
    result, as it mostly does, no beam could find a better one; otherwise, as soon as it can prove
    nothing any more, the sentence starts again with the full beam.

    Raises:
        ValueError: if a banned token, or a special one of the stepper, is not in the vocabulary.
    """

    def __init__(self, stepper: Stepper, config: SearchConfig) -> None:
        self._stepper, self._config = stepper, config
        self._state = SearchState(stepper, config)
        self._admitted = 0
        plain = config.stop != "first" and not config.penalties.any
        self._first_beam = 1 if stepper.dense and config.n_best == 1 and plain else config.beam_size
        self._again: list[Sentence] = []  # to be searched with the full beam

    def __len__(self) -> int:
        """Return the number of sentences that are not done."""
        return len(self._state.sentences) + len(self._again)

    @property
    def live_prefixes(self) -> int:
        """Number of live prefixes, which is that of the decoder's rows."""
        return len(self._state.rows.prefix)

    @torch.inference_mode()
    def admit(
        self,
        batch: Any,
        prefixes: Sequence[Sequence[int]] | None = None,
        automata: Automata | None = None,
        banned: Banned | None = None,
    ) -> None:
        """Start the sentences of a batch; they are numbered from 0 in the order of admission.

        Args and raises: as `beam_search`.
        """
        count, stepper, config = len(batch), self._stepper, self._config
        prefixes = checked_prefixes(prefixes, count, stepper, config.max_length)
        for name, items in (("automata", automata), ("banned", banned)):
            if items is not None and len(items) != count:
                raise ValueError(f"{name} has {len(items)} for {counted(count, 'sentence')}")
        automata = automata or [None] * count
        never = [frozenset(tokens) for tokens in banned or [()] * count]
        check_tokens(frozenset().union(*never), stepper.vocabulary_size)
        lengths = source_lengths(stepper, batch, config)
        decoder_state = stepper.start(batch)
        may_start_again = self._first_beam < config.beam_size
        sentences = [
            Sentence(
                number=self._admitted + i,
                forced=tuple(prefixes[i]),
                automaton=automata[i],
                banned=never[i],
                beam=self._first_beam,
                source_length=lengths[i],
                start=(decoder_state, i) if may_start_again else None,
            )
            for i in range(count)
        ]
        self._admitted += count
        self._state.add(decoder_state, sentences)

    @torch.inference_mode()
    def advance(self) -> list[tuple[int, SearchResult]]:
        """Take one step in every sentence: expand its live prefixes, finish, keep and drop.

        Returns:
            The sentences that are done: number and result.
        """
        state = self._state
        # Joining a few rows costs more than letting them wait.
        while self._again and (
            not state.sentences
            or (self._stepper.can_join and len(self._again) >= len(state.sentences))
        ):
            self._start_again()
        # One candidate more than can be kept, so that the bound is that of the best one dropped.
        continuations = state.expand(self._config.beam_size + 1)
        state.finish(continuations)
        selection = self._keep(continuations)
        done, results = self._drop(selection)
        state.follow(continuations, selection.position[selection.kept & ~done[selection.sentence]])
        state.remove(done)
        return results

    def _keep(self, continuations: Continuations) -> Selection:
        """Select the candidates that become live prefixes, unless their sentence is done."""
        state, config = self._state, self._config
        rows, options, sentences = state.rows, continuations.options, state.sentences
        count, cut = len(sentences), state.cut(continuations)
        position, rank = state.rank(continuations)
        row, log_prob = options.row[position], continuations.log_prob[position]
        of_sentence = rows.sentence[row]
        total = state.count(rows.sentence, options.continuations)
        may_exhaust = self._may_exhaust(total)
        beam = np.array([sentence.beam for sentence in sentences])
        kept = (rank < beam[of_sentence]) & ~cut[row]
        if config.n_best:
            # What cannot beat the n-th best is dropped, unless the support may be exhausted.
            worst = np.array([sentence.score(config.n_best) for sentence in sentences])
            attainable = state.attainable(log_prob, state.source_lengths[of_sentence])
            kept &= may_exhaust[of_sentence] | (attainable > worst[of_sentence])
        at_limit, length = np.zeros(count, dtype=bool), np.zeros(count, dtype=np.int64)
        # All rows of a sentence are of one length.
        at_limit[rows.sentence] = cut
        length[rows.sentence] = rows.length
        listed = state.largest(of_sentence[~kept], log_prob[~kept])
        unlisted = state.largest(rows.sentence, rows.log_prob + options.unlisted)
        return Selection(
            position=position,
            sentence=of_sentence,
            kept=kept,
            total=total,
            followed=state.count(of_sentence[kept]),
            best_kept=state.largest(of_sentence[kept], log_prob[kept]),
            best_dropped=[*map(max, listed, unlisted)],
            at_limit=at_limit.tolist(),
            length=length.tolist(),
            may_exhaust=may_exhaust.tolist(),
        )

    def _may_exhaust(self, total: Sequence[int]) -> Flags:
        """Return whether the whole support `(sentences,)` may still be found.

        Args:
            total: continuations of positive probability of each sentence.
        """
        if self._config.stop != "exhaustive":
            return np.zeros(len(total), dtype=bool)
        pairs = zip(self._state.sentences, total, strict=True)
        return np.array(
            [left <= sentence.beam and not sentence.proof.dropped for sentence, left in pairs],
            dtype=bool,
        )

    def _drop(self, selection: Selection) -> tuple[Flags, list[tuple[int, SearchResult]]]:
        """Tell each sentence's proof what is dropped, and find the sentences that are done.

        Every continuation of positive probability is kept or told to the proof here: those that are
        dropped at once, and at the end of a sentence those that were kept. This is the invariant of
        docs/certificates.md.

        Returns:
            Which sentences `(sentences,)` are done: their kept candidates are dropped too; and
            their numbers and results, but for those that start again.
        """
        done, results = np.zeros(len(self._state.sentences), dtype=bool), []
        for index, sentence in enumerate(self._state.sentences):
            proof, total = sentence.proof, selection.total[index]
            followed, best_kept = selection.followed[index], selection.best_kept[index]
            if proof.finished + total > self._config.beam_size:
                proof.strict = False
            proof.drop(total - followed, selection.best_dropped[index], selection.at_limit[index])
            # A sentence that follows a single prefix starts again once nothing can be proven.
            narrow = sentence.beam < self._config.beam_size
            unprovable = narrow and max(sentence.score(1), best_kept) < proof.log_bound
            beaten = not selection.may_exhaust[index] and self._is_beaten(
                sentence, best_kept, selection.length[index]
            )
            if followed and not beaten and not unprovable:
                continue
            proof.drop(followed, best_kept)
            done[index] = True
            if narrow and sentence.score(1) < proof.log_bound:
                self._again.append(sentence)
            else:
                results.append((sentence.number, self._state.result(sentence)))
        return done, results

    def _start_again(self) -> None:
        """Start the waiting sentences of one batch again, with the full beam."""
        assert self._again[0].start is not None
        decoder_state = self._again[0].start[0]
        rows, sentences, waiting = [], [], []
        for sentence in self._again:
            if sentence.start is None or sentence.start[0] is not decoder_state:
                waiting.append(sentence)
                continue
            rows.append(sentence.start[1])
            # A new proof; the cost so far counts.
            sentences.append(
                Sentence(
                    number=sentence.number,
                    forced=sentence.forced,
                    automaton=sentence.automaton,
                    banned=sentence.banned,
                    beam=self._config.beam_size,
                    rows=sentence.rows,
                    support=sentence.support,
                )
            )
        self._again = waiting
        self._state.add(self._stepper.select(decoder_state, torch.tensor(rows)), sentences)

    def _is_beaten(self, sentence: Sentence, log_prob: float, length: int) -> bool:
        """Return whether no live prefix can lead to anything better than what has finished.

        Args:
            sentence: the sentence.
            log_prob: of its most probable live prefix.
            length: of its live prefixes.
        """
        config = self._config
        if config.stop == "first":
            enough = max(1, config.n_best, config.beam_size)
            rival = config.penalties.rewarded(log_prob, length, sentence.source_length)
            return bool(sentence.score(1) >= rival) and sentence.proof.finished >= enough
        attainable = self._state.attainable(log_prob, sentence.source_length)
        return bool(sentence.score(max(1, config.n_best)) >= attainable)
