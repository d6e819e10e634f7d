"""Places of nonzero numbers in a matrix."""

import pytest
import torch

from onmt_entmax.nn.sparse_entries import nonzero


@pytest.mark.parametrize("size", [(0, 3), (3, 5), (4, 64)])
@pytest.mark.parametrize("share", [0.0, 0.15, 1.0])
def test_places_of_nonzero_numbers(size: tuple[int, int], share: float) -> None:
    matrix = torch.randn(size) * (torch.rand(size) < share)
    assert nonzero(matrix, most=1.0).equal(matrix.flatten().nonzero().squeeze(1))


@pytest.mark.parametrize(("count", "is_found"), [(6, True), (7, False)])
def test_places_of_too_many_nonzero_numbers_are_not_found(count: int, is_found: bool) -> None:
    matrix = torch.zeros(4, 16)
    matrix.view(-1)[:count] = 1
    assert (nonzero(matrix, most=0.1) is not None) == is_found
