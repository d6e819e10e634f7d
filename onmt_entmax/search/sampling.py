"""Sampling of outputs, with or without replacement.

With replacement, each sample is drawn token by token. Without, all samples of a sentence are drawn
together by stochastic beam search (Kool, van Hoof and Welling 2019): every prefix carries the
largest of its outputs' log-probabilities with Gumbel noise, and the prefixes with the largest go
on. The result is distributed as if outputs were drawn one by one and repeated ones rejected.

The random numbers of a sentence depend on the seed and its number alone, not on its batch.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from onmt_entmax.config import Checked, option
from onmt_entmax.errors import counted
from onmt_entmax.nn.support import Distribution, Support, as_support
from onmt_entmax.rules import FLAG, number, positive, whole
from onmt_entmax.search.constraints import check_tokens, checked_prefixes
from onmt_entmax.search.expansion import Floats, Ints
from onmt_entmax.search.stepper import Stepper, no_support

_CUT = -1  # stands for all tokens where the length limit, or that none is allowed, ends an output


_TOPIC = "Sampling (OpenNMT-py's options from here on)"
_NEEDS = "random_sampling_topk or random_sampling_topp"


@dataclass(frozen=True)
class Sampling(Checked):
    """How to sample; each option of `translate` is `random_sampling_` and the name of a field."""

    topk: int = option(
        0, whole(-1, 10**6), "Draw n_best outputs, each token of the k best; -1: of all.", _TOPIC
    )
    """Draw among this many most probable next tokens (more at a tie); 0 and -1 for all."""
    topp: float = option(
        0.0, number(0, 1), "Draw each token of the best that reach this probability.", _TOPIC
    )
    """Draw among the fewest most probable next tokens that reach this probability; 0 for all."""
    temp: float = option(1.0, positive(1000), "Temperature: divides the scores.", _TOPIC, _NEEDS)
    """Temperature: scores are divided by it before softmax or entmax maps them to probabilities."""
    distinct: bool = option(
        False, FLAG, "Draw samples without replacement.", "Search and certificates", _NEEDS
    )
    """Without replacement: no output twice."""
    seed: int = 0

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each value that does not fit others, and why."""
        if self.seed < 0:
            yield "seed", f"must not be negative, not {self.seed}"


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


class _Path(NamedTuple):
    """A sample on its way."""

    tokens: tuple[int, ...]
    log_prob: float
    row: int
    """Of the decoder, until the path has ended."""
    ended: bool = False
    noisy: float = 0.0
    """Without replacement: the largest noisy log-probability of the outputs that start so."""


_Options = tuple[Ints, Floats]
"""Tokens that may come next at one row, and their log-probabilities, whose sum is 1."""


@torch.inference_mode()
def sample(
    stepper: Stepper,
    batch: Any,
    sampling: Sampling,
    count: int,
    max_length: int = 100,
    numbers: Sequence[int] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
    banned: Sequence[Collection[int]] | None = None,
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
        banned: for each sentence token ids that its outputs may not have; the probabilities of the
            other next tokens are divided by their sum.

    Returns:
        For each sentence its samples in the order in which they were drawn. There are fewer if the
        model has no more distinct outputs, and none if it excludes the prefix.

    Raises:
        SearchError: if the model gives no token a positive probability.
        ValueError: if a prefix is not valid.
    """
    sentences, eos = len(batch), stepper.eos
    numbers = range(sentences) if numbers is None else numbers
    prefixes = checked_prefixes(prefixes, sentences, stepper, max_length)
    if banned is not None and len(banned) != sentences:
        raise ValueError(f"banned has {len(banned)} for {counted(sentences, 'sentence')}")
    never = [
        np.array(sorted({*stepper.excluded, *tokens}), dtype=np.int64)
        for tokens in banned or [()] * sentences
    ]
    check_tokens(np.concatenate(never).tolist(), stepper.vocabulary_size)
    random = [np.random.default_rng([sampling.seed, number]) for number in numbers]
    paths = [
        [_Path((), 0.0, row)] * (1 if sampling.distinct else count) for row in range(sentences)
    ]
    # The first samples are the same for any count.
    uniform = [] if sampling.distinct else [each.random((count, max_length + 1)) for each in random]
    state, last = stepper.start(batch), [stepper.bos] * sentences
    owner = list(range(sentences))  # of each row
    length = 0
    while last:
        step = stepper.step(state, torch.tensor(last))
        options = []
        excluded = [never[place] for place in owner]
        for place, (token, log_prob) in zip(owner, _rows(step.distribution, excluded), strict=True):
            if length < len(prefixes[place]):
                possible = token[token == prefixes[place][length]]
                options.append((possible, np.zeros(len(possible))))
                continue
            token, log_prob = _truncated(token, log_prob, sampling)
            if length == max_length:  # the output ends or is cut
                parts = [(eos, log_prob[token == eos]), (_CUT, log_prob[token != eos])]
                sums = [(which, np.logaddexp.reduce(part)) for which, part in parts if len(part)]
                token, log_prob = np.array([e for e, _ in sums]), np.array([v for _, v in sums])
            options.append((token, log_prob))
        for place, own in enumerate(paths):
            if sampling.distinct:
                paths[place] = _distinct(own, options, random[place], count, eos)
            else:
                paths[place] = _independent(own, options, uniform[place], eos)
        rows: dict[tuple[int, int], int] = {}  # of the next step; equal prefixes share one
        paths = [
            [
                path
                if path.ended
                else path._replace(row=rows.setdefault((path.row, path.tokens[-1]), len(rows)))
                for path in own
            ]
            for own in paths
        ]
        owner, last = [owner[row] for row, _ in rows], [token for _, token in rows]
        if rows:
            state = stepper.select(step.state, torch.tensor([row for row, _ in rows]))
        length += 1
    return [
        tuple(
            Sample(path.tokens[:-1], path.log_prob, complete=False)
            if path.tokens[-1:] == (_CUT,)
            else Sample(path.tokens, path.log_prob, complete=True)
            for path in own
        )
        for own in paths
    ]


def _rows(distribution: Distribution, excluded: Sequence[Ints]) -> list[_Options]:
    """Return what may follow each row; its `excluded` tokens may not."""
    if not isinstance(distribution, Support):
        distribution = as_support(distribution.contiguous())
    row, token = distribution.row.cpu().numpy(), distribution.token.cpu().numpy()
    log_prob = distribution.log_prob.double().cpu().numpy()
    if np.isnan(log_prob).any() or len(np.unique(row)) < distribution.rows:
        raise no_support()
    owner = np.repeat(np.arange(len(excluded)), list(map(len, excluded)))
    never = owner * distribution.vocabulary + np.concatenate(excluded)
    wanted = ~np.isin(row * distribution.vocabulary + token, never)
    row, token, log_prob = row[wanted], token[wanted], log_prob[wanted]
    ends = np.searchsorted(row, np.arange(distribution.rows + 1))
    return [
        (token[begin:end], log_prob[begin:end] - np.logaddexp.reduce(log_prob[begin:end]))
        if begin < end
        else (np.array([_CUT]), np.zeros(1))
        for begin, end in pairwise(ends)
    ]


def _truncated(token: Ints, log_prob: Floats, sampling: Sampling) -> _Options:
    """Apply `topp`, then `topk`, as OpenNMT-py does."""
    whole = token, log_prob
    if sampling.topp > 0:
        order = np.argsort(-log_prob, kind="stable")
        reached = np.cumsum(np.exp(log_prob[order]))
        order = order[: np.count_nonzero(reached < sampling.topp) + 1]
        token, log_prob = token[order], log_prob[order]
    if 0 < sampling.topk < len(token):
        among = log_prob >= np.partition(log_prob, -sampling.topk)[-sampling.topk]
        token, log_prob = token[among], log_prob[among]
    kept = token, log_prob - np.logaddexp.reduce(log_prob)
    return whole if len(token) == len(whole[0]) else kept


def _independent(
    paths: Sequence[_Path], options: Sequence[_Options], uniform: Floats, eos: int
) -> list[_Path]:
    """Draw a token for each path that has not ended; none if the model excludes the prefix.

    Args:
        paths: of one sentence.
        options: of every row.
        uniform: `(samples, steps)` random numbers from 0 to 1.
        eos: id of the end symbol.
    """
    if any(not path.ended and not len(options[path.row][0]) for path in paths):
        return []
    longer, sums = list(paths), dict[int, Floats]()
    for index, path in enumerate(paths):
        if not path.ended:
            if path.row not in sums:
                sums[path.row] = np.cumsum(np.exp(options[path.row][1]))
            reached = sums[path.row]
            value = uniform[index, len(path.tokens)] * reached[-1]
            place = min(int(np.searchsorted(reached, value, "right")), len(reached) - 1)
            longer[index] = _longer(path, options, place, eos)
    return longer


def _distinct(
    paths: Sequence[_Path],
    options: Sequence[_Options],
    random: np.random.Generator,
    count: int,
    eos: int,
) -> list[_Path]:
    """Replace the paths that have not ended by the `count` best of their continuations."""
    longer = [path for path in paths if path.ended]
    for path in paths:
        if path.ended or not len(options[path.row][0]):
            continue
        log_prob = options[path.row][1]
        noisy = path.log_prob + log_prob + random.gumbel(size=len(log_prob))
        # Given that the largest of these is the noisy log-probability of the path.
        with np.errstate(divide="ignore"):
            shift = path.noisy - noisy + np.log1p(-np.exp(noisy - noisy.max()))
        noisy = path.noisy - np.maximum(shift, 0) - np.log1p(np.exp(-np.abs(shift)))
        for place in np.argsort(-noisy, kind="stable")[:count].tolist():
            longer.append(_longer(path, options, place, eos, float(noisy[place])))
    return sorted(longer, key=lambda path: -path.noisy)[:count]


def _longer(
    path: _Path, options: Sequence[_Options], place: int, eos: int, noisy: float = 0.0
) -> _Path:
    """Return a path with one of its options."""
    token, log_prob = (column[place] for column in options[path.row])
    total = path.log_prob + min(float(log_prob), 0.0)
    tokens = path.tokens if token == eos else (*path.tokens, int(token))
    return _Path(tokens, total, path.row, token in (eos, _CUT), noisy)
