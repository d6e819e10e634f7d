"""What starting a Triton kernel of entmax takes: its constants, its device, and sizes of grids."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import NamedTuple

import torch
import triton.language as tl
from torch import Tensor

from onmt_entmax.sparse.backends.triton_curves import NO_POWER, SOFTMAX

# The lowest alpha for which the power form is solved. It takes powers of 1 / (alpha - 1), which
# multiply the rounding of their base: tenfold at this alpha, and more below.
_LOWEST_OF_POWER_FORM = 1.1


def on_device_of(tensor: Tensor) -> AbstractContextManager[object]:
    """Return a context in which kernels start on a tensor's device."""
    if not tensor.is_cuda or tensor.device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(tensor.device)


class Form(NamedTuple):
    """The constants that kernels are compiled for; triton_curves.py explains the two forms.

    Attributes:
        log_form: whether the log form is solved, else the power form.
        power: `SOFTMAX` at alpha 1; in the power form ``1 / beta`` if it is a whole number; else
            `NO_POWER`. Here beta is alpha - 1.
        work: the type to compute in, float32 or float64.
    """

    log_form: bool
    power: int
    work: torch.dtype

    @property
    def constants(self) -> dict[str, object]:
        """The constants as arguments of a kernel."""
        work = tl.float64 if self.work == torch.float64 else tl.float32
        return {"log_form": self.log_form, "power": self.power, "work": work}

    @property
    def jacobian_power(self) -> int:
        """The power that `jacobian_weights` takes; it treats softmax as any other alpha."""
        return NO_POWER.value if self.power == SOFTMAX.value else self.power


def form_of(alpha: float | Tensor, dtype: torch.dtype) -> Form:
    """Return the form in which scores of a type are solved.

    A kernel solves all rows in one form. If alpha is a tensor, this is the log form, since some
    alphas may be near 1.

    Args:
        alpha: a number from 1 to 2, or a tensor of such numbers.
        dtype: type of the scores.
    """
    work = torch.float64 if dtype == torch.float64 else torch.float32
    if isinstance(alpha, Tensor):
        return Form(log_form=True, power=NO_POWER.value, work=work)
    return _form_of_number(alpha, work)


# Cached, since with small inputs most of the time goes to starting the kernels from Python. The
# cache is bounded, since an alpha that is warmed up is another number in each update.
@lru_cache(maxsize=64)
def _form_of_number(alpha: float, work: torch.dtype) -> Form:
    """Return the form for one alpha; see `form_of`."""
    if alpha == 1:
        return Form(log_form=False, power=SOFTMAX.value, work=work)
    if alpha < _LOWEST_OF_POWER_FORM:
        return Form(log_form=True, power=NO_POWER.value, work=work)
    nearest = round(1 / (alpha - 1))
    # Subtracting 1 from a rounded alpha such as 1.2 leaves a relative error of about 1e-15.
    is_whole = math.isclose(nearest * (alpha - 1), 1, rel_tol=4e-15)
    return Form(log_form=False, power=nearest if is_whole else NO_POWER.value, work=work)


def blocks(size: int, block: int) -> int:
    """Return how many blocks cover a size; `triton.cdiv` takes 4 us."""
    return -(-size // block)


def power_of_two(size: int) -> int:
    """Return the smallest power of two that is at least a size of 1 or more."""
    return 1 << (size - 1).bit_length()
