"""The search in bfloat16 loses no token of a support, and its results are those of float32."""

import pytest
import torch
from torch import Tensor

from onmt_entmax.nn import bf16_filter
from onmt_entmax.nn.bf16_filter import find_by_bfloat16
from onmt_entmax.nn.output import PreparedOutput
from onmt_entmax.nn.support import Support
from onmt_entmax.sparse import log_entmax


@pytest.fixture(autouse=True)
def _always(monkeypatch) -> None:
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
