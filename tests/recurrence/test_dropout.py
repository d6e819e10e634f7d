"""Dropout factors of all steps, which are drawn at once."""

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.recurrence.dropout import dropout_factors

LIKE = torch.empty(0)
PROBABILITY = 0.3
STEPS, SIZE = 201, 1001  # one random number gives four factors, and the last one of all fewer


@pytest.fixture(scope="module")
def factors() -> Tensor:
    torch.manual_seed(0)
    return dropout_factors((STEPS, SIZE), nn.Dropout(PROBABILITY), LIKE)


def test_factors_are_zero_with_the_probability(factors: Tensor) -> None:
    """The limit is almost five standard deviations of the share of zeros."""
    assert float((factors == 0).float().mean()) == pytest.approx(PROBABILITY, abs=0.005)


def test_factors_are_1_on_average(factors: Tensor) -> None:
    """The limit is almost seven standard deviations of the mean."""
    assert float(factors.mean()) == pytest.approx(1, abs=0.01)


def test_factors_are_zero_or_scaled(factors: Tensor) -> None:
    scale = 1 / (1 - PROBABILITY)
    assert factors.unique().tolist() == pytest.approx([0, scale], rel=1e-4)


def test_evaluation_has_no_factors() -> None:
    assert dropout_factors((3, 2), nn.Dropout(PROBABILITY).eval(), LIKE) is None
