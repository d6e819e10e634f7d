"""The search in bfloat16 loses no token of a support, and its results are those of float32."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onmt_entmax.nn import bf16_filter
from onmt_entmax.nn.bf16_filter import find_by_bfloat16
from onmt_entmax.nn.prepared_output import PreparedOutput
from onmt_entmax.nn.support import Support
from onmt_entmax.sparse import log_entmax


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bf16_filter, "_LEAST_WEIGHTS", 0)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)


def searched(weight: Tensor, bias: Tensor, alpha: float, hidden: Tensor) -> Support | None:
    return find_by_bfloat16(weight, bias, alpha)(hidden)


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 2.5])
@pytest.mark.parametrize(("size", "scale"), [(64, 30.0), (500, 8.0)])
def test_supports_are_those_of_exact_scores(alpha: float, size: int, scale: float) -> None:
    """Norms vary widely, and some tokens differ by exactly one rounding."""
    torch.manual_seed(size)
    weight = torch.randn(6000, size) * torch.rand(6000, 1) * 3 / size**0.5
    weight[1::2] = weight[::2] + 2.0**-9 * weight[::2].abs()
    hidden, bias = torch.tanh(torch.randn(160, size)) * scale, torch.randn(6000)
    assert searched(weight, bias, alpha, hidden) is not None
    found = PreparedOutput(weight, bias, alpha)(hidden)
    assert isinstance(found, Support)
    exact = log_entmax(hidden.double() @ weight.double().t() + bias.double(), alpha)
    torch.testing.assert_close(found.dense().double().exp(), exact.exp(), rtol=0, atol=1e-4)


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("term", ["state", "weights", "result"])
@pytest.mark.parametrize("scale", [1.0, 2.0**-80])  # squares of such norms underflow
def test_tokens_at_the_error_bound_are_found(scale: float, term: str, alpha: float) -> None:
    """Rounding lowers token 300 and raises token 700 by about one term of the bound each.

    Exactly, token 700 is 0.98 of the window above token 300, and all others are far below.
    """
    n, level, lost = 128, 1 / (alpha - 1), 0.99 * 2.0**-8  # just under half a unit of 1.5
    sign, ones = torch.ones(n), torch.ones(n)
    sign[1::2] = -1
    hidden, weight = torch.zeros(1, n), torch.zeros(1024, n)
    bias = torch.full((1024,), -16.0 * level)
    if term == "state":  # 1.5 s + lost rounds to 1.5 s, orthogonal to both tokens
        hidden[0], weight[300], weight[700] = 1.5 * sign + lost, 16 * ones, -16 * ones
    elif term == "weights":
        hidden[0], weight[300], weight[700] = 16 * ones, 1.5 * sign + lost, 1.5 * sign - lost
    else:  # 257 rounds to 256, and 259 to 260
        hidden[0, :2] = torch.tensor([16.0, 1.0])
        weight[300, :2], weight[700, :2] = torch.tensor([[16.0, 1.0], [16.0, 3.0]])
    exact = weight[[300, 700]].double() @ hidden[0].double()
    bias[[300, 700]] = -exact.float() - torch.tensor([0.98 * level, 0.0])
    found = searched(weight / scale, bias, alpha, hidden * scale)
    assert found
    assert found.token.tolist() == [300, 700]


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_states_that_are_not_finite_are_left_to_float32(value: float) -> None:
    """So are no rows at all, dense supports and softmax."""
    weight, bias = torch.randn(512, 16), torch.zeros(512)
    for hidden in (torch.full((2, 16), value), torch.zeros(0, 16), torch.zeros(2, 16)):
        assert searched(weight, bias, 1.5, hidden) is None
    assert find_by_bfloat16(weight, bias, 1.0) is None


SMALLEST = 2.0**-126  # normal number of float32 and bfloat16


class Flushing:
    """Products of processors that read and write subnormal numbers as 0, one sum after another."""

    def __init__(self, weight: Tensor, dtype: torch.dtype) -> None:
        self.weight = self.flushed(weight.to(dtype).float())

    def flushed(self, numbers: Tensor) -> Tensor:
        return numbers.where(numbers.abs() >= SMALLEST, 0.0)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.flushed(x.bfloat16().float())
        total = x.new_zeros(len(x), len(self.weight))
        for place in range(x.size(1)):
            total = self.flushed(total + self.flushed(x[:, place, None] * self.weight[:, place]))
        return self.flushed(total.bfloat16().float())


@pytest.fixture(params=["processor", "flushing"])
def products(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this processor; and those of others, wherever the test runs."""
    monkeypatch.setattr(bf16_filter, "_MOST_CANDIDATES", 1.0)
    if request.param == "flushing":
        monkeypatch.setattr(bf16_filter, "PreparedWeight", Flushing)


def missing(weight: Tensor, bias: Tensor, alpha: float, hidden: Tensor) -> set[int] | None:
    """Return the tokens within the window of exact scores that are not among the candidates."""
    found = find_by_bfloat16(weight, bias, alpha).candidates(hidden)
    if found is None:
        return None
    scores = []
    for row, own in zip(
        weight.tolist(), bias.tolist(), strict=True
    ):  # products are exact in 64 bits
        scores.append(
            math.fsum([*(a * b for a, b in zip(row, hidden[0].tolist(), strict=True)), own])
        )
    least = max(scores) - 1 / (alpha - 1)
    return {token for token, score in enumerate(scores) if score > least} - {*found.tolist()}


@st.composite
def layers(draw: st.DrawFn) -> tuple[Tensor, Tensor, float, Tensor]:
    """Draw weights, biases, alpha and a state of any magnitude, whose products are of one."""
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
    tensors = [torch.tensor(each, dtype=torch.float64) for each in ([states], rows, bias)]
    state, weight, biases = (each.clamp(-large, large).float() for each in tensors)
    return weight, biases * 2.0**shift, alpha, state


@pytest.mark.usefixtures("products")
def test_no_token_is_lost_at_any_magnitude() -> None:
    """Subnormal weights, states, products and sums; and such as overflow."""
    filtered = 0

    @given(layers())
    def search(layer: tuple[Tensor, Tensor, float, Tensor]) -> None:
        nonlocal filtered
        lost = missing(*layer)
        assert not lost
        filtered += lost is not None

    search()
    assert filtered > 5


# Weights of token 1, states, and its score. Token 0 has half of that as its bias.
LOST = {
    "subnormal weights": ([1.1e-38], [1e38], 1.1),
    "subnormal states": ([1e38], [1.1e-38], 1.1),
    "products that underflow": ([2.0**-70] * 4096, [2.0**-70] * 4096, 2.0**-128),
    "a sum that rounds": ([4096.0, 1.0, -4096.0], [4096.0, 1.0, 4096.0], 1.0),
}


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("case", LOST.values(), ids=list(LOST))
def test_a_score_that_a_product_loses_is_within_the_bound(case) -> None:
    own, state, score = case
    weight, bias = torch.tensor([[0.0] * len(own), own]), torch.tensor([score / 2, 0.0])
    assert missing(weight, bias, 1 + 8 / score, torch.tensor([state])) == set()


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize(
    ("own", "state"),
    [
        ([-1.0, -1.0, 1.0, 1.0], [2e38] * 4),  # a score of 0, through sums of -4e38
        ([0.1, 0.0, 0.0, 0.0], [3.4e38, 0.0, 0.0, 0.0]),  # rounded to infinity
    ],
)
def test_numbers_that_overflow_are_left_to_float32(own: list[float], state: list[float]) -> None:
    weight = torch.tensor([own, [-5e-9, 0.0, 0.0, 0.0]])
    assert missing(weight, torch.zeros(2), 2.0, torch.tensor([state])) is None
