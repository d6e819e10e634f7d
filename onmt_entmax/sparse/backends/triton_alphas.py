"""Alpha as the Triton kernels take it: one number, or a tensor with an alpha for each row."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor


@dataclass(frozen=True)
class RowAlphas:
    """The alphas of rows of scores.

    Attributes:
        values: `beta_bits` of one alpha for all rows; or a tensor. Kernels read a tensor's memory,
            not its shape: at its address, `count` alphas follow one another, and row ``r`` has the
            alpha at index ``(r // inner) % count``.
        inner: number of consecutive rows that have the same alpha.
        count: number of alphas in memory.
    """

    values: Tensor | int
    inner: int
    count: int

    @property
    def each_row(self) -> bool:
        """Whether `values` is a tensor, from which each row reads its alpha."""
        return isinstance(self.values, Tensor)


def row_alphas(alpha: float | Tensor, shape: torch.Size) -> RowAlphas:
    """Return alpha for the rows of scores of a shape; a tensor is copied only if it must be.

    For example, alphas ``(heads, 1, 1)`` for scores ``(batch, heads, queries, keys)`` are not
    copied: ``inner`` is the number of queries, ``count`` the number of heads, and each sentence of
    the batch begins with the first head again.

    Args:
        alpha: a number, or a tensor that broadcasts to the scores, with size 1 for the last
            dimension.
        shape: shape of the scores, ``(..., n)``.
    """
    if not isinstance(alpha, Tensor):
        return RowAlphas(beta_bits(alpha), inner=1, count=1)
    alpha = kernel_alphas(alpha).expand(*shape[:-1], 1)
    # The strides of the example, expanded to (batch, heads, queries, 1), are (0, 1, 0, 0). The
    # formula of `RowAlphas` allows three kinds of dimensions, in this order from the last one on:
    # some that repeat one alpha, some with different alphas, which must be adjacent in memory, and
    # some that repeat all of these.
    sizes, strides = list(alpha.shape), list(alpha.stride())
    inner = count = 1
    while sizes and (strides[-1] == 0 or sizes[-1] == 1):
        strides.pop()
        inner *= sizes.pop()
    while sizes and (strides[-1] == count or sizes[-1] == 1):
        strides.pop()
        count *= sizes.pop()
    repeats = (stride == 0 or size == 1 for size, stride in zip(sizes, strides, strict=True))
    if all(repeats):
        return RowAlphas(alpha, inner, count)
    return RowAlphas(alpha.reshape(-1), inner=1, count=alpha.numel())


def kernel_alphas(alpha: Tensor) -> Tensor:
    """Return alphas for kernels: nan for alphas above 2, which the kernels do not solve.

    No check can refuse them instead, since none can read them while a CUDA graph is recorded.
    """
    alpha = alpha.detach()
    return torch.where(alpha <= 2, alpha, torch.nan)


# Cached, since it is computed for each launch. The cache is bounded, since an alpha that is warmed
# up is another number in each update.
@lru_cache(maxsize=64)
def beta_bits(alpha: float) -> int:
    """Return the bits of ``alpha - 1`` in float64, as which kernels take one number.

    Triton would pass a float as float32, and filling a tensor would take a kernel of its own.
    """
    (bits,) = struct.unpack("<q", struct.pack("<d", alpha - 1))
    return int(bits)
