"""Alpha as the Triton kernels take it: `RowAlphas` has the alpha of each row."""

import struct

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse.backends.triton_alphas import row_alphas

# Two sentences, three heads, four queries.
SHAPE = torch.Size((2, 3, 4, 5))


@pytest.mark.parametrize(
    ("shape", "inner", "count"),
    [
        pytest.param((1,), 2 * 3 * 4, 1, id="one for all rows"),
        pytest.param((3, 1, 1), 4, 3, id="one for each head"),
        pytest.param((4, 1), 1, 4, id="one for each query"),
        pytest.param((2, 3, 4, 1), 1, 2 * 3 * 4, id="one for each row"),
        pytest.param((2, 1, 1, 1), 3 * 4, 2, id="one for each sentence"),
        pytest.param((2, 1, 4, 1), 1, 2 * 3 * 4, id="one for each sentence and query: copied"),
    ],
)
def test_each_row_has_its_alpha(shape: tuple[int, ...], inner: int, count: int) -> None:
    alpha = torch.linspace(1, 2, torch.Size(shape).numel()).view(shape)
    result = row_alphas(alpha, SHAPE)
    assert (result.inner, result.count, result.each_row) == (inner, count, True)
    assert isinstance(result.values, Tensor)
    # A kernel reads alphas from the address of the first one, whatever the tensor's shape is.
    memory = result.values.as_strided((count,), (1,))
    rows = [memory[(row // inner) % count] for row in range(2 * 3 * 4)]
    assert rows == alpha.expand(2, 3, 4, 1).flatten().tolist()


def test_alphas_above_two_become_nan() -> None:
    """The kernels do not solve them."""
    result = row_alphas(torch.tensor([[2.0], [2.5]]), torch.Size((2, 7)))
    assert isinstance(result.values, Tensor)
    assert result.values.flatten().isnan().tolist() == [False, True]


def test_a_number_is_passed_by_its_bits() -> None:
    result = row_alphas(1.3, SHAPE)
    assert isinstance(result.values, int)
    assert struct.unpack("<d", struct.pack("<q", result.values)) == (1.3 - 1,)
    assert not result.each_row
