"""What the Triton kernels of rows and of attention share: alpha, form, device and sizes."""

from __future__ import annotations

import math
import struct
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
import triton.language as tl
from torch import Tensor

from onmt_entmax.sparse.backends.triton_curves import NO_POWER, SOFTMAX


def on_device_of(tensor: Tensor) -> AbstractContextManager[object]:
    """Return a context in which kernels start on a tensor's device."""
    if not tensor.is_cuda or tensor.device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(tensor.device)


class Form(NamedTuple):
    """The constants that kernels are compiled for; see triton_curves.py.

    Attributes:
        log_form: whether the log form is solved, else the power form.
        power: the exponent ``1 / beta`` if it is a whole number, else `SOFTMAX` or `NO_POWER`.
        work: the type to compute in.
    """

    log_form: bool
    power: int
    work: torch.dtype

    @property
    def constants(self) -> dict[str, object]:
        """The constants as arguments of a kernel."""
        work = tl.float64 if self.work == torch.float64 else tl.float32
        return {"log_form": self.log_form, "power": self.power, "work": work}


def form_of(alpha: float | Tensor, dtype: torch.dtype) -> Form:
    """Return the form in which scores of a type are solved."""
    work = torch.float64 if dtype == torch.float64 else torch.float32
    if isinstance(alpha, Tensor):
        return Form(log_form=True, power=NO_POWER.value, work=work)
    return _form_of_number(alpha, work)


# What a small input waits for is Python, which starts the kernels; so constants are kept.
@cache
def _form_of_number(alpha: float, work: torch.dtype) -> Form:
    """Return the form for one alpha; see `form_of`."""
    if alpha == 1:
        return Form(log_form=False, power=SOFTMAX.value, work=work)
    # Nearer to 1 the power form magnifies rounding.
    if alpha < 1.1:
        return Form(log_form=True, power=NO_POWER.value, work=work)
    nearest = round(1 / (alpha - 1))
    # Subtracting 1 from a rounded alpha such as 1.2 leaves a relative error of about 1e-15.
    is_whole = math.isclose(nearest * (alpha - 1), 1, rel_tol=4e-15)
    return Form(log_form=False, power=nearest if is_whole else NO_POWER.value, work=work)


@dataclass(frozen=True)
class RowAlphas:
    """Alpha as kernels take it: row ``r`` has ``given[(r // inner) % count]``.

    Attributes:
        given: a tensor of alphas; or the bits of ``alpha - 1`` in float64, for all rows.
        inner: rows one after the other with the same alpha.
        count: alphas, one after the other in memory.
        each_row: whether there is a tensor.
    """

    given: Tensor | int
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
    """Return alpha for the rows of scores of a shape, as a rule without a copy.

    For scores ``(batch, heads, queries, keys)``, alphas ``(heads, 1, 1)`` have an ``inner`` of
    queries and a ``count`` of heads; over the batch they repeat.
    """
    if not isinstance(alpha, Tensor):
        # A number of Python would arrive in float32, a tensor would have to be filled.
        return _alpha_of_number(alpha)
    alpha = kernel_alphas(alpha).expand(*shape[:-1], 1)
    sizes, strides = list(alpha.shape), list(alpha.stride())
    inner = count = 1
    # From the last dimension: some that repeat one alpha, some that hold a tensor, and repetitions.
    # Of alphas (heads, 1, 1), expanded, the strides are (0, 1, 0, 0).
    while sizes and (strides[-1] == 0 or sizes[-1] == 1):
        strides.pop()
        inner *= sizes.pop()
    while sizes and (strides[-1] == count or sizes[-1] == 1):
        strides.pop()
        count *= sizes.pop()
    repeats = (stride == 0 or size == 1 for size, stride in zip(sizes, strides, strict=True))
    if all(repeats):
        return RowAlphas(alpha, inner, count, each_row=True)
    return RowAlphas(alpha.reshape(-1), 1, alpha.numel(), each_row=True)


@cache
def _alpha_of_number(alpha: float) -> RowAlphas:
    """Return the bits of a number for all rows; see `RowAlphas`."""
    (bits,) = struct.unpack("<q", struct.pack("<d", alpha - 1))
    return RowAlphas(bits, inner=1, count=1, each_row=False)


def blocks(size: int, block: int) -> int:
    """Return how many blocks cover a size; Triton's own function takes 4 us."""
    return -(-size // block)


def power_of_two(size: int) -> int:
    """Return the smallest power of two that is at least a size of 1 or more."""
    return 1 << (size - 1).bit_length()
