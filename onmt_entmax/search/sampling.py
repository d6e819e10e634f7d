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
from onmt_entmax.search.arrays import Floats, Ints
from onmt_entmax.search.constraints import check_tokens, checked_prefixes
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
    temp: float = option(
        1.0, positive(1000), "Temperature: divides the scores.", _TOPIC, needs=_NEEDS
    )
    """Temperature: scores are divided by it before softmax or entmax maps them to probabilities."""
    distinct: bool = option(
        False, FLAG, "Draw samples without replacement.", "Search and certificates", needs=_NEEDS
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
    never = _banned_tokens(stepper, sentences, banned)
    generators = [np.random.default_rng([sampling.seed, number]) for number in numbers]
    started = 1 if sampling.distinct else count
    paths = [[_Path((), 0.0, row)] * started for row in range(sentences)]
    uniform: list[Floats] = []
    if not sampling.distinct:
        # All random numbers at once: the first samples are the same for any count.
        uniform = [generator.random((count, max_length + 1)) for generator in generators]
    state, last = stepper.start(batch), [stepper.bos] * sentences
    owner = list(range(sentences))  # the sentence of each row
    length = 0
    while last:
        step = stepper.step(state, torch.tensor(last))
        allowed = _rows(step.distribution, [never[sentence] for sentence in owner])
        options = []
        for sentence, row_options in zip(owner, allowed, strict=True):
            if length < len(prefixes[sentence]):
                row_options = _forced(row_options, prefixes[sentence][length])
            else:
                row_options = _truncated(*row_options, sampling)
                if length == max_length:
                    row_options = _end_or_cut(*row_options, eos)
            options.append(row_options)
        for sentence, started_paths in enumerate(paths):
            if sampling.distinct:
                generator = generators[sentence]
                paths[sentence] = _distinct(started_paths, options, generator, count, eos)
            else:
                paths[sentence] = _independent(started_paths, options, uniform[sentence], eos)
        paths, rows = _next_rows(paths)
        owner, last = [owner[row] for row, _ in rows], [token for _, token in rows]
        if rows:
            state = stepper.select(step.state, torch.tensor([row for row, _ in rows]))
        length += 1
    return [tuple(map(_sample_of, of_sentence)) for of_sentence in paths]


def _banned_tokens(
    stepper: Stepper, sentences: int, banned: Sequence[Collection[int]] | None
) -> list[Ints]:
    """Return for each sentence the sorted token ids that its outputs may not have.

    Raises:
        ValueError: if there are not as many collections as sentences, or an id is not valid.
    """
    if banned is not None and len(banned) != sentences:
        raise ValueError(f"banned has {len(banned)} for {counted(sentences, 'sentence')}")
    never = [
        np.array(sorted({*stepper.excluded, *tokens}), dtype=np.int64)
        for tokens in banned or [()] * sentences
    ]
    check_tokens(np.concatenate(never).tolist(), stepper.vocabulary_size)
    return never


def _next_rows(
    paths: Sequence[Sequence[_Path]],
) -> tuple[list[list[_Path]], list[tuple[int, int]]]:
    """Number the decoder's rows of the next step; equal prefixes share one.

    Returns:
        The paths with their new rows, and for each new row the old one and its last token.
    """
    rows: dict[tuple[int, int], int] = {}
    numbered = [
        [
            path
            if path.ended
            else path._replace(row=rows.setdefault((path.row, path.tokens[-1]), len(rows)))
            for path in of_sentence
        ]
        for of_sentence in paths
    ]
    return numbered, list(rows)


def _sample_of(path: _Path) -> Sample:
    """Return the sample of a path that has ended."""
    if path.tokens[-1:] == (_CUT,):
        return Sample(path.tokens[:-1], path.log_prob, complete=False)
    return Sample(path.tokens, path.log_prob, complete=True)


def _forced(options: _Options, forced: int) -> _Options:
    """Return the token of a forced prefix alone, with probability 1; nothing if it is excluded."""
    token, _ = options
    possible = token[token == forced]
    return possible, np.zeros(len(possible))


def _end_or_cut(token: Ints, log_prob: Floats, eos: int) -> _Options:
    """Return the end symbol and, for all other tokens together, `_CUT`, where they are possible."""
    parts = [(eos, log_prob[token == eos]), (_CUT, log_prob[token != eos])]
    sums = [(symbol, np.logaddexp.reduce(part)) for symbol, part in parts if len(part)]
    return np.array([symbol for symbol, _ in sums]), np.array([total for _, total in sums])


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
    all_options = token, log_prob
    if sampling.topp > 0:
        order = np.argsort(-log_prob, kind="stable")
        reached = np.cumsum(np.exp(log_prob[order]))
        order = order[: np.count_nonzero(reached < sampling.topp) + 1]
        token, log_prob = token[order], log_prob[order]
    if 0 < sampling.topk < len(token):
        kept = log_prob >= np.partition(log_prob, -sampling.topk)[-sampling.topk]
        token, log_prob = token[kept], log_prob[kept]
    if len(token) == len(all_options[0]):
        return all_options
    return token, log_prob - np.logaddexp.reduce(log_prob)


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
            cumulative = sums[path.row]
            value = uniform[index, len(path.tokens)] * cumulative[-1]
            # Rounding may lift the value to the last sum.
            position = min(int(np.searchsorted(cumulative, value, "right")), len(cumulative) - 1)
            longer[index] = _longer(path, options, position, eos)
    return longer


def _distinct(
    paths: Sequence[_Path],
    options: Sequence[_Options],
    generator: np.random.Generator,
    count: int,
    eos: int,
) -> list[_Path]:
    """Replace the paths that have not ended by the `count` best of their continuations."""
    longer = [path for path in paths if path.ended]
    for path in paths:
        if path.ended or not len(options[path.row][0]):
            continue
        log_prob = options[path.row][1]
        noisy = path.log_prob + log_prob + generator.gumbel(size=len(log_prob))
        # Given that the largest of these is the noisy log-probability of the path; the form is that
        # of Kool et al., stable where the numbers are far apart.
        with np.errstate(divide="ignore"):
            shift = path.noisy - noisy + np.log1p(-np.exp(noisy - noisy.max()))
        noisy = path.noisy - np.maximum(shift, 0) - np.log1p(np.exp(-np.abs(shift)))
        for position in np.argsort(-noisy, kind="stable")[:count].tolist():
            longer.append(_longer(path, options, position, eos, float(noisy[position])))
    return sorted(longer, key=lambda path: -path.noisy)[:count]


def _longer(
    path: _Path, options: Sequence[_Options], position: int, eos: int, noisy: float = 0.0
) -> _Path:
    """Return a path continued by the option at a position."""
    tokens_here, log_probs = options[path.row]
    token, log_prob = tokens_here[position], log_probs[position]
    total = path.log_prob + min(float(log_prob), 0.0)
    tokens = path.tokens if token == eos else (*path.tokens, int(token))
    return _Path(tokens, total, path.row, token in (eos, _CUT), noisy)
