"""Matrix products with oneDNN and without, and its private operators."""

import pytest
import torch

from onmt_entmax.nn import products
from onmt_entmax.nn.products import PreparedWeight, product, weight_gradient


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("rows", [1, 64, 65])
def test_products(rows: int, quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With oneDNN, and with PyTorch's public operators."""
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", quick)
    x, wide, bias = (torch.randn(*shape) for shape in ((rows, 5), (6, 9), (6,)))
    # A slice of columns, a transposed weight, and a contiguous one.
    for weight in (wide[:, 2:7], wide[:, 2:7].t().contiguous().t(), wide[:, 2:7].contiguous()):
        expected = x @ weight.t()
        assert torch.allclose(product(x, weight, bias), expected + bias, atol=1e-5)
        assert torch.allclose(PreparedWeight(weight)(x), expected, atol=1e-5)
        assert torch.allclose(PreparedWeight(weight, bias)(x), expected + bias, atol=1e-5)
        rough = PreparedWeight(weight, dtype=torch.bfloat16)(x)
        assert rough.dtype == torch.float32
        assert torch.allclose(rough, expected, atol=0.1)
        rough = product(x, weight, bias, torch.bfloat16)
        assert torch.allclose(rough, expected + bias, atol=0.1)
    grad = torch.randn(rows, 12)[:, 3:9]
    gradient = weight_gradient(grad, x)
    assert gradient.is_contiguous()
    assert torch.allclose(gradient, grad.t() @ x, atol=1e-4)
    rough = weight_gradient(grad, x, torch.bfloat16)
    assert torch.allclose(rough, gradient, atol=0.5)


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_a_search_multiplies_few_numbers_of_rows(dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each number, oneDNN keeps a program."""
    prepared, rows = PreparedWeight(torch.randn(6, 5), dtype=dtype), []
    if not prepared._is_prepared:
        pytest.skip("oneDNN does not multiply this type here")
    multiply = prepared.multiply
    monkeypatch.setattr(prepared, "multiply", lambda x: (rows.append(len(x)), multiply(x))[1])
    x = torch.randn(40, 5)
    for count in range(1, 41):
        torch.testing.assert_close(
            prepared(x[:count]), multiply(x[:count].to(prepared.dtype)).float()
        )
    assert sorted({*rows}) == [8, 16, 24, 32, 40]


def test_private_operators_of_pytorch_are_there() -> None:
    """If this fails, a new PyTorch has changed the operators in `products`.

    Results stay right, but float32 products go to MKL, at half the speed on some processors, and
    bfloat16 products lose their prepared weights. Adapt the three functions, or accept that.
    """
    if not torch.backends.mkldnn.is_available():
        pytest.skip("PyTorch was built without oneDNN")
    assert products._onednn_works(torch.float32)
