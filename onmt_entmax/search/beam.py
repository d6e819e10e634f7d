"""Batched beam search with certificates, for one batch or a stream of batches.

Only live prefixes compete for the beam: a finished hypothesis leaves it, and a live prefix costs
one row of the decoder. Sentences leave the batch when they are done. What is finished and dropped
is told to each sentence's `Proof`.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import torch

from onmt_entmax.errors import counted
from onmt_entmax.search.automaton import Automaton
from onmt_entmax.search.certificate import SearchResult
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.constraints import check_tokens, checked_prefixes
from onmt_entmax.search.state import SearchState, Sentence, source_lengths
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
        count, own = len(batch), self._stepper
        prefixes = checked_prefixes(prefixes, count, own, self._config.max_length)
        for name, given in (("automata", automata), ("banned", banned)):
            if given is not None and len(given) != count:
                raise ValueError(f"{name} has {len(given)} for {counted(count, 'sentence')}")
        never = [frozenset(tokens) for tokens in banned or [()] * count]
        check_tokens(frozenset().union(*never), own.vocabulary_size)
        lengths = source_lengths(own, batch, self._config)
        decoder_state, beam = own.start(batch), self._first_beam
        again = beam < self._config.beam_size
        sentences = [
            Sentence(
                self._admitted + i,
                tuple(prefix),
                automaton,
                tokens,
                beam,
                length,
                (decoder_state, i) if again else None,
            )
            for i, (prefix, length, automaton, tokens) in enumerate(
                zip(prefixes, lengths, automata or repeat(None), never, strict=False)
            )
        ]
        self._admitted += count
        self._state.add(decoder_state, sentences)

    @torch.inference_mode()
    def advance(self) -> list[tuple[int, SearchResult]]:
        """Take one step in every sentence.

        Returns:
            The sentences that are done: number and result.
        """
        state, config = self._state, self._config
        # Joining a few rows costs more than letting them wait.
        while self._again and (
            not state.sentences
            or (self._stepper.can_join and len(self._again) >= len(state.sentences))
        ):
            self._start_again()
        # At least one more a row than can be kept: the best one dropped of a row then bounds all
        # tokens that the row left out.
        continuations = state.expand(config.beam_size + 1)
        state.finish(continuations)
        of_row, cut = state.rows.sentence, state.cut(continuations)
        order, rank = state.rank(continuations)
        row, log_prob = continuations.options.row[order], continuations.log_prob[order]
        sentence = of_row[row]
        alive = state.count(of_row, continuations.options.continuations)  # candidates or not
        may_exhaust = np.array(
            [
                config.stop == "exhaustive" and count <= each.beam and not each.proof.dropped
                for each, count in zip(state.sentences, alive, strict=True)
            ]
        )
        beam = np.array([each.beam for each in state.sentences])
        kept = (rank < beam[sentence]) & ~cut[row]
        if config.n_best:
            # What cannot beat the n-th best is dropped, unless the support may be exhausted.
            worst = np.array([each.score(config.n_best) for each in state.sentences])
            hope = state.attainable(log_prob, state.source_lengths[sentence])
            kept &= may_exhaust[sentence] | (hope > worst[sentence])
        followed = state.count(sentence[kept])
        best_out = state.largest(sentence[~kept], log_prob[~kept])
        best_kept = state.largest(sentence[kept], log_prob[kept])
        at_limit = np.zeros(len(alive), dtype=bool)
        at_limit[of_row] = cut
        length = np.zeros(len(alive), dtype=np.int64)
        length[of_row] = state.rows.length
        done, results = np.zeros(len(alive), dtype=bool), []
        for place, each in enumerate(state.sentences):
            proof, count = each.proof, followed[place]
            proof.strict &= proof.finished + alive[place] <= config.beam_size
            proof.drop(alive[place] - count, best_out[place], bool(at_limit[place]))
            narrow = each.beam < config.beam_size
            best = max(each.score(1), best_kept[place])
            unprovable = narrow and best < proof.log_bound
            beaten = not may_exhaust[place] and self._is_beaten(
                each, best_kept[place], length[place]
            )
            if count and not beaten and not unprovable:
                continue
            proof.drop(count, best_kept[place])
            done[place] = True
            if narrow and each.score(1) < proof.log_bound:
                self._again.append(each)
            else:
                results.append((each.number, state.result(each)))
        state.follow(continuations, order[kept & ~done[sentence]])
        state.remove(done)
        return results

    def _start_again(self) -> None:
        """Start the waiting sentences of one batch again, with the full beam."""
        assert self._again[0].start is not None
        decoder_state = self._again[0].start[0]
        rows, sentences, waiting = [], [], []
        for each in self._again:
            if each.start is None or each.start[0] is not decoder_state:
                waiting.append(each)
                continue
            rows.append(each.start[1])
            again = Sentence(
                each.number, each.forced, each.automaton, each.banned, self._config.beam_size
            )
            again.rows, again.support = each.rows, each.support
            sentences.append(again)
        self._again = waiting
        self._state.add(self._stepper.select(decoder_state, torch.tensor(rows)), sentences)

    def _is_beaten(self, sentence: Sentence, log_prob: float, length: int) -> bool:
        """Tell whether a live prefix cannot lead to anything better than what has finished."""
        config = self._config
        if config.stop == "first":
            enough = max(1, config.n_best, config.beam_size)
            rival = config.penalties.rewarded(log_prob, length, sentence.source_length)
            return bool(sentence.score(1) >= rival) and sentence.proof.finished >= enough
        hope = self._state.attainable(log_prob, sentence.source_length)
        return bool(sentence.score(max(1, config.n_best)) >= hope)
