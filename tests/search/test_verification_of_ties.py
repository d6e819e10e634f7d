"""`verify` of hypotheses whose scores tie, or nearly do: float64 decides whether they are ordered.

`test_verification.py` has all other claims.
"""

from dataclasses import replace

import pytest

from onmt_entmax.search import (
    Hypothesis,
    Penalties,
    Request,
    SearchConfig,
    beam_search,
    verify,
)
from onmt_entmax.search.config import Stop
from tests.search.table_steppers import TableStepper
from tests.search.tables import EOS, Fixed

# (2,) and (3,) tie, with 0.35 * 0.9 each, and so do (2, 5) and (3, 6), with 0.35 * 0.1.
TIE = Fixed(
    {
        (): {EOS: 0.1, 2: 0.35, 3: 0.35, 4: 0.2},
        (2,): {EOS: 0.9, 5: 0.1},
        (3,): {EOS: 0.9, 6: 0.1},
    }
)
OF_THE_OTHER = {2: 3, 3: 2, 5: 6, 6: 5}
"""The tokens of an output, and those of the one with which it ties."""


@pytest.mark.parametrize("reward", [0.0, 0.1])
@pytest.mark.parametrize("stop", ["exhaustive", "optimal"])
@pytest.mark.parametrize("n_best", [1, 2, 6, 0])
@pytest.mark.parametrize("beam_size", [2, 5])
def test_equal_scores_may_be_in_any_order(
    beam_size: int, n_best: int, stop: Stop, reward: float
) -> None:
    """The result has each output in the place of the one with which it ties."""
    penalties = Penalties(length_reward=reward)
    config = SearchConfig(
        beam_size=beam_size, n_best=n_best, max_length=3, stop=stop, penalties=penalties
    )

    def swapped(hypothesis: Hypothesis) -> Hypothesis:
        tokens = tuple(OF_THE_OTHER.get(token, token) for token in hypothesis.tokens)
        return replace(hypothesis, tokens=tokens)

    (result,) = beam_search(TableStepper(7), [TIE], config)
    assert result.certificate.proven
    other = replace(result, hypotheses=tuple(map(swapped, result.hypotheses)))
    assert verify(TableStepper(7), Request([TIE]), other, config).agrees


@pytest.mark.parametrize("n_best", [1, 2])
@pytest.mark.parametrize("stop", ["exhaustive", "optimal"])
@pytest.mark.parametrize(
    ("model", "agrees"),
    [
        pytest.param({EOS: 0.2, 2: 0.4, 3: 0.4}, True, id="a tie"),
        pytest.param({EOS: 0.2, 2: 0.4 - 1e-7, 3: 0.4 + 1e-7}, False, id="nearly a tie"),
        pytest.param({EOS: 0.6, 3: 0.4}, False, id="excluded, another is the best"),
        pytest.param({EOS: 0.2, 3: 0.8}, False, id="excluded, its rival has all"),
    ],
)
def test_a_tie_is_confirmed_if_it_is_one_in_float64(
    n_best: int, stop: Stop, model: dict[int, float], agrees: bool
) -> None:
    """The result has (2,) before (3,), which tie in its model; another one stands for float64."""
    config = SearchConfig(beam_size=5, n_best=n_best, stop=stop)
    (result,) = beam_search(TableStepper(7), [Fixed({(): {EOS: 0.2, 2: 0.4, 3: 0.4}})], config)
    assert result.hypotheses[0].tokens == (2,)
    assert verify(TableStepper(7), Request([Fixed({(): model})]), result, config).agrees is agrees
