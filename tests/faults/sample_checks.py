"""Checks of samples of random models; see `runner.Check`."""

import random
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import pytest

from onmt_entmax.search import EnsembleStepper, Request, Sampling, Stepper, sample
from tests.faults.draws import Sentence, draw_alpha, draw_network, draw_table, member_seed
from tests.search.frequencies import check_frequencies
from tests.search.networks import sentences
from tests.search.samples import distribution, first_two, outcome_of
from tests.search.table_steppers import TableStepper
from tests.search.tables import Table

_ENSEMBLES = 0.3  # share of the networks; an ensemble costs twice as much
_SAMPLES = 500  # with replacement: enough to tell a wrong distribution from chance
# Samples without replacement: more than some models have outputs, fewer than others.
_DISTINCT = 20
_SENTENCES = 300  # copies of one sentence, each with a pair of samples
_VOCABULARY_SIZE = 4  # the start and end symbols, and two words
# Limits of the length, up to which all outputs can be listed; networks have more tokens.
_TABLE_LENGTHS = (1, 2, 3)
_NETWORK_LENGTHS = (1, 2)


class SampledModel(NamedTuple):
    """A model with one sentence."""

    stepper: Stepper
    sentence: Sentence
    max_length: int
    """Most tokens of a sample."""


def check_table_samples(seed: int, rng: random.Random) -> list[str]:
    """Check samples of a table."""
    table, stepper, _ = draw_table(seed, rng)
    model = SampledModel(stepper, [table], rng.choice(_TABLE_LENGTHS))
    return _check_samples(model, rng, seed)


def check_network_samples(seed: int, rng: random.Random) -> list[str]:
    """Check samples of a network, or of an ensemble of two."""
    stepper: Stepper = draw_network(seed, rng).stepper
    if rng.random() < _ENSEMBLES:
        other = draw_network(member_seed(seed, 1), rng).stepper
        stepper = EnsembleStepper([stepper, other])
    (batch,) = sentences(1, seed)
    return _check_samples(SampledModel(stepper, batch, rng.choice(_NETWORK_LENGTHS)), rng, seed)


def _check_samples(model: SampledModel, rng: random.Random, seed: int) -> list[str]:
    """Check samples with and without replacement, perhaps of the most probable tokens only."""
    stepper, sentence, max_length = model
    sampling = Sampling(
        topk=rng.choice([-1, -1, 1, 2, 3]),  # -1: all tokens
        topp=rng.choice([0.0, 0.0, 0.5, 0.9]),  # 0: all tokens
        seed=seed,
    )
    truth = distribution(stepper, sentence, sampling, max_length)
    request = Request(sentence)
    (samples,) = sample(stepper, request, sampling, count=_SAMPLES, max_length=max_length)
    check_frequencies(Counter(map(outcome_of, samples)), truth)
    without_replacement = replace(sampling, distinct=True)
    (distinct,) = sample(
        stepper, request, without_replacement, count=_DISTINCT, max_length=max_length
    )
    outcomes = [outcome_of(drawn) for drawn in distinct]
    assert len(set(outcomes)) == len(outcomes) == min(_DISTINCT, len(truth))
    for drawn in (*samples[:_DISTINCT], *distinct):
        assert drawn.prob == pytest.approx(truth[outcome_of(drawn)], abs=1e-4)
    return ["sampled"]


def check_distinct_pairs(seed: int, rng: random.Random) -> list[str]:
    """Check how often each pair of outputs is drawn by two samples without replacement."""
    table = Table(seed, draw_alpha(rng), _VOCABULARY_SIZE)
    stepper = TableStepper(_VOCABULARY_SIZE)
    truth = distribution(stepper, [table], Sampling(), max_length=1)
    if len(truth) < 2:
        return ["one output only"]
    sampling = Sampling(distinct=True, seed=seed)
    samples = sample(stepper, Request([table] * _SENTENCES), sampling, count=2, max_length=1)
    pairs = Counter(tuple(map(outcome_of, pair)) for pair in samples)
    check_frequencies(pairs, first_two(truth))
    return ["sampled"]
