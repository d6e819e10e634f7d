"""What beam search and exact search share: live prefixes, finished hypotheses, statistics.

A `SearchState` holds the active sentences; its operations keep the numbers that a certificate is
made of. Let F be the finished hypotheses of a sentence and D its prefixes of positive probability
that nobody will follow: dropped, or cut by the length limit (see `certificate.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from onmt_entmax.nn.output import Distribution
from onmt_entmax.search.automaton import SATISFIED, VIOLATED, Automaton, RowAutomata
from onmt_entmax.search.certificate import Certificate, Hypothesis, Level, SearchResult
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.constraints import check_tokens, force
from onmt_entmax.search.expansion import (
    Expansion,
    Flags,
    Floats,
    Ints,
    check_columns,
    expand,
    largest_within,
    look_up,
    rank_within,
    remove,
)
from onmt_entmax.search.stepper import SearchError, Stepper, no_support


class PrefixTree:
    """All prefixes visited, as arrays: a node is a token and its parent; -1 is the empty prefix."""

    def __init__(self) -> None:
        self._parent = np.empty(1024, dtype=np.int64)
        self._token = np.empty(1024, dtype=np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, parents: Ints, tokens: Ints) -> Ints:
        """Append one token to each parent.

        Args:
            parents: `(n,)` nodes, -1 for the empty prefix.
            tokens: `(n,)` token ids.

        Returns:
            The new nodes `(n,)`, numbered in the order in which they were added.
        """
        end = self._size + len(parents)
        if end > len(self._parent):
            capacity = max(end, 2 * len(self._parent))
            self._parent = np.resize(self._parent, capacity)
            self._token = np.resize(self._token, capacity)
        self._parent[self._size : end] = parents
        self._token[self._size : end] = tokens
        nodes = np.arange(self._size, end)
        self._size = end
        return nodes

    def path(self, node: int) -> list[int]:
        """Return the nodes from the first token to `node`."""
        nodes = []
        while node >= 0:
            nodes.append(node)
            node = int(self._parent[node])
        return nodes[::-1]

    def tokens(self, node: int) -> tuple[int, ...]:
        """Return the token ids of a prefix."""
        return tuple(self._token[self.path(node)].tolist())

    def keep(self, live: Sequence[int] | Ints) -> Ints:
        """Delete every node that is on no path to a `live` one.

        Returns:
            The new number of each old node, -1 if deleted; the last entry maps -1 to -1.
        """
        wanted = np.zeros(self._size + 1, dtype=bool)  # the last place stands for -1
        nodes = np.unique(np.asarray(live, dtype=np.int64))
        while len(nodes):
            nodes = nodes[~wanted[nodes]]
            wanted[nodes] = True
            nodes = np.unique(self._parent[nodes[nodes >= 0]])
        wanted[-1] = False
        moved = np.full(self._size + 1, -1, dtype=np.int64)
        count = int(wanted.sum())
        moved[wanted] = np.arange(count)
        kept = np.flatnonzero(wanted)
        self._token[:count] = self._token[kept]
        self._parent[:count] = moved[self._parent[kept]]
        self._size = count
        return moved


class Finished(NamedTuple):
    """A finished hypothesis as a node of the tree."""

    score: float
    log_prob: float
    node: int
    attention: Tensor | None  # (source length,) of the end symbol, where the stepper returns it


class Hypotheses:
    """The tree of prefixes with their attention, and each sentence's finished hypotheses."""

    def __init__(self) -> None:
        self._tree = PrefixTree()
        self._attention: list[Tensor] = []  # (source length,) of every node, where there is any
        self._finished: dict[int, list[Finished]] = {}
        self._compact_at = 1 << 16  # nodes from which dead ones are deleted

    def open(self, numbers: Sequence[int]) -> None:
        """Start the list of finished hypotheses of some sentences."""
        self._finished.update((number, []) for number in numbers)

    def close(self, number: int) -> None:
        """Delete the finished hypotheses of a sentence."""
        del self._finished[number]

    def grow(self, parents: Ints, tokens: Ints, attention: Sequence[Tensor] | None) -> Ints:
        """Append one token to each parent.

        Args:
            parents: `(n,)` nodes.
            tokens: `(n,)` ids.
            attention: n tensors `(source length,)` of the steps that gave the tokens, or None.

        Returns:
            The new nodes `(n,)`.
        """
        if attention is not None:
            self._attention.extend(attention)
        return self._tree.add(parents, tokens)

    def finish(self, number: int, finished: Finished) -> None:
        """Add a finished hypothesis of a sentence."""
        self._finished[number].append(finished)

    def of(self, number: int) -> list[Finished]:
        """Return the finished hypotheses of a sentence in the order they were found."""
        return self._finished[number]

    def tokens(self, node: int) -> tuple[int, ...]:
        """Return the token ids of a prefix."""
        return self._tree.tokens(node)

    def attention(self, node: int, last: Tensor | None) -> Tensor | None:
        """Return the attention along a prefix, then `last`, that of the end symbol.

        Returns:
            `(steps, source length)`, or None without attention.
        """
        steps = [self._attention[i] for i in self._tree.path(node)] if self._attention else []
        if last is not None:
            steps.append(last)
        return torch.stack(steps) if steps else None

    def hypothesis(self, finished: Finished) -> Hypothesis:
        """Return a finished hypothesis with its tokens."""
        return Hypothesis(
            self.tokens(finished.node),
            finished.log_prob,
            finished.score,
            self.attention(finished.node, finished.attention),
        )

    def best(self, number: int, count: int) -> tuple[Hypothesis, ...]:
        """Return a sentence's best finished hypotheses, best first; all of them for a count of 0.

        At equal scores, as where penalties are infinite, the more probable one is first.
        """
        ranked = sorted(self._finished[number], key=lambda each: (-each.score, -each.log_prob))
        return tuple(self.hypothesis(each) for each in ranked[: count or None])

    def compact(self, live: Ints) -> Ints:
        """Delete nodes on no path to a live or finished one, once the tree is large.

        Args:
            live: `(rows,)` nodes of the live prefixes.

        Returns:
            The same nodes under their new numbers `(rows,)`.
        """
        if len(self._tree) < self._compact_at:
            return live
        ends = [each.node for found in self._finished.values() for each in found]
        moved = self._tree.keep(np.concatenate([live, np.array(ends, dtype=np.int64)]))
        if self._attention:
            kept = zip(self._attention, moved[:-1].tolist(), strict=True)
            self._attention = [row for row, place in kept if place >= 0]
        for number, found in self._finished.items():
            self._finished[number] = [each._replace(node=int(moved[each.node])) for each in found]
        self._compact_at = max(self._compact_at, 2 * len(self._tree))
        return moved[live]


class Statistics:
    """Search statistics of each active sentence: the columns of one table.

    Args:
        sentences: number of rows.
        ranks: how many of the best scores of F the column `top` keeps.
        beam: live prefixes that a sentence may have.
    """

    def __init__(self, sentences: int, ranks: int, beam: int = 1) -> None:
        dtype = [
            ("beam", "i8"),  # live prefixes that the sentence may have
            ("may_narrow", "?"),  # whether `beam` becomes 1 when there are more
            ("length", "i8"),  # tokens of the live prefixes
            ("finished", "i8"),  # size of F
            ("mass", "f8"),  # sum of the probabilities of F
            ("top", "f8", (ranks,)),  # the best scores of F, best first
            ("bound", "f8"),  # the largest log-probability in D
            ("dropped", "i8"),  # prefixes of D that were dropped
            ("truncated", "i8"),  # prefixes of D that the length limit cut
            ("excluded", "f8"),  # probability that the request excluded
            ("excluded_bound", "f8"),  # the largest log-probability of an excluded prefix
            # Of the model without any request; only of sentences with an automaton:
            ("satisfied", "f8"),  # probability of the prefixes that decide that it is satisfied
            ("violated", "f8"),  # and of those that decide that it is not
            ("missed", "?"),  # whether another request excluded a token, which may decide nothing
            ("strict", "?"),  # whether finished and live prefixes always fitted the beam
            ("rows", "i8"),  # prefixes that the decoder computed
            ("support", "i8"),  # next tokens of positive probability, summed over these
        ]
        self.table = np.zeros(sentences, dtype=dtype)
        for name in ("top", "bound", "excluded_bound"):
            self.table[name] = -np.inf
        self.table["strict"] = True
        self.table["beam"] = beam

    def __len__(self) -> int:
        return len(self.table)

    def select(self, wanted: Flags) -> None:
        """Keep only the sentences flagged in `wanted` `(sentences,)`."""
        self.table = self.table[wanted]

    def append(self, other: Statistics) -> None:
        """Add the sentences of another table at the end."""
        self.table = np.concatenate([self.table, other.table])

    # Below, `sentence` (n,) says for each of n items which row of the table it belongs to.

    def count(self, name: str, sentence: Ints, amount: NDArray[np.generic] | None = None) -> None:
        """Add an amount `(n,)`, by default 1, to a column."""
        added = np.bincount(sentence, weights=amount, minlength=len(self))
        self.table[name] += added.astype(self.table[name].dtype)

    def raise_bound(self, name: str, sentence: Ints, log_prob: Floats) -> None:
        """Raise a bound to the largest log-probability of each sentence's items."""
        largest = largest_within(sentence, log_prob, len(self))
        self.table[name] = np.maximum(self.table[name], largest)

    def drop(self, sentence: Ints, log_prob: Floats) -> None:
        """Add dropped prefixes `(n,)` to D."""
        self.count("dropped", sentence)
        self.raise_bound("bound", sentence, log_prob)

    def exclude(self, sentence: Ints, log_prob: Floats) -> None:
        """Count prefixes `(n,)` that the request rules out."""
        self.count("excluded", sentence, np.exp(log_prob))
        self.raise_bound("excluded_bound", sentence, log_prob)

    def finish(self, sentence: Ints, log_prob: Floats, score: Floats) -> None:
        """Add finished hypotheses `(n,)` to F."""
        self.count("finished", sentence)
        self.count("mass", sentence, np.exp(log_prob))
        top = self.table["top"]
        ranks = top.shape[1]
        if ranks == 1:  # the default, without the sort
            np.maximum.at(top[:, 0], sentence, score)
            return
        order, rank = rank_within(sentence, score)
        order, rank = order[rank < ranks], rank[rank < ranks]
        new = np.full_like(top, -np.inf)
        new[sentence[order], rank] = score[order]
        self.table["top"] = -np.sort(-np.concatenate([top, new], axis=1), axis=1)[:, :ranks]

    def certify(
        self,
        place: int,
        scores: list[float],
        attainable: Callable[[float], float],
        constrained: bool,
    ) -> Certificate:
        """Return the certificate of one sentence.

        Args:
            place: row of the sentence.
            scores: of the returned hypotheses, best first.
            attainable: maps the log-probability of a prefix to the best score that a hypothesis
                starting with it can have; the identity without penalties.
            constrained: whether the sentence has an automaton.
        """
        row = self.table[place]
        bound, truncated = float(row["bound"]), int(row["truncated"])
        complete = int(row["dropped"]) + truncated == 0
        best_unseen = -np.inf if complete else attainable(bound)
        proven = sum(score >= best_unseen for score in scores)
        level: Level = "exhaustive" if complete else "optimal" if proven > 0 else "none"
        best = scores[0] if scores else -np.inf
        satisfied = None
        if constrained:
            least = min(float(row["satisfied"]), 1.0)  # a sum of floats may exceed 1
            all_known = complete and not row["missed"]
            satisfied = least, least if all_known else max(least, 1.0 - float(row["violated"]))
        return Certificate(
            level=level,
            log_bound=bound,
            gap=np.inf if complete else float(best - best_unseen),
            proven=proven,
            mass=float(row["mass"]),
            dropped=int(row["dropped"]),
            truncated=truncated,
            excluded=float(row["excluded"]),
            log_excluded_bound=float(row["excluded_bound"]),
            strict=complete and bool(row["strict"]),
            satisfied=satisfied,
        )


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

    Args:
        stepper: the model.
        config: how to search.

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
        """Return the best score that a hypothesis can have whose prefix has this log-probability.

        Args:
            log_prob: a number or an array; the result is of the same kind.
        """
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
