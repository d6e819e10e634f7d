"""Probabilities that rounding made larger than 1 break no claim of a certificate."""

import math

import pytest

from onmt_entmax.search import SearchConfig, beam_search
from onmt_entmax.search.certificate import Proof
from tests.search.cases import VOCABULARY_SIZE
from tests.search.table_steppers import TableStepper
from tests.search.tables import RoundedUp


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(SearchConfig(beam_size=1, stop="first"), id="the first end"),
        pytest.param(SearchConfig(beam_size=1, n_best=0), id="all outputs"),
    ],
)
def test_a_probability_rounded_above_one_does_not_break_the_bound(config: SearchConfig) -> None:
    model = RoundedUp({(): {2: 1.0}, (2,): {2: 0.5, 3: 0.5}})
    (result,) = beam_search(TableStepper(VOCABULARY_SIZE), [model], config)
    assert result.hypotheses[0].log_prob <= result.certificate.log_bound
    assert result.certificate.level == "optimal"


@pytest.mark.parametrize("dropped", [0, 1], ids=["everything is known", "a prefix was dropped"])
def test_a_probability_of_satisfying_is_at_most_one(dropped: int) -> None:
    proof = Proof(satisfied=math.nextafter(1.0, 2.0), dropped=dropped)
    certificate = proof.certificate(scores=[], attainable=-1.0, has_automaton=True)
    assert certificate.satisfied == (1.0, 1.0)
