"""Batched beam search over live prefixes only.

A finished hypothesis leaves the beam, so that only prefixes that can still grow compete for its
places, and only they are computed: one live prefix costs one row. Sentences leave the batch when
they are done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from onmt_entmax.search.certificate import Hypothesis, SearchResult
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
from onmt_entmax.search.stepper import Stepper

Stop = Literal["exhaustive", "optimal", "first"]


@dataclass(frozen=True)
class SearchConfig:
    """How to search; names are OpenNMT-py's where it has the option.

    Raises:
        ValueError: if a value is out of range.
    """

    beam_size: int = 5
    """Live prefixes kept per sentence and step."""
    n_best: int = 1
    """Hypotheses returned per sentence; 0 returns all that finished."""
    max_length: int = 100
    """Longest string, without its end symbol; longer prefixes are cut, and the certificate counts
    them."""
    stop: Stop = "exhaustive"
    """When a sentence is done. `exhaustive`: when nothing is alive, or the beam has overflowed
    (then the support cannot be exhausted any more) and the next rule holds. `optimal`: when no live
    prefix is more probable than the n-th best finished hypothesis. `first`: when none is more
    probable than the best one (OpenNMT-py's habit)."""

    def __post_init__(self) -> None:
        for name, least in (("beam_size", 1), ("n_best", 0), ("max_length", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.stop not in ("exhaustive", "optimal", "first"):
            raise ValueError(f"stop must be exhaustive, optimal or first, got {self.stop!r}")


def beam_search(stepper: Stepper, batch: Any, config: SearchConfig) -> list[SearchResult]:
    """Search every sentence of a batch.

    Args:
        stepper: the model.
        batch: what the stepper's `start` takes.
        config: how to search.

    Returns:
        One result for each sentence, in the order of the batch.

    Raises:
        ValueError: if the model gives no token at all a positive probability.
    """
    search = BeamSearch(stepper, config)
    search.admit(batch)
    results: dict[int, SearchResult] = {}
    while len(search):
        results.update(search.advance())
    return [results[sentence] for sentence in sorted(results)]


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
        self._finished: dict[int, list[tuple[float, float, int, Any]]] = {}
        self._unfinished: dict[int, Hypothesis] = {}
        self._tree = PrefixTree()
        self._attention: list[torch.Tensor] = []  # (source length,) of every node, where asked for
        self._state: Any = None
        self._sentence: Ints = np.empty(0, dtype=np.int64)  # (rows,) place of the sentence in _ids
        self._node: Ints = np.empty(0, dtype=np.int64)  # (rows,) of the tree
        self._token: Ints = np.empty(0, dtype=np.int64)  # (rows,) last token
        self._log_prob: Floats = np.empty(0)  # (rows,) of the prefix

    def __len__(self) -> int:
        """How many sentences are in flight."""
        return len(self._ids)

    @torch.inference_mode()
    def admit(self, batch: Any) -> None:
        """Start the sentences of a batch; they are numbered in the order of admission, from 0."""
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
        self._finished.update((sentence, []) for sentence in ids.tolist())

    @torch.inference_mode()
    def advance(self) -> list[tuple[int, SearchResult]]:
        """Take one step in every sentence; returns those that are done, with their numbers."""
        step = self._stepper.step(self._state, torch.from_numpy(self._token))
        excluded = self._exclude(step.log_probs)
        options = expand(step.log_probs, self._stepper.eos, self._config.beam_size + 1)
        self._count(options, excluded)
        self._finish(options.finish, step.attention)
        row, token, log_prob = self._prune(options)
        done = self._stopped(self._sentence[row], log_prob)
        leaving = [(int(self._ids[i]), self._result(i)) for i in np.flatnonzero(done).tolist()]
        keep = ~done[self._sentence[row]]
        self._grow(row[keep], token[keep], log_prob[keep], step.state, step.attention)
        self._forget(done)
        return leaving

    def _exclude(self, log_probs: torch.Tensor) -> Ints:
        """Take the excluded tokens out of the distribution and enter them in the books.

        Returns:
            (rows,) how many of them had positive probability.
        """
        tokens = list(self._stepper.excluded)
        values = np.minimum(log_probs[:, tokens].double().cpu().numpy(), 0.0)
        inside: Ints = (values > -np.inf).sum(1)
        if inside.any():
            total = self._log_prob[:, None] + values
            self._ledger.count("excluded", self._sentence, np.exp(total).sum(1))
            self._ledger.raise_bound("excluded_bound", self._sentence, total.max(1))
            log_probs[:, tokens] = -torch.inf
        return inside

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

    def _finish(self, finish: Floats, attention: torch.Tensor | None) -> None:
        """Move the strings that end here to the finished hypotheses."""
        rows = np.flatnonzero(finish > -np.inf)
        if not len(rows):
            return
        sentence, log_prob = self._sentence[rows], self._log_prob[rows] + finish[rows]
        self._ledger.finish(sentence, log_prob, log_prob)
        found = zip(
            self._ids[sentence].tolist(),
            rows.tolist(),
            log_prob.tolist(),
            self._node[rows].tolist(),
            strict=True,
        )
        for number, row, value, node in found:
            last = None if attention is None else attention[row]
            self._finished[number].append((value, value, node, last))

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
        rank = 0 if self._config.stop == "first" else -1
        beaten = books["top"][:, rank] >= best_alive
        if self._config.stop == "first":
            beaten &= books["finished"] >= self._ranks
        if self._config.stop == "exhaustive":
            beaten &= books["dropped"] > 0
        done = beaten | (alive == 0)
        books["dropped"] += np.where(done, alive, 0)
        books["bound"] = np.where(done, np.maximum(books["bound"], best_alive), books["bound"])
        return done

    def _result(self, place: int) -> SearchResult:
        """The result of a sentence that is done."""
        number = int(self._ids[place])
        found = sorted(self._finished.pop(number), key=lambda entry: -entry[0])
        returned = found[: self._config.n_best or None]
        hypotheses = tuple(
            Hypothesis(self._tree.tokens(node), log_prob, score, self._attention_of(node, last))
            for score, log_prob, node, last in returned
        )
        books = self._ledger.lines[place]
        return SearchResult(
            hypotheses=hypotheses,
            certificate=self._ledger.certify(place, [h.log_prob for h in hypotheses], False),
            finished=len(found),
            unfinished=self._unfinished.pop(number, None),
            rows=int(books["rows"]),
            support=int(books["support"]),
        )

    def _attention_of(self, node: int, last: torch.Tensor | None) -> torch.Tensor | None:
        """Attention over the steps of a string: those of its tokens, then that of its end."""
        if not self._attention:
            return last[None] if last is not None else None
        steps = [self._attention[i] for i in self._tree.path(node)]
        return (
            torch.stack(steps if last is None else [*steps, last])
            if steps or last is not None
            else None
        )

    def _grow(
        self, row: Ints, token: Ints, log_prob: Floats, state: Any, attention: torch.Tensor | None
    ) -> None:
        """Make the chosen prefixes the live ones."""
        if len(row) and not np.array_equal(row, np.arange(len(self._sentence))):
            state = self._stepper.select(state, torch.from_numpy(row))
        self._state = state
        if attention is not None:
            self._attention.extend(attention[torch.from_numpy(row)].unbind(0))
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
