"""Which probabilities of a report and of models differ by rounding alone.

Rounding changes the log-probability of a hypothesis by less than 1e-3. It may exclude a token at
the edge of the support, or admit it, but only one whose probability is below 1e-6.
"""

import math

import pytest

from onmt_entmax.cli.report_drawings import is_rounding

HALF = math.log(0.5)
AT_THE_EDGE, WITHIN = 3e-7, 3e-6  # probabilities of tokens that rounding can exclude, and cannot
EXCLUDED = -math.inf


@pytest.mark.parametrize(
    ("reported", "token_log_probs"),
    [
        pytest.param(0.25 * 1.0005, [HALF, HALF], id="0.05 % more"),
        pytest.param(0.0, [HALF, math.log(AT_THE_EDGE)], id="excluded by the report"),
        pytest.param(0.5 * AT_THE_EDGE, [HALF, EXCLUDED], id="excluded by the model"),
        pytest.param(0.0, [math.log(1e-5)] * 100, id="underflow"),
    ],
)
def test_rounding_explains_a_small_difference(
    reported: float, token_log_probs: list[float]
) -> None:
    assert is_rounding(reported, token_log_probs)


@pytest.mark.parametrize(
    ("reported", "token_log_probs"),
    [
        pytest.param(0.25 * 1.002, [HALF, HALF], id="0.2 % more"),
        pytest.param(0.0, [HALF, math.log(WITHIN)], id="excluded by the report"),
        pytest.param(0.5 * WITHIN, [HALF, EXCLUDED], id="excluded by the model"),
        pytest.param(0.5, [math.nan, HALF], id="weights that are not finite"),
    ],
)
def test_rounding_does_not_explain_other_differences(
    reported: float, token_log_probs: list[float]
) -> None:
    assert not is_rounding(reported, token_log_probs)
