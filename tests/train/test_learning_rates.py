"""The cosine schedule of the learning rate: by updates, by time, and by both.

A schedule gives the factor of the rate at an update, counted from 1, and at a share of the time
that has passed.
"""

import math
from itertools import pairwise

import pytest

from onmt_entmax.config import OptimizerConfig
from onmt_entmax.train.optimiser import learning_rate_schedule

WARM_UP = 4  # updates
COSINE = OptimizerConfig(decay_method="cosine", warmup_steps=WARM_UP)
FALL = 8  # updates after the warm-up
AFTER_WARM_UP = WARM_UP + 1


def cosine_fall(share: float) -> float:
    """Return the factor after this share of the fall."""
    return 0.5 * (1 + math.cos(math.pi * share))


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        pytest.param(1, 1 / WARM_UP, id="first update"),
        pytest.param(WARM_UP // 2, 0.5, id="half of the warm-up"),
        pytest.param(WARM_UP, 1, id="end of the warm-up"),
        pytest.param(WARM_UP + FALL // 4, cosine_fall(1 / 4), id="a quarter of the fall"),
        pytest.param(WARM_UP + FALL // 2, 0.5, id="half of the fall"),
        pytest.param(WARM_UP + FALL, 0, id="last update"),
    ],
)
def test_a_cosine_rises_in_the_warm_up_and_falls_to_zero(step: int, expected: float) -> None:
    factor = learning_rate_schedule(COSINE, WARM_UP + FALL)
    assert factor(step, 0) == pytest.approx(expected)


def test_a_cosine_by_updates_has_the_same_bits_as_its_definition() -> None:
    """A last bit would change the weights of runs that a seed should repeat."""
    fall = 1233  # updates; any number whose multiples of pi are rounded
    factor = learning_rate_schedule(COSINE, WARM_UP + fall)
    for step in range(1, WARM_UP + 1):
        assert factor(step, 0) == step / WARM_UP
    for step in range(1, fall + 1):
        assert factor(WARM_UP + step, 0) == 0.5 * (1 + math.cos(math.pi * step / fall))


# --- by time: after the warm-up, the number of the update does not matter ------------------


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        pytest.param(0, 1, id="start"),
        pytest.param(0.25, cosine_fall(0.25), id="a quarter"),
        pytest.param(0.5, 0.5, id="half"),
        pytest.param(1, 0, id="end"),
        pytest.param(1.5, 0, id="later than the end"),
    ],
)
@pytest.mark.parametrize("step", [AFTER_WARM_UP, 1000])
def test_a_cosine_by_time_falls_to_zero_at_the_end_of_the_time(
    step: int, time: float, expected: float
) -> None:
    assert learning_rate_schedule(COSINE, None)(step, time) == pytest.approx(expected)


def test_a_cosine_by_time_falls_all_the_time() -> None:
    factor = learning_rate_schedule(COSINE, None)
    factors = [factor(AFTER_WARM_UP, n / 1000) for n in range(1001)]
    assert all(later < earlier for earlier, later in pairwise(factors))


def test_a_cosine_by_time_warms_up_by_updates() -> None:
    """When half of the time is over, and half of the warm-up done."""
    factor = learning_rate_schedule(COSINE, None)
    assert factor(WARM_UP // 2, 0.5) == pytest.approx(0.5 * cosine_fall(0.5))


@pytest.mark.parametrize(
    ("updates", "time", "expected"),
    [
        pytest.param(FALL // 2, 0.25, cosine_fall(0.5), id="updates"),
        pytest.param(FALL // 2, 0.75, cosine_fall(0.75), id="time"),
        pytest.param(FALL, 0.75, 0, id="last update"),
    ],
)
def test_a_cosine_follows_the_limit_that_is_nearer(
    updates: int, time: float, expected: float
) -> None:
    """`updates` are counted from the end of the warm-up."""
    factor = learning_rate_schedule(COSINE, WARM_UP + FALL)
    assert factor(WARM_UP + updates, time) == pytest.approx(expected)
