"""The GPU kernels of recurrences can be compiled to machine code, which needs no GPU.

Not collected by itself: test_static_kernels.py runs this with Triton's compiler, not its
interpreter.
"""

from typing import Any

import pytest
import triton.language as tl

from onmt_entmax.recurrence.backends import triton_kernels as kernels
from tests.sparse.compiling import AMPERE, FLOATS, HOPPER, INTEGER, compile_kernel

INTEGERS = ("size", "source")
STRIDES = ("_step", "_row")  # how their names end
LONG_INTEGER, LONG_INTEGERS = "i64", "*i64"
HIDDEN = 300


def compile_for(capability: int, kernel: Any, **constants: Any) -> None:
    """Compile a kernel of this module, whose other arguments are pointers to float32."""
    types = {"alpha": LONG_INTEGER, "lengths": LONG_INTEGERS}
    for name in kernel.arg_names:
        if name in INTEGERS or name.endswith(STRIDES):
            types.setdefault(name, INTEGER)
        elif name not in constants:
            types.setdefault(name, FLOATS)
    arguments = {name: kind for name, kind in types.items() if name in kernel.arg_names}
    compile_kernel(kernel, capability, arguments, **constants)


capabilities = pytest.mark.parametrize("capability", [AMPERE, HOPPER])
scalings = pytest.mark.parametrize("scaled", [False, True])


@capabilities
@scalings
@pytest.mark.parametrize("kernel", [kernels.cell_forward_kernel, kernels.cell_backward_kernel])
def test_cells(kernel: Any, scaled: bool, capability: int) -> None:
    compile_for(capability, kernel, hidden=HIDDEN, scaled=scaled, width=512)


@capabilities
@scalings
@pytest.mark.parametrize(("power", "log_form"), [(-1, False), (0, False), (2, False), (0, True)])
def test_attention(power: int, log_form: bool, scaled: bool, capability: int) -> None:
    form = {"power": power, "log_form": log_form, "work": tl.float32}
    tile = {"height": 32, "width": 256}
    compile_for(capability, kernels.attend_kernel, hidden=HIDDEN, scaled=scaled, **form, **tile)


@capabilities
@scalings
def test_the_gradient_of_attention(scaled: bool, capability: int) -> None:
    tile = {"height": 32, "width": 256}
    kernel = kernels.attend_backward_kernel
    compile_for(capability, kernel, hidden=HIDDEN, scaled=scaled, power=2, **tile)
