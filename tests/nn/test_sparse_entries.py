"""`nonzero` and `SparseEntries` against PyTorch's operations on dense matrices."""

import pytest
import torch
from torch import Tensor

from onmt_entmax.nn.sparse_entries import SparseEntries, nonzero


@pytest.mark.parametrize("size", [(0, 3), (3, 5), (4, 64)])
@pytest.mark.parametrize("share", [0.0, 0.15, 1.0])
def test_nonzero_positions_are_those_of_pytorch(size: tuple[int, int], share: float) -> None:
    matrix = torch.randn(size) * (torch.rand(size) < share)
    assert nonzero(matrix, max_density=1.0).equal(matrix.flatten().nonzero().squeeze(1))


# `nonzero` compares groups of eight values with 0 at once. Here, nonzero values are next to each
# other, or each in a group of its own.
STEPS = pytest.mark.parametrize("step", [1, 8], ids=["next to each other", "a group each"])


def with_ones(count: int, step: int) -> Tensor:
    """Return a matrix ``(4, 16)`` of zeros with some ones, at positions 0, step, 2 * step, ..."""
    matrix = torch.zeros(4, 16)
    matrix.view(-1)[: count * step : step] = 1
    return matrix


@STEPS
def test_a_share_of_nonzero_values_at_the_limit_is_found(step: int) -> None:
    positions = nonzero(with_ones(6, step), max_density=6 / 64)
    assert positions is not None
    assert positions.tolist() == [step * k for k in range(6)]


@STEPS
def test_a_share_of_nonzero_values_above_the_limit_is_not_found(step: int) -> None:
    assert nonzero(with_ones(7, step), max_density=6 / 64) is None


def test_a_matrix_with_too_many_nonzero_values_has_no_entries() -> None:
    assert SparseEntries.of(with_ones(7, step=8), max_density=6 / 64) is None


@pytest.fixture
def matrix() -> Tensor:
    """A matrix ``(4, 6)`` with entries in all columns, and a row without any."""
    matrix = torch.randn(4, 6) * torch.eye(4, 6)
    matrix[0, 2:] = torch.randn(4)
    matrix[2] = 0
    return matrix


@pytest.fixture
def entries(matrix: Tensor) -> SparseEntries:
    entries = SparseEntries.of(matrix, max_density=1.0)
    assert entries is not None
    return entries


def test_entries_are_the_nonzero_values_by_row_and_column(
    matrix: Tensor, entries: SparseEntries
) -> None:
    row, column = matrix.nonzero(as_tuple=True)
    assert all(map(torch.equal, entries, (row, column, matrix[row, column])))


def test_transposed_entries_are_those_of_the_transposed_matrix(
    matrix: Tensor, entries: SparseEntries
) -> None:
    transposed = entries.transposed()
    assert transposed.row.equal(transposed.row.sort().values)
    dense = torch.zeros(6, 4).index_put((transposed.row, transposed.column), transposed.value)
    assert dense.equal(matrix.T)


def test_counts_are_the_numbers_of_entries_of_each_row(
    matrix: Tensor, entries: SparseEntries
) -> None:
    assert entries.counts(rows=4).equal(matrix.count_nonzero(1))


def test_the_product_with_a_matrix_is_that_of_whole_matrices(
    matrix: Tensor, entries: SparseEntries
) -> None:
    other = torch.randn(6, 5)
    torch.testing.assert_close(entries.times(other, rows=4), matrix @ other)
