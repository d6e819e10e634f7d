"""Batched beam search with certificates, for one batch or a stream of batches.

Only live prefixes compete for the beam: a finished hypothesis leaves it, and a live prefix costs
one row of the decoder. Sentences leave the batch when they are done. What was found, dropped and
cut is counted in `statistics.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from onmt_entmax.errors import counted
from onmt_entmax.search.automaton import Automaton
from onmt_entmax.search.certificate import SearchResult
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.constraints import checked_prefixes
from onmt_entmax.search.expansion import Flags, Floats, Ints, largest_within
from onmt_entmax.search.state import Continuations, SearchState
from onmt_entmax.search.stepper import Stepper

Automata = Sequence[Automaton | None]
"""For each sentence what its output must satisfy, if anything."""

Work = tuple[Any, Sequence[Sequence[int]] | None, Automata | None]
"""A batch, for each sentence the token ids that its output must start with, and its automaton."""


def beam_search(
    stepper: Stepper,
    batch: Any,
    config: SearchConfig,
    prefixes: Sequence[Sequence[int]] | None = None,
    automata: Automata | None = None,
) -> list[SearchResult]:
    """Search every sentence of a batch.

    Args:
        stepper: the model.
        batch: what the stepper's `start` takes; its `len` is the number of sentences.
        config: how to search.
        prefixes: for each sentence the token ids that its output must start with.
        automata: for each sentence what its output must satisfy, if anything.

    Returns:
        One result for each sentence, in the order of the batch.

    Raises:
        SearchError: if the model gives no token a positive probability, or a coverage penalty is
            set and the stepper returns no attention.
        ValueError: if a token, a prefix or an automaton is not valid.
    """
    search = BeamSearch(stepper, config)
    search.admit(batch, prefixes, automata)
    results: dict[int, SearchResult] = {}
    while len(search):
        results.update(search.advance())
    return [results[sentence] for sentence in sorted(results)]


def stream_search(
    stepper: Stepper, work: Iterable[Work], config: SearchConfig, rows: int = 128
) -> Iterator[tuple[int, SearchResult]]:
    """Search a stream of batches and refill the batch as sentences leave it.

    Memory: at most `rows` live prefixes and those of one more batch, at most `beam_size` for each
    sentence. Batches are taken from `work` when they are needed, and results are not kept.

    Args:
        stepper: the model. Where its rows cannot have different lengths (a Transformer), a batch
            starts when the one before is done.
        work: batches with their prefixes and automata.
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


@dataclass
class _Sentence:
    """A sentence, as its restart needs it; rows and support are those of the first search."""

    number: int
    decoder_state: Any  # of the stepper's `start` for the whole batch
    row: int
    prefix: tuple[int, ...]
    automaton: Automaton | None
    rows: int = 0
    support: int = 0


class BeamSearch:
    """A beam search that sentences may join and leave at any step.

    With `n_best` 1, where the support will not be exhausted (any more), a sentence first follows a
    single live prefix. If that proves its result, as it mostly does, no beam could find a better
    one; otherwise, as soon as it can prove nothing any more, the sentence restarts with the full
    beam.

    Raises:
        ValueError: if a banned token, or a special one of the stepper, is not in the vocabulary.
    """

    def __init__(self, stepper: Stepper, config: SearchConfig) -> None:
        self._stepper, self._config = stepper, config
        self._state = SearchState(stepper, config)
        self._greedy_first = (
            config.n_best == 1 and config.stop != "first" and not config.penalties.any
        )
        self._exhausts = config.stop == "exhaustive" and not stepper.dense
        self._admitted = 0
        self._sentences: dict[int, _Sentence] = {}  # by number
        self._restarts: list[_Sentence] = []  # to be searched again with the full beam

    def __len__(self) -> int:
        """Return the number of sentences that are not done."""
        return len(self._state) + len(self._restarts)

    @property
    def live_prefixes(self) -> int:
        """Number of live prefixes, which is that of the decoder's rows."""
        return len(self._state.token)

    @torch.inference_mode()
    def admit(
        self,
        batch: Any,
        prefixes: Sequence[Sequence[int]] | None = None,
        automata: Automata | None = None,
    ) -> None:
        """Start the sentences of a batch; they are numbered from 0 in the order of admission.

        Args and raises: as `beam_search`.
        """
        count = len(batch)
        own = self._stepper
        prefixes = checked_prefixes(prefixes, count, own.vocabulary_size, own.eos)
        automata = [None] * count if automata is None else automata
        if len(automata) != count:
            raise ValueError(f"automata has {len(automata)} for {counted(count, 'sentence')}")
        decoder_state = self._stepper.start(batch)
        numbers = self._admitted + np.arange(count)
        self._admitted += count
        kept = decoder_state if self._greedy_first else None
        for row, number in enumerate(numbers.tolist()):
            sentence = _Sentence(number, kept, row, tuple(prefixes[row]), automata[row])
            self._sentences[number] = sentence
        beam = 1 if self._greedy_first and not self._exhausts else self._config.beam_size
        statistics = self._state.new_statistics(count, beam)
        statistics.table["may_narrow"] = self._greedy_first and self._exhausts
        self._state.add(decoder_state, numbers, statistics, prefixes, automata)

    @torch.inference_mode()
    def advance(self) -> list[tuple[int, SearchResult]]:
        """Take one step in every sentence.

        Returns:
            The sentences that are done: number and result.
        """
        # Joining a few rows costs more than letting them wait.
        while self._restarts and (
            not len(self._state)
            or (self._stepper.can_join and len(self._restarts) >= len(self._state))
        ):
            self._restart()
        state = self._state
        continuations = state.expand(int(state.statistics.table["beam"].max()) + 1)
        state.finish(continuations)
        row, token, log_prob = self._prune(continuations)
        done = self._stopped(state.sentence[row], log_prob)
        results = self._results(np.flatnonzero(done))
        keep = ~done[state.sentence[row]]
        state.follow(continuations.parents, row[keep], token[keep], log_prob[keep])
        state.remove(done)
        return results

    def _restart(self) -> None:
        """Restart, with the full beam, the waiting sentences of one batch."""
        first = self._restarts[0].decoder_state
        chosen = [each for each in self._restarts if each.decoder_state is first]
        self._restarts = [each for each in self._restarts if each.decoder_state is not first]
        statistics = self._state.new_statistics(len(chosen), self._config.beam_size)
        statistics.table["rows"] = [each.rows for each in chosen]
        statistics.table["support"] = [each.support for each in chosen]
        self._state.add(
            self._stepper.select(first, torch.tensor([each.row for each in chosen])),
            np.array([each.number for each in chosen], dtype=np.int64),
            statistics,
            [each.prefix for each in chosen],
            [each.automaton for each in chosen],
        )

    def _prune(self, continuations: Continuations) -> tuple[Ints, Ints, Floats]:
        """Choose the live prefixes of the next step; what is left out enters the statistics.

        Returns:
            Row, last token and log-probability of each, sorted by sentence.
        """
        options, state = continuations.options, self._state
        table = state.statistics.table
        sentence = state.sentence[options.row]
        alive, at_limit = state.alive(continuations), state.at_limit
        overflows = table["may_narrow"] & (alive > table["beam"])
        table["beam"][overflows], table["may_narrow"][overflows] = 1, False
        # `options` may leave out prefixes that fit no beam; `alive` counts them.
        followed = np.where(at_limit, 0, np.minimum(alive, table["beam"]))
        state.leave(continuations, alive, followed)
        order, rank = state.rank(continuations)
        ordered, log_prob = sentence[order], continuations.log_prob[order]
        out = at_limit[ordered] | (rank >= table["beam"][ordered])
        if self._config.n_best:
            # Drop prefixes that cannot beat the n-th best, unless the support may be exhausted.
            hopeless = state.attainable(log_prob) <= table["top"][ordered, -1]
            if self._config.stop == "exhaustive":
                hopeless &= table["dropped"][ordered] > 0
            table["dropped"] += np.bincount(ordered[hopeless & ~out], minlength=len(table))
            out |= hopeless
        state.statistics.raise_bound("bound", ordered[out], log_prob[out])
        kept = order[~out]
        return options.row[kept], options.token[kept], log_prob[~out]

    def _stopped(self, sentence: Ints, log_prob: Floats) -> Flags:
        """Decide which sentences are done `(sentences,)`, and count their prefixes as dropped.

        `sentence` and `log_prob` `(live,)` are of the live prefixes.
        """
        table = self._state.statistics.table
        alive = np.bincount(sentence, minlength=len(table))
        best_alive = largest_within(sentence, log_prob, len(table))
        if self._config.stop == "first":
            rival = best_alive / self._config.penalties.length(table["length"])
            enough = max(1, self._config.n_best, self._config.beam_size)
            beaten = (table["top"][:, 0] >= rival) & (table["finished"] >= enough)
        else:
            beaten = table["top"][:, -1] >= self._state.attainable(best_alive)
        if self._config.stop == "exhaustive":
            beaten &= table["dropped"] > 0
        done = beaten | (alive == 0) | self._unprovable(best_alive)
        table["dropped"] += np.where(done, alive, 0)
        table["bound"] = np.where(done, np.maximum(table["bound"], best_alive), table["bound"])
        return done

    def _unprovable(self, best_alive: Floats | float) -> Flags:
        """Tell which sentences follow a single prefix that can prove nothing any more.

        `best_alive` `(sentences,)` is the log-probability of the best live prefix.
        """
        table = self._state.statistics.table
        best = np.maximum(table["top"][:, 0], best_alive)
        return np.logical_and(table["beam"] < self._config.beam_size, best < table["bound"])

    def _results(self, places: Ints) -> list[tuple[int, SearchResult]]:
        """Return the results of sentences that are done; mark those that must restart."""
        unproven = self._unprovable(-np.inf)
        results = []
        for place in places.tolist():
            number = int(self._state.numbers[place])
            if unproven[place]:
                row, sentence = self._state.statistics.table[place], self._sentences[number]
                sentence.rows, sentence.support = int(row["rows"]), int(row["support"])
                self._restarts.append(sentence)
            else:
                results.append((number, self._state.result(place)))
                del self._sentences[number]
        return results
