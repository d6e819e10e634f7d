"""The coverage penalty: its two formulas, and outputs whose penalty is infinite.

`penalty_cases.py` has searches under other penalties.
"""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from onmt_entmax.search import Penalties, SearchConfig, Step, beam_search
from tests.search.cases import COVERED, VOCABULARY_SIZE
from tests.search.table_steppers import TableStepper
from tests.search.tables import EOS, Fixed

EACH_ONCE = torch.eye(3)  # attention (steps, source positions)
# The sums of the attention to the positions are 0.5, 1 and 1.5.
UNEVEN = torch.tensor([[0.25, 0.25, 0.5], [0.0, 0.5, 0.5], [0.25, 0.25, 0.5]])
LOG_PROB = -1.0


def score(name: str, attention: torch.Tensor, beta: float = 2.0) -> float:
    """Return the score of an output of probability exp(`LOG_PROB`) under a coverage penalty."""
    penalties = Penalties(coverage_penalty=name, beta=beta)
    return penalties.score(LOG_PROB, tokens=len(attention) - 1, attention=attention)


@pytest.mark.parametrize("name", ["wu", "summary"])
def test_coverage_costs_nothing_where_every_position_is_covered_once(name: str) -> None:
    assert score(name, EACH_ONCE) == LOG_PROB


def test_wu_coverage_costs_for_positions_that_are_covered_less_than_once() -> None:
    assert score("wu", UNEVEN, beta=2.0) == pytest.approx(LOG_PROB + 2.0 * math.log(0.5))


def test_summary_coverage_costs_for_positions_that_are_covered_more_than_once() -> None:
    assert score("summary", UNEVEN, beta=2.0) == pytest.approx(LOG_PROB - 2.0 * (1.5 - 1))


def test_a_position_that_is_not_covered_costs_all() -> None:
    assert score("wu", EACH_ONCE[:2]) == -math.inf


class AttendsToNothing(TableStepper):
    """Attends to no source position, so the coverage penalty of every output is infinite."""

    def step(self, state: Any, tokens: torch.Tensor) -> Step:
        step = super().step(state, tokens)
        return replace(step, attention=torch.zeros_like(step.attention))


@pytest.mark.parametrize(("n_best", "tokens"), [(1, [(3,)]), (3, [(3,), (2,), ()])])
def test_among_outputs_of_infinite_penalty_the_more_probable_is_first(
    n_best: int, tokens: list[tuple[int, ...]]
) -> None:
    model = Fixed({(): {EOS: 0.2, 2: 0.3, 3: 0.5}})
    config = SearchConfig(n_best=n_best, max_length=3, penalties=COVERED)
    (result,) = beam_search(AttendsToNothing(VOCABULARY_SIZE, attention=True), [model], config)
    assert [hypothesis.tokens for hypothesis in result.hypotheses] == tokens
