"""Batched beam search over live prefixes only.

A finished hypothesis leaves the beam, so that only prefixes that can still grow compete for its
places, and only they are computed: one live prefix costs one row. Sentences leave the batch when
they are done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from onmt_entmax.search.certificate import Hypothesis, SearchResult
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.expansion import (
    Expansion,
    Floats,
    Ints,
    expand,
    largest_within,
    rank_within,
)
from onmt_entmax.search.ledger import Ledger
from onmt_entmax.search.prefixes import PrefixTree
from onmt_entmax.search.stepper import Step, Stepper


def beam_search(
    stepper: Stepper,
    batch: Any,
    config: SearchConfig,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[SearchResult]:
    """Search every sentence of a batch.

    Args:
        stepper: the model.
        batch: what the stepper's `start` takes.
        config: how to search.
        prefixes: for each sentence the token ids that its strings must start with.

    Returns:
        One result for each sentence, in the order of the batch.

    Raises:
        ValueError: if the model gives no token at all a positive probability, or a coverage penalty
            is asked for and the stepper gives no attention.
    """
    search = BeamSearch(stepper, config)
    search.admit(batch, prefixes)
    results: dict[int, SearchResult] = {}
    while len(search):
        results.update(search.advance())
    return [results[sentence] for sentence in sorted(results)]


class Finished(NamedTuple):
    """A finished hypothesis before anyone asks for its tokens."""

    score: float
    log_prob: float
    node: int
    attention: Tensor | None  # of the end symbol


def attention_rows(step: Step) -> list[Tensor] | None:
    """The attention of each row (source length,), without padding."""
    if step.attention is None:
        return None
    rows = step.attention.unbind(0)
    if step.source_lengths is None:
        return list(rows)
    return [row[:length] for row, length in zip(rows, step.source_lengths.tolist(), strict=True)]


class BeamSearch:
    """The sentences in flight and their live prefixes, which are sorted by sentence.

    Args:
        stepper: the model.
        config: how to search.
    """

    def __init__(self, stepper: Stepper, config: SearchConfig) -> None:
        self._stepper = stepper
        self._config = config
        self._ranks = max(1, config.n_best)
        self._admitted = 0
        self._ids: Ints = np.empty(0, dtype=np.int64)  # (sentences,) number of each sentence
        self._ledger = Ledger(0, self._ranks)
        self._forced: dict[int, tuple[int, ...]] = {}  # by number, where there is a prefix
        self._finished: dict[int, list[Finished]] = {}
        self._unfinished: dict[int, Hypothesis] = {}
        self._tree = PrefixTree()
        self._nodes_at_most = 1 << 16
        self._attention: list[Tensor] = []  # (source length,) of every node, where asked for
        self._state: Any = None
        self._sentence: Ints = np.empty(0, dtype=np.int64)  # (rows,) place of the sentence in _ids
        self._node: Ints = np.empty(0, dtype=np.int64)  # (rows,) of the tree
        self._token: Ints = np.empty(0, dtype=np.int64)  # (rows,) last token
        self._log_prob: Floats = np.empty(0)  # (rows,) of the prefix

    def __len__(self) -> int:
        """How many sentences are in flight."""
        return len(self._ids)

    @property
    def rows_in_flight(self) -> int:
        """How many live prefixes there are."""
        return len(self._token)

    @torch.inference_mode()
    def admit(self, batch: Any, prefixes: Sequence[Sequence[int]] | None = None) -> None:
        """Start the sentences of a batch; they are numbered in the order of admission, from 0.

        Args:
            batch: what the stepper's `start` takes.
            prefixes: for each sentence the token ids that its strings must start with.
        """
        state = self._stepper.start(batch)
        count = len(batch)
        ids = np.arange(self._admitted, self._admitted + count)
        self._admitted += count
        self._state = state if not len(self) else self._stepper.join([self._state, state])
        self._sentence = np.concatenate([self._sentence, len(self) + np.arange(count)])
        self._node = np.concatenate([self._node, np.full(count, -1)])
        self._token = np.concatenate([self._token, np.full(count, self._stepper.bos)])
        self._log_prob = np.concatenate([self._log_prob, np.zeros(count)])
        self._ids = np.concatenate([self._ids, ids])
        self._ledger.append(Ledger(count, self._ranks))
        self._finished.update((number, []) for number in ids.tolist())
        for number, prefix in zip(ids.tolist(), prefixes or (), strict=bool(prefixes)):
            if prefix:
                self._forced[number] = tuple(prefix)

    @torch.inference_mode()
    def advance(self) -> list[tuple[int, SearchResult]]:
        """Take one step in every sentence; returns those that are done, with their numbers."""
        step = self._stepper.step(self._state, torch.from_numpy(self._token))
        attention = attention_rows(step)
        excluded = self._exclude(step.log_probs)
        options = expand(step.log_probs, self._stepper.eos, self._config.beam_size + 1)
        self._count(options, excluded)
        self._finish(options.finish, attention)
        row, token, log_prob = self._prune(options)
        done = self._stopped(self._sentence[row], log_prob)
        leaving = [(int(self._ids[i]), self._result(i)) for i in np.flatnonzero(done).tolist()]
        keep = ~done[self._sentence[row]]
        self._grow(row[keep], token[keep], log_prob[keep], step.state, attention)
        self._forget(done)
        return leaving

    def _exclude(self, log_probs: Tensor) -> Ints:
        """Take what may not follow out of the distributions and enter it in the books.

        Args:
            log_probs: (rows, vocabulary), changed in place.

        Returns:
            (rows,) how many of these tokens had positive probability.
        """
        row, token = self._forbidden()
        index = torch.from_numpy(row), torch.from_numpy(token)
        values = np.minimum(log_probs[index].double().cpu().numpy(), 0.0)
        inside = values > -np.inf
        if inside.any():
            row, sentence = row[inside], self._sentence[row[inside]]
            total = self._log_prob[row] + values[inside]
            self._ledger.count("excluded", sentence, np.exp(total))
            self._ledger.raise_bound("excluded_bound", sentence, total)
            log_probs[index] = -torch.inf
            return np.bincount(row, minlength=len(self._token))
        return np.zeros(len(self._token), dtype=np.int64)

    def _forbidden(self) -> tuple[Ints, Ints]:
        """Pairs of a row and a token that may not follow it, as two arrays (pairs,)."""
        lengths = self._ledger.lines["length"][self._sentence]
        row, token = self._config.constraints.forbidden(
            self._stepper.excluded,
            self._stepper.eos,
            lengths,
            lambda row: self._tree.tokens(int(self._node[row])),
        )
        if not self._forced:
            return row, token
        # At a forced position every other token is ruled out, and nothing else is.
        numbers = self._ids[self._sentence].tolist()
        prefixes = [self._forced.get(number, ()) for number in numbers]
        forced = [i for i, prefix in enumerate(prefixes) if lengths[i] < len(prefix)]
        others = np.ones((len(forced), self._stepper.vocabulary_size), dtype=bool)
        for i, at in enumerate(forced):
            others[i, prefixes[at][lengths[at]]] = False
        forced_row, forced_token = np.nonzero(others)
        free = ~np.isin(row, forced)
        return (
            np.concatenate([row[free], np.array(forced, dtype=np.int64)[forced_row]]),
            np.concatenate([token[free], forced_token]),
        )

    def _count(self, options: Expansion, excluded: Ints) -> None:
        """Count rows and supports."""
        support = options.continuations + (options.finish > -np.inf) + excluded
        if not support.all():
            raise ValueError(
                "the model gives no token a positive probability: its scores are all -inf or nan, "
                "as those of a model whose training diverged"
            )
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
        for number, entry in zip(self._ids[sentence].tolist(), found, strict=True):
            self._finished[number].append(entry)

    def _rescored(self, entry: Finished, length: int) -> Finished:
        """A finished hypothesis of so many tokens with its penalties."""
        penalties, attention = self._config.penalties, None
        if penalties.covers:
            attention = self._attention_of(entry.node, entry.attention)
            if attention is None:
                raise ValueError("a coverage penalty needs a model and a stepper with attention")
        return entry._replace(score=penalties.score(entry.log_prob, length, attention))

    def _prune(self, options: Expansion) -> tuple[Ints, Ints, Floats]:
        """Choose the live prefixes of the next step.

        Returns:
            Row, last token and log-probability of each, sorted by sentence and best first.
        """
        books, beam = self._ledger, self._config.beam_size
        sentence = self._sentence[options.row]
        log_prob = self._log_prob[options.row] + options.log_prob
        alive = np.bincount(
            self._sentence, weights=options.continuations, minlength=len(self)
        ).astype(np.int64)
        books.lines["strict"] &= books.lines["finished"] + alive <= beam
        at_limit = books.lines["length"] == self._config.max_length
        order, rank = rank_within(sentence, log_prob)
        ordered = sentence[order]
        cut = at_limit[ordered]
        out = cut | (rank >= beam)
        books.raise_bound("bound", ordered[out], log_prob[order[out]])
        books.lines["truncated"] += np.where(at_limit, alive, 0)
        books.lines["dropped"] += np.where(at_limit, 0, np.maximum(alive - beam, 0))
        self._keep_unfinished(np.flatnonzero(at_limit & (books.lines["finished"] == 0)))
        kept = order[~out]
        return options.row[kept], options.token[kept], log_prob[kept]

    def _keep_unfinished(self, places: Ints) -> None:
        """Remember the best prefix of sentences that reach the length limit with nothing found."""
        for place in places.tolist():
            rows = np.flatnonzero(self._sentence == place)
            row = rows[np.argmax(self._log_prob[rows])]
            node, log_prob = int(self._node[row]), float(self._log_prob[row])
            self._unfinished[int(self._ids[place])] = Hypothesis(
                self._tree.tokens(node), log_prob, log_prob, self._attention_of(node, None)
            )

    def _stopped(self, sentence: Ints, log_prob: Floats) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which sentences are done (sentences,); what they leave alive is entered as dropped.

        Args:
            sentence: (live,) place of each live prefix's sentence.
            log_prob: (live,)
        """
        books = self._ledger.lines
        alive = np.bincount(sentence, minlength=len(self))
        best_alive = largest_within(sentence, log_prob, len(self))
        if self._config.stop == "first":
            rival = best_alive / self._config.penalties.length(books["length"])
            beaten = (books["top"][:, 0] >= rival) & (books["finished"] >= self._ranks)
        else:
            beaten = books["top"][:, -1] >= self._attainable(best_alive)
        if self._config.stop == "exhaustive":
            beaten &= books["dropped"] > 0
        done = beaten | (alive == 0)
        books["dropped"] += np.where(done, alive, 0)
        books["bound"] = np.where(done, np.maximum(books["bound"], best_alive), books["bound"])
        return done

    def _attainable(self, log_prob: Any) -> Any:
        """The best score of any string that starts with a prefix of this log-probability."""
        return self._config.penalties.attainable(log_prob, self._config.max_length)

    def _result(self, place: int) -> SearchResult:
        """The result of a sentence that is done."""
        number = int(self._ids[place])
        found = sorted(
            self._finished.pop(number), key=lambda entry: (-entry.score, -entry.log_prob)
        )
        hypotheses = tuple(
            Hypothesis(
                self._tree.tokens(entry.node),
                entry.log_prob,
                entry.score,
                self._attention_of(entry.node, entry.attention),
            )
            for entry in found[: self._config.n_best or None]
        )
        books = self._ledger.lines[place]
        self._forced.pop(number, None)
        return SearchResult(
            hypotheses=hypotheses,
            certificate=self._ledger.certify(
                place, [h.score for h in hypotheses], self._attainable
            ),
            finished=len(found),
            unfinished=self._unfinished.pop(number, None),
            rows=int(books["rows"]),
            support=int(books["support"]),
        )

    def _attention_of(self, node: int, last: Tensor | None) -> Tensor | None:
        """Attention over the steps of a string: those of its tokens, then that of its end."""
        steps = [self._attention[i] for i in self._tree.path(node)] if self._attention else []
        if last is not None:
            steps.append(last)
        return torch.stack(steps) if steps else None

    def _grow(
        self, row: Ints, token: Ints, log_prob: Floats, state: Any, attention: list[Tensor] | None
    ) -> None:
        """Make the chosen prefixes the live ones."""
        if len(row) and not np.array_equal(row, np.arange(len(self._sentence))):
            state = self._stepper.select(state, torch.from_numpy(row))
        self._state = state
        if attention is not None:
            self._attention.extend(attention[i] for i in row.tolist())
        self._node = self._tree.add(self._node[row], token)
        self._sentence = self._sentence[row]
        self._token, self._log_prob = token, log_prob
        self._ledger.lines["length"] += 1

    def _forget(self, done: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        """Remove the sentences that are done from the books."""
        if done.any():
            self._sentence = (np.cumsum(~done) - 1)[self._sentence]
            self._ids = self._ids[~done]
            self._ledger.select(~done)
            self._forget_nodes()

    def _forget_nodes(self) -> None:
        """Remove the nodes that only finished sentences need, once they are the most."""
        if len(self._tree) < self._nodes_at_most:
            return
        used = [entry.node for found in self._finished.values() for entry in found]
        moved = self._tree.keep(np.concatenate([self._node, np.array(used, dtype=np.int64)]))
        if self._attention:
            self._attention = [
                row for row, to in zip(self._attention, moved[:-1].tolist(), strict=True) if to >= 0
            ]
        self._node = moved[self._node]
        for number, found in self._finished.items():
            self._finished[number] = [e._replace(node=int(moved[e.node])) for e in found]
        self._nodes_at_most = max(self._nodes_at_most, 2 * len(self._tree))
