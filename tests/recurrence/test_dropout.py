"""Dropout factors of all steps, which are drawn at once."""

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.recurrence.dropout import dropout_factors

LIKE = torch.empty(0)


@pytest.fixture(scope="module")
def factors() -> Tensor:
    """Factors of probability 0.3; one random number gives four, and the last one fewer."""
    torch.manual_seed(0)
    return dropout_factors((201, 1001), nn.Dropout(0.3), LIKE)


def test_factors_are_zero_with_the_probability(factors: Tensor) -> None:
    assert float((factors == 0).float().mean()) == pytest.approx(0.3, abs=0.005)


def test_factors_are_1_on_average(factors: Tensor) -> None:
    assert float(factors.mean()) == pytest.approx(1, abs=0.01)


def test_factors_are_zero_or_scaled(factors: Tensor) -> None:
    assert factors.unique().tolist() == pytest.approx([0, 1 / 0.7], rel=1e-4)


def test_evaluation_has_no_factors() -> None:
    assert dropout_factors((3, 2), nn.Dropout(0.3).eval(), LIKE) is None
