"""The nonzero entries of a sparse matrix: where they are, and products with them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class SparseEntries(NamedTuple):
    """Entries ``(entries,)`` of a sparse matrix, ordered by row; row and column are int64."""

    row: Tensor
    column: Tensor
    value: Tensor

    @classmethod
    def of(cls, matrix: Tensor, max_density: float) -> SparseEntries | None:
        """Return the entries of a matrix, or None if it is denser; see `nonzero`."""
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
        """Return the number of entries of each row, ``(rows,)``."""
        return self.row.bincount(minlength=rows)

    def times(self, matrix: Tensor, rows: int) -> Tensor:
        """Return the product ``(rows, size)`` with a matrix ``(columns, size)``."""
        counts = self.counts(rows)
        begins = counts.cumsum(0) - counts
        return functional.embedding_bag(
            self.column, matrix, begins, mode="sum", per_sample_weights=self.value
        )


def nonzero(matrix: Tensor, max_density: float = 1.0) -> Tensor | None:
    """Return the ascending positions of the nonzero values in a flattened matrix.

    Eight values are first looked at as one integer, which is several times faster if few are not 0.

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
