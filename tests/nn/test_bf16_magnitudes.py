"""The filter in bfloat16 loses no token of a support, whatever the magnitude of its numbers.

Some processors flush subnormal numbers: they read and write them as 0. Each test runs with the
products of this processor, and with those of a simulated one that flushes.
"""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onmt_entmax.nn import bf16_filter
from tests.nn.filtered_layers import Layer, filter_of, filter_small_layers

SMALLEST = 2.0**-126  # the smallest normal number of float32 and of bfloat16


class Flushing:
    """`PreparedWeight` of a processor that flushes subnormal numbers, also after each addition.

    Args:
        weight: ``(tokens, hidden)``.
        dtype: the type of the factors, `torch.bfloat16`.
    """

    def __init__(self, weight: Tensor, dtype: torch.dtype) -> None:
        self.weight = self.flushed(weight.to(dtype).float())

    def flushed(self, numbers: Tensor) -> Tensor:
        """Return numbers with 0 for subnormal ones."""
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
    """Let products be those of this processor, or of one that flushes subnormal numbers to 0."""
    filter_small_layers(monkeypatch)
    monkeypatch.setattr(bf16_filter, "_MOST_CANDIDATES", 1.0)
    if request.param == "flushing":
        monkeypatch.setattr(bf16_filter, "PreparedWeight", Flushing)


def exact_scores(layer: Layer, state: Tensor) -> list[float]:
    """Return the score of each token, rounded once: products of float32 are exact in 64 bits."""
    scores = []
    for token_weight, token_bias in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True):
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
    scores = exact_scores(layer, state)
    least = max(scores) - 1 / (layer.alpha - 1)
    return {token for token, score in enumerate(scores) if score > least} - {*candidates.tolist()}


@st.composite
def layers_and_states(draw: st.DrawFn) -> tuple[Layer, Tensor]:
    """Draw a layer and a state of any magnitude, whose products are all of about one magnitude.

    A number of the state is of the order ``2 ** power``, and its weights are of
    ``2 ** (shift - power)``. So products, biases and the window are of the order ``2 ** shift``.
    """
    tokens, size = draw(st.integers(2, 6)), draw(st.integers(1, 5))
    # Float32 has normal numbers from 2^-126 on; at 2^0, scores and window have common magnitudes.
    shift = draw(st.sampled_from([-126, -30, 0, 0, 30]))
    digits = st.one_of(st.just(0.0), st.floats(-2, 2, width=32))
    states, rows = [], [[] for _ in range(tokens)]
    for _ in range(size):
        # Any number of float32, also subnormal ones; often one that is nearly too large or small.
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
    return Layer(weight, biases * 2.0**shift, alpha), state


@pytest.mark.usefixtures("products")
def test_no_token_is_lost_at_any_magnitude() -> None:
    """Weights, states, products and sums may be subnormal, or overflow."""
    filtered = 0  # states that were not left to float32

    @given(layers_and_states())
    def search(layer_and_state: tuple[Layer, Tensor]) -> None:
        nonlocal filtered
        tokens = lost_tokens(*layer_and_state)
        assert not tokens
        filtered += tokens is not None

    search()
    assert filtered > 5  # or the test would show nothing


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize(
    ("weights", "state", "score"),
    [
        pytest.param([1.1e-38], [1e38], 1.1, id="subnormal weights"),
        pytest.param([1e38], [1.1e-38], 1.1, id="subnormal states"),
        pytest.param([2.0**-70] * 4096, [2.0**-70] * 4096, 2.0**-128, id="products that underflow"),
        pytest.param([4096.0, 1.0, -4096.0], [4096.0, 1.0, 4096.0], 1.0, id="a sum that rounds"),
    ],
)
def test_a_score_that_a_product_loses_is_within_the_bound(
    weights: list[float], state: list[float], score: float
) -> None:
    """Token 1 has the score, and token 0 half of it, by its bias alone.

    The window is an eighth of the score, so only token 1 is in the support.
    """
    weight, bias = torch.tensor([[0.0] * len(weights), weights]), torch.tensor([score / 2, 0.0])
    assert lost_tokens(Layer(weight, bias, 1 + 8 / score), torch.tensor(state)) == set()


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
    assert lost_tokens(Layer(weight, torch.zeros(2), 2.0), torch.tensor(state)) is None
