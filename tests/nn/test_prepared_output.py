"""The search form of the output layer, against `log_entmax` of all scores."""

import math

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


@pytest.fixture(
    params=[(300, 3.0), (5000, 40.0), (5001, 0.01)],
    ids=["small vocabulary", "small supports", "large supports"],
)
def distributions(
    request: pytest.FixtureRequest, alpha: float, monkeypatch: pytest.MonkeyPatch
) -> tuple[Distribution, Tensor]:
    """Distributions of a search, in chunks of seven rows, and of `log_entmax` in float64."""
    vocab, scale = request.param
    monkeypatch.setattr(prepared_output, "_LARGEST_CHUNK", 7 * vocab)
    exact, hidden, _ = layer_and_data(vocab, alpha, scale, rows=20)
    layer, hidden = exact.float(), hidden.detach().float()
    searched = PreparedOutput(layer.weight, layer.bias, alpha)(hidden)
    return searched, log_entmax(layer.scores(hidden).detach().double(), alpha)


def dense(distribution: Distribution) -> Tensor:
    """Return log-probabilities ``(rows, V)`` in float64."""
    if isinstance(distribution, Support):
        distribution = distribution.dense()
    return distribution.double()


def test_a_search_gets_the_log_probabilities(distributions: tuple[Distribution, Tensor]) -> None:
    searched, expected = distributions
    torch.testing.assert_close(dense(searched).exp(), expected.exp(), atol=2e-5, rtol=0)


def test_a_search_gets_the_support(distributions: tuple[Distribution, Tensor]) -> None:
    """Up to rounding: what differs has no probability to speak of."""
    log_probs, expected = dense(distributions[0]), distributions[1]
    differs = (log_probs > -torch.inf) != (expected > -torch.inf)
    assert torch.maximum(log_probs, expected)[differs].exp().sum() < 1e-9


def test_entries_of_a_support_are_in_order_and_finite(
    distributions: tuple[Distribution, Tensor],
) -> None:
    searched, _ = distributions
    support = searched if isinstance(searched, Support) else as_support(searched)
    place = support.row * support.vocabulary + support.token
    assert (place.diff() > 0).all()
    assert support.log_prob.isfinite().all()


@pytest.mark.parametrize("alpha", [1.0], indirect=True)
def test_softmax_gives_all_tokens(distributions: tuple[Distribution, Tensor]) -> None:
    assert isinstance(distributions[0], Tensor)


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
    support = searched if isinstance(searched, Support) else as_support(searched)
    assert support.row.unique().tolist() == [0, 1, 2, 3, 4]
    assert not support.log_prob[support.row == 2].isfinite().any()
