"""Scores under a coverage penalty; `penalty_cases.py` has searches under penalties."""

import math

import pytest
import torch

from onmt_entmax.search import Penalties

EACH_ONCE = torch.eye(3)  # attention (steps, source positions)


@pytest.mark.parametrize("name", ["wu", "summary"])
def test_coverage_costs_nothing_where_every_position_is_covered_once(name: str) -> None:
    penalties = Penalties(coverage_penalty=name, beta=2.0)
    assert penalties.score(-1.0, 3, EACH_ONCE) == -1.0


def test_a_position_that_is_not_covered_costs_all() -> None:
    penalties = Penalties(coverage_penalty="wu", beta=1.0)
    assert penalties.score(-1.0, 3, EACH_ONCE[:2]) == -math.inf
