"""Sample outputs, with or without replacement.

With replacement, each sample is drawn token by token. Without, all samples of a sentence are drawn
together by stochastic beam search (Kool, van Hoof and Welling 2019). The score of a prefix is the
largest log-probability with Gumbel noise among its outputs, and the prefixes with the largest
scores go on. The result is distributed as if outputs were drawn one by one and repeated ones
rejected.

The random numbers of a sentence depend on the seed and its number alone, not on its batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from onmt_entmax.search.arrays import Ints
from onmt_entmax.search.config import SearchConfig
from onmt_entmax.search.next_tokens import CUT, NextTokens, allowed_tokens
from onmt_entmax.search.request import Request
from onmt_entmax.search.sample_paths import Path, draw_distinct, draw_independent, number_rows
from onmt_entmax.search.sampling_options import Sampling
from onmt_entmax.search.stepper import Stepper
from onmt_entmax.search.token_checks import check_tokens

_NO_TOKENS: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Sample:
    """One output that was drawn."""

    tokens: tuple[int, ...]
    """Without start and end symbols."""
    log_prob: float
    """Log-probability of drawing it, given the forced prefix, in nats."""
    complete: bool
    """False if the length limit cut it, or no token may follow. `log_prob` is then that of all
    outputs which start with these tokens."""

    @property
    def prob(self) -> float:
        """Probability; 0.0 if it is too small for a float."""
        return float(np.exp(self.log_prob))


@torch.inference_mode()
def sample(
    stepper: Stepper,
    request: Request,
    sampling: Sampling,
    count: int,
    *,
    max_length: int = 100,
    numbers: Sequence[int] | None = None,
) -> list[tuple[Sample, ...]]:
    """Draw outputs of every sentence of a batch.

    Padding, the start symbol and banned tokens are never drawn; the probabilities of the other next
    tokens are divided by their sum.

    Args:
        stepper: the model. It must apply `temp` itself (see `ModelStepper`); nothing here does.
        request: the batch, with the prefixes of its outputs and the tokens that they may not have.
            It may have no automata, which are for searches.
        sampling: the options of sampling.
        count: how many samples to draw for each sentence.
        max_length: longest output, without its end symbol.
        numbers: the number of each sentence, which decides its random numbers; from 0 if None.

    Returns:
        For each sentence its samples in the order in which they were drawn. There are fewer if the
        model has no more distinct outputs, and none if it excludes the prefix.

    Raises:
        SearchError: if the model gives no token a positive probability.
        ValueError: if there is an automaton, if there is not one prefix or ban for each sentence,
            or if a token or prefix is not valid.
    """
    eos = stepper.eos
    check_tokens(stepper.excluded, stepper.vocabulary_size)
    requests = request.of_sentences(stepper, SearchConfig(max_length=max_length))
    if any(sentence_request.automaton is not None for sentence_request in requests):
        raise ValueError("an automaton goes with a search, not with sampling")
    sentences = range(len(requests))
    draws = [
        _draw_of(np.random.default_rng([sampling.seed, number]), sampling, count, max_length)
        for number in (sentences if numbers is None else numbers)
    ]
    # Without replacement, one path becomes several when it goes on.
    first_paths = 1 if sampling.distinct else count
    paths = [[Path((), 0.0, row)] * first_paths for row in sentences]
    request_of_row = requests
    state, last = stepper.start(request.batch), [stepper.bos] * len(requests)
    length = 0
    while last:
        step = stepper.step(state, torch.tensor(last))
        # As in a search, a forced prefix may have banned tokens.
        excluded = [
            _NO_TOKENS if length < len(row_request.forced) else row_request.excluded
            for row_request in request_of_row
        ]
        allowed = allowed_tokens(step.distribution, excluded)
        options = [
            next_tokens.only(row_request.forced[length])
            if length < len(row_request.forced)
            else _drawn_from(next_tokens, sampling, eos, must_end=length == max_length)
            for next_tokens, row_request in zip(allowed, request_of_row, strict=True)
        ]
        paths = [
            draw(of_sentence, options, eos) for draw, of_sentence in zip(draws, paths, strict=True)
        ]
        paths, rows = number_rows(paths)
        request_of_row = [request_of_row[row.before] for row in rows]
        last = [row.token for row in rows]
        if rows:
            state = stepper.select(step.state, torch.tensor([row.before for row in rows]))
        length += 1
    return [tuple(map(_sample_of, of_sentence)) for of_sentence in paths]


def _drawn_from(allowed: NextTokens, sampling: Sampling, eos: int, *, must_end: bool) -> NextTokens:
    """Return the tokens from which the next one is drawn, once the forced prefix is complete.

    Args:
        allowed: tokens that may come next.
        sampling: the options of sampling, which may leave out improbable tokens.
        eos: id of the end symbol.
        must_end: whether the prefix is as long as an output may be.
    """
    truncated = allowed.truncated(sampling.topp, sampling.topk)
    return truncated.end_or_cut(eos) if must_end else truncated


_Draw = Callable[[Sequence[Path], Sequence[NextTokens], int], list[Path]]
"""Takes the paths of a sentence one token further: maps paths, what may follow each row of the
decoder, and the id of the end symbol to the new paths."""


def _draw_of(
    generator: np.random.Generator, sampling: Sampling, count: int, max_length: int
) -> _Draw:
    """Return how the tokens of one sentence are drawn, with the random numbers of `generator`."""
    if sampling.distinct:
        return partial(draw_distinct, generator=generator, count=count)
    # All random numbers at once: the first samples are the same for any count.
    return partial(draw_independent, uniform=generator.random((count, max_length + 1)))


def _sample_of(path: Path) -> Sample:
    """Return the sample of a path that has ended."""
    if path.tokens[-1:] == (CUT,):
        return Sample(path.tokens[:-1], path.log_prob, complete=False)
    return Sample(path.tokens, path.log_prob, complete=True)
