"""Alpha as the Triton kernels take it: one number, or a tensor with an alpha for each row."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor


@dataclass(frozen=True)
class RowAlphas:
    """Alpha of rows: that of row ``r`` is ``values[(r // inner) % count]``, or one for all.

    Attributes:
        values: a tensor of alphas; or for one number the bits of ``alpha - 1`` in float64.
        inner: consecutive rows that have the same alpha.
        count: number of alphas.
        each_row: whether there is a tensor.
    """

    values: Tensor | int
    inner: int
    count: int
    each_row: bool


def kernel_alphas(alpha: Tensor) -> Tensor:
    """Return alphas for kernels: nan for alphas above 2, which the kernels do not solve.

    A check that would refuse them cannot read them while a CUDA graph is captured.
    """
    alpha = alpha.detach()
    return torch.where(alpha <= 2, alpha, torch.nan)


def alpha_of(alpha: float | Tensor, shape: torch.Size) -> RowAlphas:
    """Return alpha for the rows of scores of a shape; a tensor is copied only if it must be.

    For scores ``(batch, heads, queries, keys)``, alphas ``(heads, 1, 1)`` have an ``inner`` of
    queries and a ``count`` of heads; over the batch they repeat.
    """
    if not isinstance(alpha, Tensor):
        return _alpha_of_number(alpha)
    alpha = kernel_alphas(alpha).expand(*shape[:-1], 1)
    # The strides of these alphas, expanded, are (0, 1, 0, 0). From the last dimension to the first,
    # the formula of `RowAlphas` allows dimensions that repeat one alpha, then those of different
    # alphas, which must be adjacent in memory, then those that repeat all of them.
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
        return RowAlphas(alpha, inner, count, each_row=True)
    return RowAlphas(alpha.reshape(-1), inner=1, count=alpha.numel(), each_row=True)


@cache
def _alpha_of_number(alpha: float) -> RowAlphas:
    """Return one number for all rows.

    Triton would pass a float as float32, and filling a tensor would take a kernel of its own.
    """
    (bits,) = struct.unpack("<q", struct.pack("<d", alpha - 1))
    return RowAlphas(bits, inner=1, count=1, each_row=False)
