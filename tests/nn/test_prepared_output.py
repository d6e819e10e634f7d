"""The output layer prepared for a search, against `log_entmax` of all scores."""

import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.nn import prepared_output
from onmt_entmax.nn.prepared_output import PreparedOutput
from onmt_entmax.nn.support import Distribution, Support, as_support
from onmt_entmax.sparse import log_entmax
from tests.nn.output_data import layer_and_data


@pytest.fixture(params=[1.0, 1.05, 1.2, 1.5, 2.0, 2.5])
def alpha(request: pytest.FixtureRequest) -> float:
    value: float = request.param
    return value


class Distributions(NamedTuple):
    """The distributions of 20 rows that a search gets, and those that it should get."""

    searched: Distribution
    expected: Tensor
    """Log-probabilities ``(20, V)``, in float64."""


@pytest.fixture(
    params=[
        # Number of tokens, and standard deviation of the states.
        pytest.param((300, 3.0), id="small vocabulary"),
        pytest.param((5000, 40.0), id="small supports"),
        pytest.param((5001, 0.01), id="large supports"),
    ]
)
def distributions(
    request: pytest.FixtureRequest, alpha: float, monkeypatch: pytest.MonkeyPatch
) -> Distributions:
    """Distributions that are computed in chunks of seven rows."""
    vocab, scale = request.param
    monkeypatch.setattr(prepared_output, "_LARGEST_CHUNK", 7 * vocab)
    exact, hidden, _ = layer_and_data(vocab, alpha, scale, rows=20)
    layer, hidden = exact.float(), hidden.detach().float()
    scores = layer.scores(hidden).detach().double()
    searched = PreparedOutput(layer.weight, layer.bias, alpha)(hidden)
    return Distributions(searched, log_entmax(scores, alpha))


def dense(distribution: Distribution) -> Tensor:
    """Return log-probabilities ``(rows, V)`` in float64."""
    if isinstance(distribution, Support):
        distribution = distribution.dense()
    return distribution.double()


def entries_of(distribution: Distribution) -> Support:
    """Return the tokens of positive probability, whichever form a distribution has."""
    return distribution if isinstance(distribution, Support) else as_support(distribution)


def test_a_search_gets_the_probabilities(distributions: Distributions) -> None:
    """The tolerance is for scores of up to a hundred in float32, whose rounding is 1e-5."""
    searched, expected = distributions
    torch.testing.assert_close(dense(searched).exp(), expected.exp(), atol=2e-5, rtol=0)


def test_a_search_gets_the_support(distributions: Distributions) -> None:
    """Rounding decides about tokens next to the threshold, which have hardly any probability."""
    log_probs, expected = dense(distributions.searched), distributions.expected
    differs = (log_probs > -torch.inf) != (expected > -torch.inf)
    assert torch.maximum(log_probs, expected)[differs].exp().sum() < 1e-9


def test_entries_of_a_support_are_in_the_order_of_rows_and_tokens(
    distributions: Distributions,
) -> None:
    support = entries_of(distributions.searched)
    place = support.row * support.vocabulary + support.token
    assert (place.diff() > 0).all()


def test_entries_of_a_support_are_finite(distributions: Distributions) -> None:
    assert entries_of(distributions.searched).log_prob.isfinite().all()


@pytest.mark.parametrize("alpha", [1.0], indirect=True)
def test_softmax_gives_all_tokens(distributions: Distributions) -> None:
    assert isinstance(distributions.searched, Tensor)


@pytest.mark.parametrize("alpha", [1.0, 1.5], indirect=True)
def test_scores_that_are_all_minus_infinity_are_refused(alpha: float) -> None:
    bias = torch.full((50,), -math.inf)
    with pytest.raises(ValueError, match="-inf everywhere"):
        PreparedOutput(torch.randn(50, 8), bias, alpha)(torch.randn(5, 8))


@pytest.mark.parametrize("alpha", [1.0, 1.5], indirect=True)
@pytest.mark.parametrize("state", [math.nan, 3e38], ids=["nan", "overflow"])
def test_a_row_with_invalid_scores_is_not_empty(alpha: float, state: float) -> None:
    """A search would take an empty row for one without possible tokens."""
    hidden = torch.randn(5, 8)
    hidden[2] = state
    searched = PreparedOutput(torch.randn(50, 8), torch.zeros(50), alpha)(hidden)
    support = entries_of(searched)
    assert support.row.unique().tolist() == [0, 1, 2, 3, 4]
    assert not support.log_prob[support.row == 2].isfinite().any()
