"""The GPU kernels of recurrences can be compiled to machine code, which needs no GPU.

Not collected by itself: test_static_kernels.py runs this with Triton's compiler, not its
interpreter.
"""

from typing import Any, NamedTuple

import pytest
import triton.language as tl

from onmt_entmax.recurrence.backends import triton_kernels as kernels
from tests.sparse.compiling import (
    ALPHA_OF_ALL,
    FLOATS,
    INTEGER,
    LONG_INTEGERS,
    compile_kernel,
    gpus,
)

HIDDEN = 300
CELLS = 512  # hidden units of a program
TILE = {"height": 32, "width": 256}  # source positions, and columns of their vectors


def type_of(name: str) -> str:
    """Return the type of an argument, by its name, which all kernels use alike."""
    if name == "alpha":
        return ALPHA_OF_ALL
    if name == "lengths":
        return LONG_INTEGERS
    is_number = name in ("size", "source") or name.endswith(("_step", "_row"))
    return INTEGER if is_number else FLOATS


def compile_for(capability: int, kernel: Any, **constants: Any) -> None:
    """Compile a kernel of this module, whose arguments are all that are no constants."""
    types = {name: type_of(name) for name in kernel.arg_names if name not in constants}
    compile_kernel(kernel, capability, types, **constants)


class Form(NamedTuple):
    """The form of the curve of entmax; see triton_curves.py."""

    power: int
    log_form: bool


FORMS = {
    "softmax": Form(power=-1, log_form=False),
    "any alpha": Form(power=0, log_form=False),
    "alpha 1.5": Form(power=2, log_form=False),
    "alpha near 1": Form(power=0, log_form=True),
}
scalings = pytest.mark.parametrize("scaled", [False, True], ids=["plain", "dropout"])


@gpus
@scalings
@pytest.mark.parametrize(
    "kernel", [kernels.cell_forward_kernel, kernels.cell_backward_kernel], ids=["cell", "gradient"]
)
def test_cells(kernel: Any, scaled: bool, capability: int) -> None:
    compile_for(capability, kernel, hidden=HIDDEN, scaled=scaled, width=CELLS)


@gpus
@scalings
@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
def test_attention(form: Form, scaled: bool, capability: int) -> None:
    constants = {"hidden": HIDDEN, "scaled": scaled, "work": tl.float32, **form._asdict(), **TILE}
    compile_for(capability, kernels.attend_kernel, **constants)


@gpus
@scalings
def test_the_gradient_of_attention(scaled: bool, capability: int) -> None:
    kernel = kernels.attend_backward_kernel
    compile_for(capability, kernel, hidden=HIDDEN, scaled=scaled, power=2, **TILE)
