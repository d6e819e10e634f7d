"""The GPU kernels of recurrences can be compiled to machine code, which needs no GPU.

pytest does not collect this file: test_static_kernels.py runs it in a process with Triton's
compiler, not its interpreter. `compile_kernel` fails if there is no machine code.
"""

from typing import Any

import pytest
import torch

from onmt_entmax.recurrence.backends import triton_kernels as kernels
from onmt_entmax.sparse.backends.triton_launch import Form, form_of
from tests.sparse.compiling import (
    ALPHA_OF_ALL,
    FLOATS,
    INTEGER,
    LONG_INTEGERS,
    compile_kernel,
    gpus,
)

HIDDEN = 300  # units of a layer
UNITS = 512  # that a program of the cell computes
TILE = {"height": 32, "width": 256}  # source positions, and columns of their vectors

# Types of arguments by name, which is the same in all kernels. Strides are integers, too, and all
# other arguments are tensors of floats.
TYPES = {
    "alpha": ALPHA_OF_ALL,
    "lengths": LONG_INTEGERS,
    "source": INTEGER,  # positions
    "size": INTEGER,  # hidden units of all rows
}


def type_of(argument: str) -> str:
    """Return the type of an argument of any kernel."""
    return INTEGER if argument.endswith("_stride") else TYPES.get(argument, FLOATS)


def compile_for(capability: int, kernel: Any, **constants: Any) -> None:
    """Compile a kernel of recurrences for a GPU of a compute capability."""
    arguments = [name for name in kernel.arg_names if name not in constants]
    types = {name: type_of(name) for name in arguments}
    compile_kernel(kernel, capability, types, **constants)


# The compiler makes different code for each of these alphas.
ALPHAS = {"softmax": 1.0, "near 1": 1.05, "any": 1.3, "1.5, a whole power": 1.5}
forms = pytest.mark.parametrize(
    "form", [form_of(alpha, torch.float32) for alpha in ALPHAS.values()], ids=list(ALPHAS)
)
dropouts = pytest.mark.parametrize("dropout", [False, True], ids=["plain", "dropout"])


@gpus
@dropouts
@pytest.mark.parametrize(
    "kernel", [kernels.cell_forward_kernel, kernels.cell_backward_kernel], ids=["cell", "gradient"]
)
def test_the_kernels_of_the_cell_compile(kernel: Any, dropout: bool, capability: int) -> None:
    compile_for(capability, kernel, hidden=HIDDEN, scaled=dropout, width=UNITS)


@gpus
@dropouts
@forms
def test_the_kernel_of_attention_compiles(form: Form, dropout: bool, capability: int) -> None:
    kernel = kernels.attend_kernel
    compile_for(capability, kernel, hidden=HIDDEN, scaled=dropout, **form.constants, **TILE)


@gpus
@dropouts
def test_the_kernel_of_gradients_of_attention_compiles(dropout: bool, capability: int) -> None:
    kernel = kernels.attend_backward_kernel
    power = form_of(1.5, torch.float32).jacobian_power
    compile_for(capability, kernel, hidden=HIDDEN, scaled=dropout, power=power, **TILE)
