"""The distribution of samples by definition, and a test of their frequencies."""

import math
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple, TypeVar

import pytest
import torch

from onmt_entmax.search import Sample, Sampling
from onmt_entmax.search.stepper import Stepper
from tests.search.enumeration import Tokens


class Outcome(NamedTuple):
    """What tells samples apart."""

    tokens: Tokens
    complete: bool
    """False if the length limit, or that no token may follow, ends the output."""


def outcome(sample: Sample) -> Outcome:
    """Return the outcome that a sample is."""
    return Outcome(sample.tokens, sample.complete)


def truncated(probabilities: Mapping[int, float], sampling: Sampling) -> dict[int, float]:
    """Return the tokens that one step may draw, and with which probabilities: first p, then k."""
    ranked = sorted(probabilities.items(), key=lambda pair: -pair[1])
    if sampling.topp:
        reached, count = 0.0, 0
        for _, p in ranked:
            count += 1
            reached += p
            if reached >= sampling.topp * sum(probabilities.values()):
                break
        ranked = ranked[:count]
    if sampling.topk > 0:
        least = ranked[: sampling.topk][-1][1]
        ranked = [(token, p) for token, p in ranked if p >= least]
    total = sum(p for _, p in ranked)
    return {token: p / total for token, p in ranked}


def distribution(
    stepper: Stepper, batch: Any, sampling: Sampling, max_length: int, forced: Tokens = ()
) -> dict[Outcome, float]:
    """Return the probability of every outcome, following one prefix at a time.

    Args:
        stepper: the model.
        batch: one sentence.
        sampling: how tokens are drawn; its temperature and `distinct` are not read.
        max_length: of an output, without its end symbol.
        forced: what outputs must start with, at no cost.
    """
    outcomes = Counter[Outcome]()

    def follow(state: Any, last: int, tokens: Tokens, probability: float) -> None:
        step = stepper.step(state, torch.tensor([last]))
        row = step.log_probs[0].double().exp().tolist()
        options = {t: p for t, p in enumerate(row) if p > 0 and t not in stepper.excluded}
        if len(tokens) < len(forced):
            token = forced[len(tokens)]
            if token in options:
                follow(step.state, token, (*tokens, token), probability)
            return
        if not options:
            outcomes[Outcome(tokens, complete=False)] += probability
            return
        for token, p in truncated(options, sampling).items():
            if token == stepper.eos:
                outcomes[Outcome(tokens, complete=True)] += probability * p
            elif len(tokens) == max_length:
                outcomes[Outcome(tokens, complete=False)] += probability * p
            else:
                follow(step.state, token, (*tokens, token), probability * p)

    with torch.inference_mode():
        follow(stepper.start(batch), stepper.bos, (), 1.0)
    return outcomes


Drawn = TypeVar("Drawn", bound=Hashable)


def first_two(probabilities: Mapping[Drawn, float]) -> dict[tuple[Drawn, Drawn], float]:
    """Return the probabilities of the first two draws without replacement."""
    return {
        (first, second): p * q / (1 - p)
        for first, p in probabilities.items()
        for second, q in probabilities.items()
        if first != second
    }


# Cells of a chi-squared test must expect some draws, for their counts to be nearly normal.
_LEAST_EXPECTED = 5
_MOST_SIGMA = 5.0
_LEAST_PROBABILITY = 1e-6


def check_frequencies(counts: Counter[Any], probabilities: Mapping[Any, float]) -> None:
    """Check by a chi-squared test that draws may come from a distribution.

    Outcomes that are rare count as one. If even that is rare, its number is not nearly normal, and
    its own probability is computed.

    Args:
        counts: draws of each outcome.
        probabilities: of each outcome.

    Raises:
        AssertionError: an outcome is impossible, or the counts are so far from what is expected
            that a fair draw would hardly ever give them (five sigma).
    """
    assert set(counts) <= set(probabilities)
    assert sum(probabilities.values()) == pytest.approx(1, abs=1e-5)
    expected = {key: counts.total() * p for key, p in probabilities.items()}
    cells = [(counts[key], e) for key, e in expected.items() if e >= _LEAST_EXPECTED]
    rare = [key for key, e in expected.items() if e < _LEAST_EXPECTED]
    rare_count, rare_expected = sum(counts[key] for key in rare), sum(expected[key] for key in rare)
    if rare_expected >= _LEAST_EXPECTED:
        cells.append((rare_count, rare_expected))
    elif rare:
        assert _probability_of_so_many(rare_count, rare_expected) > _LEAST_PROBABILITY
    if len(cells) > 1:
        assert _sigma(cells) < _MOST_SIGMA


def _probability_of_so_many(number: int, expected: float) -> float:
    """Return the probability of seeing so many rare outcomes or more (Poisson)."""
    if number == 0:
        return 1.0
    # A hundred terms of the tail: of at most five expected outcomes, the rest is far below a float.
    logs = (k * math.log(expected) - math.lgamma(k + 1) for k in range(number, number + 100))
    return math.exp(-expected) * sum(map(math.exp, logs))


def _sigma(cells: list[tuple[int, float]]) -> float:
    """Return how many standard deviations chi squared is above its mean.

    Its cube root is nearly normal (Wilson and Hilferty 1931).

    Args:
        cells: number and expected number of the draws in each; at least two cells.
    """
    freedom = len(cells) - 1
    statistic = sum((number - expected) ** 2 / expected for number, expected in cells)
    variance = 2 / (9 * freedom)
    return ((statistic / freedom) ** (1 / 3) - (1 - variance)) / math.sqrt(variance)
