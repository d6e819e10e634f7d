"""Sampling of outputs, with or without replacement.

With replacement, each sample is drawn token by token. Without, all samples of a sentence are drawn
together by stochastic beam search (Kool, van Hoof and Welling 2019): every prefix carries the
largest of its outputs' log-probabilities with Gumbel noise, and the prefixes with the largest go
on. The result is distributed as if outputs were drawn one by one and repeated ones rejected.

The random numbers of a sentence depend on the seed and its number alone, not on its batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from onmt_entmax.nn.support import Distribution, Support, as_support
from onmt_entmax.search.constraints import checked_prefixes
from onmt_entmax.search.expansion import Floats, Ints, check_columns
from onmt_entmax.search.stepper import Stepper, no_support

_CUT = -1  # stands for all tokens where the length limit, or that none is allowed, ends an output


@dataclass(frozen=True)
class Sampling:
    """How to sample; options that OpenNMT-py has keep its names, after `random_sampling_`.

    Raises:
        ValueError: if a number is out of range.
    """

    topk: int = -1
    """Draw among this many most probable next tokens (more at a tie); -1 for all."""
    topp: float = 0.0
    """Draw among the fewest most probable next tokens that reach this probability; 0 for all."""
    temp: float = 1.0
    """Temperature: scores are divided by it before softmax or entmax maps them to probabilities."""
    distinct: bool = False
    """Without replacement: no output twice."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.topk < 1 and self.topk != -1:
            raise ValueError(f"topk must be at least 1, or -1 for all tokens, got {self.topk}")
        if not 0 <= self.topp <= 1:
            raise ValueError(f"topp must be from 0 to 1, got {self.topp}")
        if not 0 < self.temp < np.inf:
            raise ValueError(f"temp must be above 0, got {self.temp}")
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, got {self.seed}")


@dataclass(frozen=True)
class Sample:
    """One output that was drawn."""

    tokens: tuple[int, ...]
    """Without start and end symbols."""
    log_prob: float
    """Of drawing it, after a forced prefix, in nats."""
    complete: bool
    """False if the length limit cut it (or the model allows only padding next); `log_prob` is then
    that of all outputs which start so."""

    @property
    def prob(self) -> float:
        """Probability; 0.0 if it is too small for a float."""
        return float(np.exp(self.log_prob))


@dataclass(frozen=True)
class _Path:
    """A sample on its way."""

    tokens: tuple[int, ...] = ()
    log_prob: float = 0.0
    row: int = -1
    """Of the decoder; -1 once the path has ended."""
    ended: bool = False
    noisy: float = 0.0
    """Without replacement: the largest noisy log-probability of the outputs that start so."""

    def sample(self) -> Sample:
        """Return the sample at the end of the path."""
        if self.tokens[-1:] == (_CUT,):
            return Sample(self.tokens[:-1], self.log_prob, complete=False)
        return Sample(self.tokens, self.log_prob, complete=True)


@dataclass(frozen=True)
class _Options:
    """What may come next at one row."""

    token: Ints
    """`(options,)`"""
    log_prob: Floats
    """`(options,)`; the probabilities sum to 1."""


_NOTHING = _Options(np.array([_CUT]), np.zeros(1))


@torch.inference_mode()
def sample(
    stepper: Stepper,
    batch: Any,
    sampling: Sampling,
    count: int,
    max_length: int = 100,
    numbers: Sequence[int] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[tuple[Sample, ...]]:
    """Draw outputs of every sentence of a batch.

    Args:
        stepper: the model; `temp` is its business (see `ModelStepper`).
        batch: what the stepper's `start` takes; its `len` is the number of sentences.
        sampling: how.
        count: samples of each sentence.
        max_length: longest output, without its end symbol.
        numbers: of the sentences, for their random numbers; from 0 if None.
        prefixes: for each sentence the token ids that its outputs must start with.

    Returns:
        For each sentence its samples in the order in which they were drawn. There are fewer if the
        model has no more distinct outputs, and none if it excludes the prefix.

    Raises:
        SearchError: if the model gives no token a positive probability.
        ValueError: if a prefix is not valid.
    """
    sentences = len(batch)
    numbers = range(sentences) if numbers is None else numbers
    prefixes = checked_prefixes(prefixes, sentences, stepper.vocabulary_size, stepper.eos)
    kind = _Distinct if sampling.distinct else _Independent
    drawn = [
        kind(np.random.default_rng([sampling.seed, number]), count, max_length, row)
        for row, number in enumerate(numbers)
    ]
    state, last = stepper.start(batch), [stepper.bos] * sentences
    owner = list(range(sentences))  # of each row
    length = 0
    while last:
        step = stepper.step(state, torch.tensor(last))
        check_columns(step.distribution, stepper.vocabulary_size)
        options = []
        for place, own in zip(owner, _rows(step.distribution, stepper.excluded), strict=True):
            if length < len(prefixes[place]):
                options.append(_forced(own, prefixes[place][length]))
            elif length == max_length:
                options.append(_last(own, stepper.eos))
            else:
                options.append(_truncated(own, sampling))
        for draws in drawn:
            draws.extend(options, stepper.eos)
        rows, last = _shared_rows(drawn)
        owner = [owner[row] for row in rows]
        if rows:
            state = stepper.select(step.state, torch.tensor(rows))
        length += 1
    return [tuple(path.sample() for path in draws.paths) for draws in drawn]


def _rows(distribution: Distribution, excluded: Sequence[int]) -> list[_Options]:
    """Return what may follow each row; `excluded` tokens may not."""
    if not isinstance(distribution, Support):
        distribution = as_support(distribution.contiguous())
    row, token = distribution.row.cpu().numpy(), distribution.token.cpu().numpy()
    log_prob = distribution.log_prob.double().cpu().numpy()
    if np.isnan(log_prob).any() or len(np.unique(row)) < distribution.rows:
        raise no_support()
    wanted = ~np.isin(token, excluded)
    row, token, log_prob = row[wanted], token[wanted], log_prob[wanted]
    ends = np.searchsorted(row, np.arange(distribution.rows + 1))
    return [
        _normalised(token[begin:end], log_prob[begin:end]) if begin < end else _NOTHING
        for begin, end in pairwise(ends)
    ]


def _normalised(token: Ints, log_prob: Floats) -> _Options:
    return _Options(token, log_prob - np.logaddexp.reduce(log_prob))


def _truncated(options: _Options, sampling: Sampling) -> _Options:
    """Apply `topp`, then `topk`, as OpenNMT-py does."""
    token, log_prob = options.token, options.log_prob
    if sampling.topp > 0:
        order = np.argsort(-log_prob, kind="stable")
        reached = np.cumsum(np.exp(log_prob[order]))
        order = order[: np.count_nonzero(reached < sampling.topp) + 1]
        token, log_prob = token[order], log_prob[order]
    if 0 < sampling.topk < len(token):
        among = log_prob >= np.partition(log_prob, -sampling.topk)[-sampling.topk]
        token, log_prob = token[among], log_prob[among]
    return options if len(token) == len(options.token) else _normalised(token, log_prob)


def _forced(options: _Options, token: int) -> _Options:
    """Return the token alone, if it is possible."""
    possible = options.token[options.token == token]
    return _Options(possible, np.zeros(len(possible)))


def _last(options: _Options, eos: int) -> _Options:
    """Return whether the output ends or is cut."""
    ends = options.token == eos
    sums = [np.logaddexp.reduce(options.log_prob[which]) for which in (ends, ~ends) if which.any()]
    return _Options(np.array([eos, _CUT])[[ends.any(), (~ends).any()]], np.array(sums))


class _Independent:
    """The samples of one sentence with replacement.

    Args:
        random: the sentence's own generator.
        count: number of samples.
        max_length: longest output.
        row: of the sentence at the first step.
    """

    def __init__(self, random: np.random.Generator, count: int, max_length: int, row: int) -> None:
        # The first samples are the same for any count.
        self._uniform = random.random((count, max_length + 1))
        self.paths = [_Path(row=row)] * count

    def extend(self, options: Sequence[_Options], eos: int) -> None:
        """Draw a token for each path that has not ended, given the options of every row."""
        if any(not path.ended and not len(options[path.row].token) for path in self.paths):
            self.paths = []
        sums: dict[int, Floats] = {}
        for number, path in enumerate(self.paths):
            if path.ended:
                continue
            own = options[path.row]
            if path.row not in sums:
                sums[path.row] = np.cumsum(np.exp(own.log_prob))
            reached = sums[path.row]
            value = self._uniform[number, len(path.tokens)] * reached[-1]
            place = min(int(np.searchsorted(reached, value, "right")), len(reached) - 1)
            self.paths[number] = _longer(path, own, place, eos, 0.0)


class _Distinct:
    """The samples of one sentence without replacement; arguments as of `_Independent`."""

    def __init__(self, random: np.random.Generator, count: int, max_length: int, row: int) -> None:
        self._random, self._count = random, count
        self.paths = [_Path(row=row)]

    def extend(self, options: Sequence[_Options], eos: int) -> None:
        """Replace the paths that have not ended by the best of their continuations."""
        found = [path for path in self.paths if path.ended]
        for path in self.paths:
            if path.ended or not len(options[path.row].token):
                continue
            own = options[path.row]
            noisy = path.log_prob + own.log_prob + self._random.gumbel(size=len(own.token))
            # Given that the largest of these is the noisy log-probability of the path.
            with np.errstate(divide="ignore"):
                shift = path.noisy - noisy + np.log1p(-np.exp(noisy - noisy.max()))
            noisy = path.noisy - np.maximum(shift, 0) - np.log1p(np.exp(-np.abs(shift)))
            for place in np.argsort(-noisy, kind="stable")[: self._count].tolist():
                found.append(_longer(path, own, place, eos, float(noisy[place])))
        self.paths = sorted(found, key=lambda path: -path.noisy)[: self._count]


def _shared_rows(drawn: Sequence[_Independent | _Distinct]) -> tuple[list[int], list[int]]:
    """Give the paths that go on their rows in the next step; equal prefixes share one.

    Returns:
        For each new row, the row that it continues and the token that it appends.
    """
    places: dict[tuple[int, int], int] = {}
    for draws in drawn:
        draws.paths = [
            path
            if path.ended
            else replace(path, row=places.setdefault((path.row, path.tokens[-1]), len(places)))
            for path in draws.paths
        ]
    return [row for row, _ in places], [token for _, token in places]


def _longer(path: _Path, options: _Options, place: int, eos: int, noisy: float) -> _Path:
    token = int(options.token[place])
    log_prob = path.log_prob + min(float(options.log_prob[place]), 0.0)
    tokens = path.tokens if token == eos else (*path.tokens, token)
    return _Path(tokens, log_prob, path.row, token in (eos, _CUT), noisy)
