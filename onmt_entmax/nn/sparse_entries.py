"""The nonzero entries of a sparse matrix: where they are, and products with the matrix."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class SparseEntries(NamedTuple):
    """The nonzero entries of a matrix ``(rows, columns)``, ordered by row.

    Attributes:
        row: ``(entries,)`` int64, ascending.
        column: ``(entries,)`` int64.
        value: ``(entries,)``.
    """

    row: Tensor
    column: Tensor
    value: Tensor

    @classmethod
    def of(cls, matrix: Tensor, max_density: float) -> SparseEntries | None:
        """Return the entries of a matrix, or None if there are too many.

        Args:
            matrix: ``(rows, columns)``, contiguous.
            max_density: the largest share of the matrix that may be nonzero.
        """
        positions = nonzero(matrix, max_density)
        if positions is None:
            return None
        row = positions // matrix.shape[1]
        column = positions - row * matrix.shape[1]
        return cls(row, column, matrix.view(-1).index_select(0, positions))

    def transposed(self) -> SparseEntries:
        """Return the entries of the transposed matrix."""
        order = self.column.argsort()
        row, column, value = (part.index_select(0, order) for part in self)
        return SparseEntries(row=column, column=row, value=value)

    def counts(self, rows: int) -> Tensor:
        """Return the number of entries of each row, ``(rows,)``, given the number of rows."""
        return self.row.bincount(minlength=rows)

    def times(self, matrix: Tensor, rows: int) -> Tensor:
        """Return the product with a dense matrix, ``(rows, size)``.

        Args:
            matrix: the second factor, ``(columns, size)``.
            rows: number of rows of the sparse matrix.
        """
        counts = self.counts(rows)
        begins = counts.cumsum(0) - counts
        return functional.embedding_bag(
            self.column, matrix, begins, mode="sum", per_sample_weights=self.value
        )


def nonzero(matrix: Tensor, max_density: float = 1.0) -> Tensor | None:
    """Return the ascending positions of the nonzero values in a flattened matrix.

    Eight values are first compared with 0 as one integer, which is several times faster if few
    values are nonzero.

    Args:
        matrix: a tensor of any shape.
        max_density: the largest share of the values that may be nonzero.

    Returns:
        ``(nonzero values,)`` int64, or None if more are nonzero.
    """
    limit = max_density * matrix.numel()
    mask = functional.pad(matrix.to(torch.bool).flatten(), (0, -matrix.numel() % 8))
    packed = mask.view(torch.int64)
    eights = packed.nonzero().squeeze(1)
    if len(eights) > limit:
        return None
    inner = packed.index_select(0, eights).view(torch.bool).nonzero().squeeze(1)
    if len(inner) > limit:
        return None
    return eights.index_select(0, inner >> 3).mul_(8).add_(inner & 7)
