"""The search in bfloat16 loses no token of a support, and its results are those of float32.

The filter computes scores in bfloat16. It keeps each token whose exact score may be within the
window, by a bound of the rounding: less than 1 / (alpha - 1) below the highest score. Only such
tokens can have a probability. Float32 then computes their scores anew.
"""

import math
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onmt_entmax.nn import bf16_filter
from onmt_entmax.nn.bf16_filter import Bfloat16Filter, find_by_bfloat16
from onmt_entmax.nn.prepared_output import PreparedOutput
from onmt_entmax.nn.support import Support
from onmt_entmax.sparse import log_entmax

Layer = tuple[Tensor, Tensor, float]
"""Weights ``(vocabulary, hidden)``, biases ``(vocabulary,)`` and alpha."""


@pytest.fixture(autouse=True)
def small_layers_are_filtered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the filter take small layers too, and run on every processor."""
    monkeypatch.setattr(bf16_filter, "_LEAST_WEIGHTS", 0)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)


def filter_of(layer: Layer) -> Bfloat16Filter:
    prepared = find_by_bfloat16(*layer)
    assert prepared is not None
    return prepared


# --- supports --------------------------------------------------------------------------------

VOCABULARY, ROWS = 6000, 160


def layer_with_close_tokens(size: int, alpha: float) -> Layer:
    """Return a layer whose norms vary widely, and some of whose tokens differ by one rounding."""
    weight = torch.randn(VOCABULARY, size) * torch.rand(VOCABULARY, 1) * 3 / size**0.5
    weight[1::2] = weight[::2] + 2.0**-9 * weight[::2].abs()
    return weight, torch.randn(VOCABULARY), alpha


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
    weight, bias, _ = layer
    hidden = torch.tanh(torch.randn(ROWS, size)) * scale
    assert filter_of(layer)(hidden) is not None  # so the layer takes it
    support = PreparedOutput(*layer)(hidden)
    assert isinstance(support, Support)
    exact = log_entmax(hidden.double() @ weight.double().t() + bias.double(), alpha)
    torch.testing.assert_close(support.dense().double().exp(), exact.exp(), rtol=0, atol=1e-4)


# --- tokens at the error bound ---------------------------------------------------------------

SIZE = 128
LOW, HIGH = 300, 700  # two tokens of 1,024
LOST = 0.99 * 2.0**-8  # what rounding takes from 1.5 + LOST: just under half a unit of bfloat16
SIGNS = torch.tensor([1.0, -1.0]).repeat(SIZE // 2)  # orthogonal to a vector of ones


class Rounded(NamedTuple):
    """A state and the weights of the tokens LOW and HIGH, each ``(SIZE,)``.

    Something of them is rounded to bfloat16: the score of LOW falls and that of HIGH rises.
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
    """Rounding lowers token LOW and raises token HIGH by about one term of the bound each.

    Exactly, HIGH is 0.98 of the window above LOW, and all others are far below.
    """
    window = 1 / (alpha - 1)
    state, low, high = rounded
    weight = torch.zeros(1024, SIZE)
    weight[LOW], weight[HIGH] = low, high
    bias = torch.full((1024,), -16.0 * window)
    exact = (weight[[LOW, HIGH]].double() @ state.double()).float()
    bias[[LOW, HIGH]] = -exact - torch.tensor([0.98 * window, 0.0])
    support = filter_of((weight / scale, bias, alpha))(state.unsqueeze(0) * scale)
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
    assert filter_of((torch.randn(512, 16), torch.zeros(512), 1.5))(hidden) is None


def test_softmax_is_left_to_float32() -> None:
    assert find_by_bfloat16(torch.randn(512, 16), torch.zeros(512), 1.0) is None


# --- any magnitude ---------------------------------------------------------------------------

SMALLEST = 2.0**-126  # normal number of float32 and bfloat16


class Flushing:
    """Products of processors that read and write subnormal numbers as 0, one sum after another."""

    def __init__(self, weight: Tensor, dtype: torch.dtype) -> None:
        self.weight = self.flushed(weight.to(dtype).float())

    def flushed(self, numbers: Tensor) -> Tensor:
        return numbers.where(numbers.abs() >= SMALLEST, 0.0)

    def __call__(self, x: Tensor) -> Tensor:
        """Return products ``(rows, tokens)`` of states ``(rows, hidden)``."""
        x = self.flushed(x.bfloat16().float())
        total = x.new_zeros(len(x), len(self.weight))
        for column in range(x.size(1)):
            product = self.flushed(x[:, column, None] * self.weight[:, column])
            total = self.flushed(total + product)
        return self.flushed(total.bfloat16().float())


@pytest.fixture(params=["processor", "flushing"])
def products(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let products be those of this processor, and those of others, wherever the test runs."""
    monkeypatch.setattr(bf16_filter, "_MOST_CANDIDATES", 1.0)
    if request.param == "flushing":
        monkeypatch.setattr(bf16_filter, "PreparedWeight", Flushing)


def exact_scores(weight: Tensor, bias: Tensor, state: Tensor) -> list[float]:
    """Return the score of each token, rounded once: products of float32 are exact in 64 bits."""
    scores = []
    for token_weight, token_bias in zip(weight.tolist(), bias.tolist(), strict=True):
        products = (a * b for a, b in zip(token_weight, state.tolist(), strict=True))
        scores.append(math.fsum([*products, token_bias]))
    return scores


def lost_tokens(layer: Layer, state: Tensor) -> set[int] | None:
    """Return the tokens within the window of exact scores that the filter does not keep.

    None if the filter leaves the state to float32.
    """
    candidates = filter_of(layer).candidates(state.unsqueeze(0))
    if candidates is None:
        return None
    weight, bias, alpha = layer
    scores = exact_scores(weight, bias, state)
    least = max(scores) - 1 / (alpha - 1)
    return {token for token, score in enumerate(scores) if score > least} - {*candidates.tolist()}


@st.composite
def layers_and_states(draw: st.DrawFn) -> tuple[Layer, Tensor]:
    """Draw a layer and a state of any magnitude, whose products are all of about one magnitude.

    A number of the state is of the order ``2 ** power``, and its weights are of
    ``2 ** (shift - power)``. So products, biases and the window are of the order ``2 ** shift``.
    """
    tokens, size = draw(st.integers(2, 6)), draw(st.integers(1, 5))
    shift = draw(st.sampled_from([-126, -30, 0, 0, 30]))
    digits = st.one_of(st.just(0.0), st.floats(-2, 2, width=32))
    states, rows = [], [[] for _ in range(tokens)]
    for _ in range(size):
        power = draw(st.one_of(st.integers(-149, 127), st.integers(118, 127)))
        power *= draw(st.sampled_from([1, -1]))
        states.append(draw(digits) * 2.0**power)
        for row in rows:
            row.append(draw(digits) * 2.0 ** (shift - power + draw(st.integers(-4, 4))))
    bias = draw(st.lists(digits, min_size=tokens, max_size=tokens))
    alpha = 1 + 2.0 ** (draw(st.integers(0, 8)) - shift)
    large = torch.finfo(torch.float32).max
    exact = (torch.tensor(numbers, dtype=torch.float64) for numbers in (states, rows, bias))
    state, weight, biases = (numbers.clamp(-large, large).float() for numbers in exact)
    return (weight, biases * 2.0**shift, alpha), state


@pytest.mark.usefixtures("products")
def test_no_token_is_lost_at_any_magnitude() -> None:
    """Subnormal weights, states, products and sums; and such as overflow."""
    filtered = 0  # states that were not left to float32

    @given(layers_and_states())
    def search(layer_and_state: tuple[Layer, Tensor]) -> None:
        nonlocal filtered
        tokens = lost_tokens(*layer_and_state)
        assert not tokens
        filtered += tokens is not None

    search()
    assert filtered > 5


# Weights of token 1, a state, and its score. Token 0 has half of that as its bias.
SCORES_THAT_PRODUCTS_LOSE = {
    "subnormal weights": ([1.1e-38], [1e38], 1.1),
    "subnormal states": ([1e38], [1.1e-38], 1.1),
    "products that underflow": ([2.0**-70] * 4096, [2.0**-70] * 4096, 2.0**-128),
    "a sum that rounds": ([4096.0, 1.0, -4096.0], [4096.0, 1.0, 4096.0], 1.0),
}


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize(
    ("weights", "state", "score"),
    SCORES_THAT_PRODUCTS_LOSE.values(),
    ids=list(SCORES_THAT_PRODUCTS_LOSE),
)
def test_a_score_that_a_product_loses_is_within_the_bound(
    weights: list[float], state: list[float], score: float
) -> None:
    """The window is an eighth of the score, so only token 1 is in the support."""
    weight, bias = torch.tensor([[0.0] * len(weights), weights]), torch.tensor([score / 2, 0.0])
    assert lost_tokens((weight, bias, 1 + 8 / score), torch.tensor(state)) == set()


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize(
    ("weights", "state"),
    [
        pytest.param([-1.0, -1.0, 1.0, 1.0], [2e38] * 4, id="a score of 0, by sums of -4e38"),
        pytest.param([0.1, 0.0, 0.0, 0.0], [3.4e38, 0.0, 0.0, 0.0], id="rounded to infinity"),
    ],
)
def test_numbers_that_overflow_are_left_to_float32(
    weights: list[float], state: list[float]
) -> None:
    weight = torch.tensor([weights, [-5e-9, 0.0, 0.0, 0.0]])
    assert lost_tokens((weight, torch.zeros(2), 2.0), torch.tensor(state)) is None
