"""The filter in bfloat16 loses no token of a support, and results are those of float32.

The window is 1 / (alpha - 1): only tokens whose scores are less than that below the largest can
have a positive probability. The filter computes scores in bfloat16, and keeps each token whose
exact score may be within the window, by a bound of the rounding. The scores of these tokens are
then computed again in float32.
"""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.nn.bf16_filter import Bfloat16Filter
from onmt_entmax.nn.prepared_output import PreparedOutput
from onmt_entmax.nn.support import Support
from onmt_entmax.sparse import log_entmax
from tests.nn.filtered_layers import Layer, filter_of, filter_small_layers


@pytest.fixture(autouse=True)
def small_layers_are_filtered(monkeypatch: pytest.MonkeyPatch) -> None:
    filter_small_layers(monkeypatch)


# --- supports --------------------------------------------------------------------------------

VOCABULARY, ROWS = 6000, 160


def layer_with_close_tokens(size: int, alpha: float) -> Layer:
    """Return a layer whose norms vary widely, and some of whose tokens differ by one rounding."""
    weight = torch.randn(VOCABULARY, size) * torch.rand(VOCABULARY, 1) * 3 / size**0.5
    weight[1::2] = weight[::2] + 2.0**-9 * weight[::2].abs()
    return Layer(weight, torch.randn(VOCABULARY), alpha)


of_all_alphas = pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 2.5])


@of_all_alphas
@pytest.mark.parametrize(
    ("size", "scale"),
    [
        pytest.param(64, 30.0, id="few large numbers"),
        pytest.param(500, 8.0, id="many small numbers"),
    ],
)
def test_supports_are_those_of_exact_scores(alpha: float, size: int, scale: float) -> None:
    torch.manual_seed(size)
    layer = layer_with_close_tokens(size, alpha)
    hidden = torch.tanh(torch.randn(ROWS, size)) * scale
    assert filter_of(layer).supports(hidden) is not None  # so that `PreparedOutput` uses it
    support = PreparedOutput(*layer)(hidden)
    assert isinstance(support, Support)
    scores = hidden.double() @ layer.weight.double().t() + layer.bias.double()
    exact = log_entmax(scores, alpha)
    torch.testing.assert_close(support.dense().double().exp(), exact.exp(), rtol=0, atol=1e-4)


# --- tokens at the error bound ---------------------------------------------------------------

SIZE = 128
LOW, HIGH = 300, 700  # two tokens of 1,024
LOST = 0.99 * 2.0**-8  # rounding takes it from 1.5 + LOST: just under half a unit of bfloat16
SIGNS = torch.tensor([1.0, -1.0]).repeat(SIZE // 2)  # orthogonal to a vector of ones


class Rounded(NamedTuple):
    """A state and the weights of the tokens LOW and HIGH, each ``(SIZE,)``.

    Rounding to bfloat16 lowers the score of LOW and raises that of HIGH.
    """

    state: Tensor
    low: Tensor
    high: Tensor


def rounded_state() -> Rounded:
    """The state rounds to 1.5 SIGNS, to which both weights are orthogonal.

    So both products are rounded to 0; exactly, that of LOW is positive and that of HIGH negative.
    """
    ones = torch.ones(SIZE)
    return Rounded(1.5 * SIGNS + LOST, low=16 * ones, high=-16 * ones)


def rounded_weights() -> Rounded:
    """The weights round to 1.5 SIGNS, to which the state is orthogonal: both products are 0."""
    return Rounded(16 * torch.ones(SIZE), low=1.5 * SIGNS + LOST, high=1.5 * SIGNS - LOST)


def rounded_results() -> Rounded:
    """The products 257 and 259 round to 256 and 260."""
    state, low, high = torch.zeros(3, SIZE)
    state[:2] = low[:2] = torch.tensor([16.0, 1.0])
    high[:2] = torch.tensor([16.0, 3.0])
    return Rounded(state, low, high)


@of_all_alphas
@pytest.mark.parametrize(
    "rounded",
    [
        pytest.param(rounded_state(), id="rounded state"),
        pytest.param(rounded_weights(), id="rounded weights"),
        pytest.param(rounded_results(), id="rounded results"),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 2.0**-80])  # squares of such norms underflow
def test_tokens_at_the_error_bound_are_found(scale: float, rounded: Rounded, alpha: float) -> None:
    """Rounding lowers the score of token LOW and raises that of token HIGH by a term of the bound.

    The exact score of HIGH is 0.98 of the window above that of LOW, and all others are far below.
    """
    window = 1 / (alpha - 1)
    state, low, high = rounded
    weight = torch.zeros(1024, SIZE)
    weight[LOW], weight[HIGH] = low, high
    bias = torch.full((1024,), -16.0 * window)
    exact = (weight[[LOW, HIGH]].double() @ state.double()).float()
    bias[[LOW, HIGH]] = -exact - torch.tensor([0.98 * window, 0.0])
    layer = Layer(weight / scale, bias, alpha)
    support = filter_of(layer).supports(state.unsqueeze(0) * scale)
    assert support is not None
    assert support.token.tolist() == [LOW, HIGH]


# --- what is left to float32 -----------------------------------------------------------------


@pytest.mark.parametrize(
    "hidden",
    [
        pytest.param(torch.full((2, 16), torch.nan), id="nan"),
        pytest.param(torch.full((2, 16), torch.inf), id="infinity"),
        pytest.param(torch.zeros(0, 16), id="no rows"),
        pytest.param(torch.zeros(2, 16), id="dense supports"),
    ],
)
def test_states_that_cannot_be_filtered_are_left_to_float32(hidden: Tensor) -> None:
    layer = Layer(torch.randn(512, 16), torch.zeros(512), 1.5)
    assert filter_of(layer).supports(hidden) is None


def test_softmax_is_left_to_float32() -> None:
    assert Bfloat16Filter.if_faster(torch.randn(512, 16), torch.zeros(512), 1.0) is None
