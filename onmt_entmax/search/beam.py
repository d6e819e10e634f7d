"""Batched beam search over live prefixes only.

A finished hypothesis leaves the beam, so that only prefixes that can still grow compete for its
places, and only they are computed: one live prefix costs one row. Sentences leave the batch when
they are done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.nn.output import Distribution
from onmt_entmax.search.certificate import Hypothesis, SearchResult
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.constraints import check_prefixes, check_tokens, force
from onmt_entmax.search.expansion import (
    Expansion,
    Flags,
    Floats,
    Ints,
    check_columns,
    expand,
    largest_within,
    rank_within,
    remove,
)
from onmt_entmax.search.state import Finished, Ledger, Strings
from onmt_entmax.search.stepper import SearchError, Stepper, no_support


def beam_search(
    stepper: Stepper,
    batch: Any,
    config: SearchConfig,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[SearchResult]:
    """Search every sentence of a batch.

    Args:
        stepper: the model.
        batch: what the stepper's `start` takes; its `len` is the number of sentences.
        config: how to search.
        prefixes: for each sentence the token ids that its strings must start with.

    Returns:
        One result for each sentence, in the order of the batch.

    Raises:
        SearchError: if the model gives no token at all a positive probability, or a coverage
            penalty is asked for and the stepper gives no attention.
    """
    search = BeamSearch(stepper, config)
    search.admit(batch, prefixes)
    results: dict[int, SearchResult] = {}
    while len(search):
        results.update(search.advance())
    return [results[sentence] for sentence in sorted(results)]


@dataclass(frozen=True)
class _Start:
    """Where a sentence began, to begin again."""

    state: Any
    row: int
    prefix: tuple[int, ...]


class BeamSearch:
    """The sentences in flight and their live prefixes, which are sorted by sentence.

    Where only the best string is asked for, and the support will not be exhausted (any more), one
    live prefix of the sentence is followed first. If that proves its answer, as it mostly does, no
    beam could find a better one; else, as soon as it cannot prove it any more, the sentence begins
    again with the full beam.

    Raises:
        ValueError: if a banned token, or a special one of the stepper, is not in the vocabulary.
    """

    def __init__(self, stepper: Stepper, config: SearchConfig) -> None:
        named = {*config.constraints.banned, *stepper.excluded, stepper.bos, stepper.eos}
        check_tokens(named, stepper.vocabulary_size)
        self._stepper = stepper
        self._config = config
        self._ranks = max(1, config.n_best)
        self._tries_one = config.n_best == 1 and config.stop != "first" and not config.penalties.any
        self._exhausts = config.stop == "exhaustive" and not stepper.dense
        self._forces = False
        self._admitted = 0
        self._ids: Ints = np.empty(0, dtype=np.int64)  # (sentences,) number of each sentence
        self._ledger = Ledger(0, self._ranks)
        self._starts: dict[int, _Start] = {}  # by number
        self._again: list[tuple[int, int, int]] = []  # number, rows and support so far
        self._strings = Strings()
        self._unfinished: dict[int, Hypothesis] = {}
        self._state: Any = None
        self._sentence: Ints = np.empty(0, dtype=np.int64)  # (rows,) place of the sentence in _ids
        self._node: Ints = np.empty(0, dtype=np.int64)  # (rows,) of the tree of strings
        self._token: Ints = np.empty(0, dtype=np.int64)  # (rows,) last token
        self._log_prob: Floats = np.empty(0)  # (rows,) of the prefix

    def __len__(self) -> int:
        """How many sentences are not done."""
        return len(self._ids) + len(self._again)

    @property
    def rows_in_flight(self) -> int:
        """How many live prefixes there are."""
        return len(self._token)

    @torch.inference_mode()
    def admit(self, batch: Any, prefixes: Sequence[Sequence[int]] | None = None) -> None:
        """Start the sentences of a batch; they are numbered in the order of admission, from 0.

        Args:
            batch: what the stepper's `start` takes; its `len` is the number of sentences.
            prefixes: for each sentence the token ids that its strings must start with.

        Raises:
            ValueError: as `check_prefixes`.
        """
        count = len(batch)
        if prefixes is not None:
            check_prefixes(prefixes, count, self._stepper.vocabulary_size, self._stepper.eos)
        state = self._stepper.start(batch)
        numbers = range(self._admitted, self._admitted + count)
        self._admitted += count
        for row, number in enumerate(numbers):
            prefix = tuple(prefixes[row]) if prefixes else ()
            self._forces |= bool(prefix)
            self._starts[number] = _Start(state if self._tries_one else None, row, prefix)
        beam = 1 if self._tries_one and not self._exhausts else self._config.beam_size
        ledger = Ledger(count, self._ranks, beam)
        ledger.lines["may_narrow"] = self._tries_one and self._exhausts
        self._begin(state, np.array(numbers, dtype=np.int64), ledger)

    def _begin(self, state: Any, numbers: Ints, ledger: Ledger) -> None:
        """Add sentences, given by the state of one row for each, to those in flight."""
        self._state = self._stepper.join([self._state, state]) if len(self._ids) else state
        count = len(numbers)
        self._sentence = np.concatenate([self._sentence, len(self._ids) + np.arange(count)])
        self._node = np.concatenate([self._node, np.full(count, -1)])
        self._token = np.concatenate([self._token, np.full(count, self._stepper.bos)])
        self._log_prob = np.concatenate([self._log_prob, np.zeros(count)])
        self._ids = np.concatenate([self._ids, numbers])
        self._ledger.append(ledger)
        self._strings.open(numbers.tolist())

    def _begin_again(self) -> None:
        """Start the sentences that need the full beam, those of one batch."""
        first = self._starts[self._again[0][0]].state
        chosen = [entry for entry in self._again if self._starts[entry[0]].state is first]
        self._again = [entry for entry in self._again if self._starts[entry[0]].state is not first]
        numbers, rows, support = np.array(chosen, dtype=np.int64).T
        places = torch.tensor([self._starts[number].row for number in numbers.tolist()])
        ledger = Ledger(len(chosen), self._ranks, self._config.beam_size)
        ledger.lines["rows"], ledger.lines["support"] = rows, support
        self._begin(self._stepper.select(first, places), numbers, ledger)

    @torch.inference_mode()
    def advance(self) -> list[tuple[int, SearchResult]]:
        """Take one step in every sentence; returns those that are done, with their numbers."""
        # A few at a time would cost more in joining than in waiting.
        while self._again and (
            not len(self._ids) or (self._stepper.can_join and len(self._again) >= len(self._ids))
        ):
            self._begin_again()
        step = self._stepper.step(self._state, torch.from_numpy(self._token))
        attention = step.attention_rows()
        distribution, excluded = self._exclude(step.distribution)
        width = int(self._ledger.lines["beam"].max()) + 1
        options = expand(distribution, self._stepper.eos, width)
        self._count(options, excluded)
        self._finish(options.finish, attention)
        row, token, log_prob = self._prune(options)
        done = self._stopped(self._sentence[row], log_prob)
        leaving = self._leave(np.flatnonzero(done))
        keep = ~done[self._sentence[row]]
        self._grow(row[keep], token[keep], log_prob[keep], step.state, attention)
        self._close(done)
        return leaving

    def _exclude(self, distribution: Distribution) -> tuple[Distribution, Ints]:
        """Take what may not follow out of the distributions and enter it in the books.

        Args:
            distribution: of the live rows; may be changed in place.

        Returns:
            What is left, and (rows,) how many of these tokens had positive probability.
        """
        check_columns(distribution, self._stepper.vocabulary_size)
        rest, row, log_prob = remove(distribution, *self._forbidden())
        if len(row):
            sentence = self._sentence[row]
            total = self._log_prob[row] + log_prob
            self._ledger.count("excluded", sentence, np.exp(total))
            self._ledger.raise_bound("excluded_bound", sentence, total)
        return rest, np.bincount(row, minlength=len(self._token))

    def _forbidden(self) -> tuple[Ints, Ints]:
        """Pairs of a row and a token that may not follow it, as two arrays (pairs,)."""
        lengths = self._ledger.lines["length"][self._sentence]
        row, token = self._config.constraints.forbidden(
            self._stepper.excluded,
            self._stepper.eos,
            lengths,
            lambda row: self._strings.tokens(int(self._node[row])),
        )
        if not self._forces:
            return row, token
        prefixes = [self._starts[number].prefix for number in self._ids[self._sentence].tolist()]
        forced = {
            i: prefix[lengths[i]] for i, prefix in enumerate(prefixes) if lengths[i] < len(prefix)
        }
        return force(row, token, forced, self._stepper.vocabulary_size)

    def _count(self, options: Expansion, excluded: Ints) -> None:
        """Count rows and supports."""
        support = options.continuations + (options.finish > -np.inf) + excluded
        if not support.all():
            raise no_support()
        self._ledger.count("rows", self._sentence)
        self._ledger.count("support", self._sentence, support)

    def _finish(self, finish: Floats, attention: list[Tensor] | None) -> None:
        """Move the strings that end here to the finished hypotheses."""
        rows = np.flatnonzero(finish > -np.inf)
        if not len(rows):
            return
        sentence, log_prob = self._sentence[rows], self._log_prob[rows] + finish[rows]
        found = [
            Finished(value, value, node, None if attention is None else attention[row])
            for row, value, node in zip(
                rows.tolist(), log_prob.tolist(), self._node[rows].tolist(), strict=True
            )
        ]
        score = log_prob
        if self._config.penalties.any:
            lengths = self._ledger.lines["length"][sentence].tolist()
            found = [self._rescored(*entry) for entry in zip(found, lengths, strict=True)]
            score = np.array([entry.score for entry in found])
        self._ledger.finish(sentence, log_prob, score)
        for number, string in zip(self._ids[sentence].tolist(), found, strict=True):
            self._strings.finish(number, string)

    def _rescored(self, string: Finished, length: int) -> Finished:
        """A finished string of so many tokens with its penalties."""
        penalties, attention = self._config.penalties, None
        if penalties.covers:
            attention = self._strings.attention(string.node, string.attention)
            if attention is None:
                raise SearchError("a coverage penalty needs a model with attention")
        return string._replace(score=penalties.score(string.log_prob, length, attention))

    def _prune(self, options: Expansion) -> tuple[Ints, Ints, Floats]:
        """Choose the live prefixes of the next step.

        Returns:
            Row, last token and log-probability of each, sorted by sentence and best first.
        """
        books = self._ledger.lines
        sentence = self._sentence[options.row]
        log_prob = self._log_prob[options.row] + options.log_prob
        alive = np.bincount(
            self._sentence, weights=options.continuations, minlength=len(books)
        ).astype(np.int64)
        books["strict"] &= books["finished"] + alive <= self._config.beam_size
        at_limit = books["length"] == self._config.max_length
        overflows = books["may_narrow"] & (alive > books["beam"])
        books["beam"][overflows], books["may_narrow"][overflows] = 1, False
        books["truncated"] += np.where(at_limit, alive, 0)
        books["dropped"] += np.where(at_limit, 0, np.maximum(alive - books["beam"], 0))
        cut = at_limit & (books["finished"] == 0)
        self._keep_unfinished(np.flatnonzero(cut[self._sentence] & (options.continuations > 0)))
        order, rank = rank_within(sentence, log_prob)
        ordered, log_prob = sentence[order], log_prob[order]
        out = at_limit[ordered] | (rank >= books["beam"][ordered])
        if self._config.n_best:
            # What cannot beat the n best is dropped too, unless it may complete the support.
            hopeless = self._attainable(log_prob) <= books["top"][ordered, -1]
            if self._config.stop == "exhaustive":
                hopeless &= books["dropped"][ordered] > 0
            books["dropped"] += np.bincount(ordered[hopeless & ~out], minlength=len(books))
            out |= hopeless
        self._ledger.raise_bound("bound", ordered[out], log_prob[out])
        kept = order[~out]
        return options.row[kept], options.token[kept], log_prob[~out]

    def _keep_unfinished(self, rows: Ints) -> None:
        """Remember the most probable one of the rows that the length limit cuts, by sentence."""
        for row in rows.tolist():
            number, log_prob = int(self._ids[self._sentence[row]]), float(self._log_prob[row])
            before = self._unfinished.get(number)
            if before is None or log_prob > before.log_prob:
                prefix = Finished(log_prob, log_prob, int(self._node[row]), None)
                self._unfinished[number] = self._strings.hypothesis(prefix)

    def _stopped(self, sentence: Ints, log_prob: Floats) -> Flags:
        """Which sentences are done (sentences,); what they leave alive is entered as dropped.

        Args:
            sentence: (live,) place of each live prefix's sentence.
            log_prob: (live,)
        """
        books = self._ledger.lines
        alive = np.bincount(sentence, minlength=len(books))
        best_alive = largest_within(sentence, log_prob, len(books))
        if self._config.stop == "first":
            rival = best_alive / self._config.penalties.length(books["length"])
            enough = max(self._ranks, self._config.beam_size)
            beaten = (books["top"][:, 0] >= rival) & (books["finished"] >= enough)
        else:
            beaten = books["top"][:, -1] >= self._attainable(best_alive)
        if self._config.stop == "exhaustive":
            beaten &= books["dropped"] > 0
        done = beaten | (alive == 0) | self._unprovable(best_alive)
        books["dropped"] += np.where(done, alive, 0)
        books["bound"] = np.where(done, np.maximum(books["bound"], best_alive), books["bound"])
        return done

    def _unprovable(self, best_alive: Floats | float) -> Flags:
        """Which sentences try one live prefix, and can prove nothing any more.

        Args:
            best_alive: (sentences,) log-probability of the best live prefix.
        """
        books = self._ledger.lines
        best = np.maximum(books["top"][:, 0], best_alive)
        return np.logical_and(books["beam"] < self._config.beam_size, best < books["bound"])

    def _leave(self, places: Ints) -> list[tuple[int, SearchResult]]:
        """The results of sentences that are done, but for those that begin again."""
        unproven = self._unprovable(-np.inf)
        leaving = []
        for place in places.tolist():
            number = int(self._ids[place])
            if unproven[place]:
                books = self._ledger.lines[place]
                self._again.append((number, int(books["rows"]), int(books["support"])))
                self._unfinished.pop(number, None)
            else:
                leaving.append((number, self._result(place)))
                del self._starts[number]
            self._strings.close(number)
        return leaving

    def _attainable(self, log_prob: Any) -> Any:
        """The best score of any string that starts with a prefix of this log-probability."""
        return self._config.penalties.attainable(log_prob, self._config.max_length)

    def _best_unseen(self, log_bound: float) -> float:
        """The best score of any string outside F, given the bound of its log-probability."""
        return float(self._attainable(log_bound))

    def _result(self, place: int) -> SearchResult:
        """The result of a sentence that is done."""
        number, books = int(self._ids[place]), self._ledger.lines[place]
        best = self._strings.best(number, self._config.n_best)
        scores = [hypothesis.score for hypothesis in best]
        unfinished = self._unfinished.pop(number, None)
        return SearchResult(
            hypotheses=best,
            certificate=self._ledger.certify(place, scores, self._best_unseen),
            finished=int(books["finished"]),
            unfinished=None if best else unfinished,
            rows=int(books["rows"]),
            support=int(books["support"]),
        )

    def _grow(
        self, row: Ints, token: Ints, log_prob: Floats, state: Any, attention: list[Tensor] | None
    ) -> None:
        """Make the chosen prefixes the live ones."""
        if len(row) and not np.array_equal(row, np.arange(len(self._sentence))):
            state = self._stepper.select(state, torch.from_numpy(row))
        self._state = state
        given = None if attention is None else [attention[i] for i in row.tolist()]
        self._node = self._strings.grow(self._node[row], token, given)
        self._sentence = self._sentence[row]
        self._token, self._log_prob = token, log_prob
        self._ledger.lines["length"] += 1

    def _close(self, done: Flags) -> None:
        """Remove the sentences that are done from the books."""
        if done.any():
            self._sentence = (np.cumsum(~done) - 1)[self._sentence]
            self._ids = self._ids[~done]
            self._ledger.select(~done)
            self._node = self._strings.forget(self._node)


# Search over an endless supply of sentences, with the batch refilled as sentences leave it.

Work = tuple[Any, Sequence[Sequence[int]] | None]
"""A batch, and the prefixes that its sentences' strings must start with, or None."""


def stream_search(
    stepper: Stepper, work: Iterable[Work], config: SearchConfig, rows: int = 128
) -> Iterator[tuple[int, SearchResult]]:
    """Search sentences as they come.

    Memory: at most `rows` prefixes and those of one more batch are in flight, each sentence with at
    most `beam_size` of them; results are not kept. Batches are asked for when they are needed.

    Args:
        stepper: the model. Where its rows cannot have different lengths (a Transformer), a batch
            starts when the one before is done.
        work: batches with their prefixes.
        config: how to search.
        rows: a new batch is started when no more prefixes than this are in flight.

    Yields:
        The number of a sentence and its result, as soon as it is done. Sentences are numbered in
        the order of `work` and within a batch in its order, from 0.
    """
    search = BeamSearch(stepper, config)
    supply = iter(work)
    exhausted = False
    while len(search) or not exhausted:
        while not exhausted and (
            not len(search) or (stepper.can_join and search.rows_in_flight <= rows)
        ):
            following = next(supply, None)
            if following is None:
                exhausted = True
            else:
                search.admit(*following)
        if len(search):
            yield from search.advance()
