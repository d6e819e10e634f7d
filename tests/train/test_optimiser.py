"""The cosine of the learning rate: by updates, by time, and by both.

A schedule gives the factor of the rate at an update, counted from 1,
and at a share of the time that has passed.
"""

import math
from itertools import pairwise

import pytest

from onmt_entmax.config import OptimizerConfig
from onmt_entmax.train.optimiser import learning_rate_schedule

WARM_UP = 4  # updates
COSINE = OptimizerConfig(decay_method="cosine", warmup_steps=WARM_UP)


def test_a_cosine_rises_over_the_warm_up_and_ends_at_zero() -> None:
    """Eight updates follow those of the warm-up: of their cosine, 2 are a quarter, and 4 half."""
    factor = learning_rate_schedule(COSINE, WARM_UP + 8)
    after_quarter = 0.5 * (1 + math.cos(math.pi / 4))
    assert [factor(step, 0) for step in (1, 2, 4, 6, 8, 12)] == pytest.approx(
        [0.25, 0.5, 1, after_quarter, 0.5, 0]
    )


def test_a_cosine_by_updates_has_the_same_bits_as_its_definition() -> None:
    """A last bit would change the weights of runs that a seed should repeat."""
    falling = 1233  # updates after the warm-up
    factor = learning_rate_schedule(COSINE, WARM_UP + falling)
    for step in range(1, WARM_UP + 1):
        assert factor(step, 0) == step / WARM_UP
    for step in range(1, falling + 1):
        assert factor(WARM_UP + step, 0) == 0.5 * (1 + math.cos(math.pi * step / falling))


def test_a_cosine_by_time_falls_to_zero_whatever_the_update() -> None:
    """Seven thousandths of the time pass with each update after the warm-up."""
    factor = learning_rate_schedule(COSINE, None)
    factors = [factor(WARM_UP + 1 + n // 7, n / 1000) for n in range(1001)]
    assert factors[0] == 1
    assert factors[500] == pytest.approx(0.5)
    assert factors[1000] == factor(9, 1.5) == 0
    assert all(later < earlier for earlier, later in pairwise(factors))


def test_a_cosine_by_time_warms_up_by_updates() -> None:
    """The time falls meanwhile: half of it is over, and half of the warm-up done."""
    factor = learning_rate_schedule(COSINE, None)
    assert factor(2, 0.5) == pytest.approx(0.5 * 0.5)


def test_a_cosine_follows_the_limit_that_is_nearer() -> None:
    """At update 8, half of the updates after the warm-up are made; at update 12, all."""
    factor = learning_rate_schedule(COSINE, WARM_UP + 8)
    assert [factor(8, 0.25), factor(8, 0.75), factor(12, 0.75)] == pytest.approx(
        [0.5, 0.5 * (1 + math.cos(0.75 * math.pi)), 0]
    )
