"""Checks of samples of random models; see `runner.Check`."""

import random
from collections import Counter
from typing import Any

import pytest

from onmt_entmax.search import EnsembleStepper, Sampling, Stepper, sample
from tests.faults.draws import draw_alpha, draw_network, draw_table
from tests.search.frequencies import check_frequencies
from tests.search.networks import sentences
from tests.search.samples import distribution, first_two, outcome_of
from tests.search.table_steppers import TableStepper
from tests.search.tables import Table

DISTINCT = 20  # samples without replacement: more than some models have, fewer than others


def check_table_samples(seed: int, rng: random.Random) -> list[str]:
    """Check samples of a table."""
    table, stepper, _ = draw_table(seed, rng)
    return _check_samples(stepper, [table], rng.choice([1, 2, 3]), rng, seed)


def check_network_samples(seed: int, rng: random.Random) -> list[str]:
    """Check samples of a network, or of an ensemble of two."""
    stepper: Stepper = draw_network(seed, rng).stepper
    if rng.random() < 0.3:
        stepper = EnsembleStepper([stepper, draw_network(seed + 5, rng).stepper])
    (batch,) = sentences(1, seed)
    return _check_samples(stepper, batch, rng.choice([1, 2]), rng, seed)


def _check_samples(
    stepper: Stepper, batch: Any, max_length: int, rng: random.Random, seed: int
) -> list[str]:
    """Check samples of one sentence, with and without replacement."""
    topk = rng.choice([-1, -1, 1, 2, 3])
    topp = rng.choice([0.0, 0.0, 0.5, 0.9])
    sampling = Sampling(topk=topk, topp=topp, seed=seed)
    truth = distribution(stepper, batch, sampling, max_length)
    (samples,) = sample(stepper, batch, sampling, count=500, max_length=max_length)
    check_frequencies(Counter(map(outcome_of, samples)), truth)
    without_replacement = Sampling(topk=topk, topp=topp, distinct=True, seed=seed)
    (distinct,) = sample(stepper, batch, without_replacement, count=DISTINCT, max_length=max_length)
    outcomes = [outcome_of(drawn) for drawn in distinct]
    assert len(set(outcomes)) == len(outcomes) == min(DISTINCT, len(truth))
    for drawn in (*samples[:DISTINCT], *distinct):
        assert drawn.prob == pytest.approx(truth[outcome_of(drawn)], abs=1e-4)
    return ["sampled"]


def check_distinct_pairs(seed: int, rng: random.Random) -> list[str]:
    """Check the first two samples without replacement."""
    table = Table(seed, draw_alpha(rng), 4)
    stepper = TableStepper(4)
    truth = distribution(stepper, [table], Sampling(), max_length=1)
    if len(truth) < 2:
        return ["one output only"]
    sampling = Sampling(distinct=True, seed=seed)
    samples = sample(stepper, [table] * 300, sampling, count=2, max_length=1)
    pairs = Counter(tuple(map(outcome_of, of_sentence)) for of_sentence in samples)
    check_frequencies(pairs, first_two(truth))
    return ["sampled"]
