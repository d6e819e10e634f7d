"""The GPU kernels of recurrences can be compiled to machine code, which needs no GPU.

Not collected by itself: test_static_kernels.py runs this with Triton's compiler, not its
interpreter. Each test compiles a kernel, and `compile_kernel` fails if there is no machine code.
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

STRIDES = (
    "summand_direction_stride",
    "summand_row_stride",
    "cell_direction_stride",
    "grad_output_direction_stride",
    "grad_output_row_stride",
    "grad_hidden_after_direction_stride",
    "grad_hidden_after_row_stride",
    "grad_cell_after_direction_stride",
    "grad_cell_after_row_stride",
    "grad_gates_direction_stride",
    "grad_outputs_row_stride",
)
# Types of arguments by name, which is the same in all kernels; all others are tensors of floats.
TYPES = {
    "alpha": ALPHA_OF_ALL,
    "lengths": LONG_INTEGERS,
    "source": INTEGER,  # positions
    "size": INTEGER,  # hidden units of all rows
    **dict.fromkeys(STRIDES, INTEGER),
}


def compile_for(capability: int, kernel: Any, **constants: Any) -> None:
    """Compile a kernel of recurrences for a GPU of a compute capability."""
    arguments = [name for name in kernel.arg_names if name not in constants]
    types = {name: TYPES.get(name, FLOATS) for name in arguments}
    compile_kernel(kernel, capability, types, **constants)


# Alphas for each of which the compiler makes other code.
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
