"""Products with the weights of a layer, by oneDNN or by public operators, equal PyTorch's."""

import pytest
import torch
from torch import Tensor

from onmt_entmax.nn.onednn import private_operators_work
from onmt_entmax.nn.prepared_weight import PreparedWeight
from onmt_entmax.nn.products import product, weight_gradient

WIDE = torch.randn(6, 9, generator=torch.Generator().manual_seed(1))
# Weights ``(6, 5)`` in different layouts of memory.
WEIGHTS = {
    "slice of columns": WIDE[:, 2:7],
    "transposed": WIDE[:, 2:7].t().contiguous().t(),
    "contiguous": WIDE[:, 2:7].contiguous(),
}


@pytest.fixture(params=[True, False], ids=["oneDNN", "public operators"])
def multiplication(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products by oneDNN, or by PyTorch's public operators."""
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", request.param)


@pytest.fixture(params=[1, 64, 65])
def states(request: pytest.FixtureRequest) -> Tensor:
    """States ``(rows, 5)``."""
    return torch.randn(request.param, 5)


@pytest.fixture(params=[None, torch.bfloat16], ids=["float32", "bfloat16"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype | None:
    """The type of the factors; None leaves theirs, float32."""
    value: torch.dtype | None = request.param
    return value


def tolerance(dtype: torch.dtype | None) -> float:
    """Return by how much products may differ, which are sums of five terms of about 1.

    A term has an error of a machine epsilon in float32, and of 2 ** -8 for each factor in bfloat16.
    Sums in bfloat16 may be rounded by 2 ** -8 of a few.
    """
    return 1e-5 if dtype is None else 0.1


# --- products --------------------------------------------------------------------------------

with_each_weight = pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)


@pytest.mark.usefixtures("multiplication")
@with_each_weight
def test_products_of_training_are_those_of_pytorch(
    weight: Tensor, states: Tensor, dtype: torch.dtype | None
) -> None:
    bias = torch.randn(6)
    result = product(states, weight, bias, dtype)
    expected = states @ weight.t() + bias
    torch.testing.assert_close(result, expected, atol=tolerance(dtype), rtol=1e-5)


@pytest.mark.usefixtures("multiplication")
@with_each_weight
@pytest.mark.parametrize("bias", [None, torch.arange(6.0)], ids=["no bias", "bias"])
def test_products_of_a_search_are_those_of_pytorch(
    weight: Tensor, states: Tensor, dtype: torch.dtype | None, bias: Tensor | None
) -> None:
    result = PreparedWeight(weight, bias, dtype=dtype)(states)
    expected = states @ weight.t() + (0 if bias is None else bias)
    torch.testing.assert_close(result, expected, atol=tolerance(dtype), rtol=1e-5)


# --- gradients of weights --------------------------------------------------------------------


@pytest.fixture
def grad(states: Tensor) -> Tensor:
    """Gradients of products ``(rows, 6)``, which are not contiguous."""
    return torch.randn(len(states), 12)[:, 3:9]


@pytest.mark.usefixtures("multiplication")
def test_gradients_of_weights_are_products(grad: Tensor, states: Tensor) -> None:
    result = weight_gradient(grad, states)
    torch.testing.assert_close(result, grad.t() @ states, atol=1e-4, rtol=1e-5)


@pytest.mark.usefixtures("multiplication")
def test_gradients_of_weights_are_contiguous(grad: Tensor, states: Tensor) -> None:
    assert weight_gradient(grad, states).is_contiguous()


@pytest.mark.usefixtures("multiplication")
def test_gradients_of_weights_in_bfloat16_are_close(grad: Tensor, states: Tensor) -> None:
    result = weight_gradient(grad, states, torch.bfloat16)
    torch.testing.assert_close(result, grad.t() @ states, atol=0.5, rtol=1e-5)


# --- oneDNN ----------------------------------------------------------------------------------


def test_a_search_multiplies_few_numbers_of_rows(
    dtype: torch.dtype | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few numbers are needed, since oneDNN compiles and keeps a program for each."""
    prepared = PreparedWeight(torch.randn(6, 5), dtype=dtype)
    if not prepared._is_prepared:
        pytest.skip("oneDNN does not multiply this type here")
    multiply = prepared.multiply
    numbers = set()  # of rows that are multiplied at once

    def note_rows(states: Tensor) -> Tensor:
        numbers.add(len(states))
        return multiply(states)

    monkeypatch.setattr(prepared, "multiply", note_rows)
    states = torch.randn(40, 5)
    for rows in range(1, 41):
        expected = multiply(states[:rows].to(prepared.dtype)).float()
        torch.testing.assert_close(prepared(states[:rows]), expected)
    assert sorted(numbers) == [8, 16, 24, 32, 40]


def test_private_operators_of_pytorch_are_there() -> None:
    """If this fails, a new PyTorch has changed the operators in `onednn`.

    Results are still right then, but MKL computes float32 products, at half the speed on some
    processors, and bfloat16 products lose their prepared weights. Adapt the functions of `onednn`,
    or accept that.
    """
    if not torch.backends.mkldnn.is_available():
        pytest.skip("PyTorch was built without oneDNN")
    assert private_operators_work(torch.float32)
