"""The GPU kernels of rows can be compiled to machine code, which needs no GPU.

Not collected by itself: test_kernels.py runs this with Triton's compiler, not its interpreter.
Arguments and constants have their names in triton_kernels.py and triton_gradient_kernels.py, which
explain them.
"""

from typing import Any, NamedTuple

import pytest
import triton.language as tl

from onmt_entmax.sparse.backends import triton_gradient_kernels, triton_kernels
from tests.sparse.compiling import (
    ALPHA_OF_ALL,
    DOUBLES,
    FLOATS,
    HALVES,
    INTEGER,
    INTEGERS,
    compile_kernel,
    gpus,
)

# Tiles that `triton_rows` may take; the compiler need not know of others.
SHORT_TILE = {"height": 4, "width": 128}  # four rows of up to 128 scores
LONG_TILE = {"width": 2048, "room": 256}  # scores at once, and candidates in the list
SHORT_GRADIENT_TILE = {"height": 4, "width": 64}
LONG_GRADIENT_TILE = {"width": 512}


class RowForm(NamedTuple):
    """How the kernels of rows compute."""

    power: int
    """1 / (alpha - 1), if it is a whole number; else 0."""
    each_row: bool
    """Whether each row has its own alpha."""
    numbers: str
    """Type of the results."""

    @property
    def constants(self) -> dict[str, Any]:
        """The constants that all kernels of rows have."""
        work = tl.float64 if self.numbers == DOUBLES else tl.float32
        return {"each_row": self.each_row, "power": self.power, "work": work}

    @property
    def types_of_alpha(self) -> dict[str, str]:
        """The types of the arguments of `RowAlphas`."""
        alpha = FLOATS if self.each_row else ALPHA_OF_ALL
        return {"alpha": alpha, "inner": INTEGER, "count": INTEGER}


ROW_FORMS = {
    "alpha 1.5": RowForm(power=2, each_row=False, numbers=FLOATS),
    "any alpha": RowForm(power=0, each_row=False, numbers=FLOATS),
    "an alpha for each row": RowForm(power=0, each_row=True, numbers=FLOATS),
    "an alpha for each row, in float64": RowForm(power=0, each_row=True, numbers=DOUBLES),
}
row_forms = pytest.mark.parametrize("form", ROW_FORMS.values(), ids=list(ROW_FORMS))
RESULTS = {
    "probabilities": {"result": "probabilities", "conjugate": True},
    "logarithms": {"result": "logs", "conjugate": False},
}
results = pytest.mark.parametrize("result", RESULTS.values(), ids=list(RESULTS))


def compile_solver(
    kernel: Any, capability: int, form: RowForm, own_type: dict[str, str], **constants: Any
) -> None:
    """Compile a kernel that solves rows of scores in bfloat16.

    Args:
        kernel: a function of Triton.
        capability: of the GPU.
        form: of the solution.
        own_type: of the argument that only this solver has.
        constants: that are not the form's.
    """
    types = {
        "scores": HALVES,
        "n": INTEGER,
        **dict.fromkeys(("out", "shifted", "maxima"), form.numbers),
        **form.types_of_alpha,
        **own_type,
    }
    log_form = form.each_row  # as `form_of` has it: alphas of a tensor may be near 1
    compile_kernel(kernel, capability, types, log_form=log_form, **form.constants, **constants)


def compile_gradient(
    kernel: Any, capability: int, form: RowForm, own_type: dict[str, str], **constants: Any
) -> None:
    """Compile a kernel of gradients, in alpha too if each row has its own; see `compile_solver`."""
    types = {
        "n": INTEGER,
        **dict.fromkeys(("probabilities", "incoming", "out", "alpha_out"), form.numbers),
        **form.types_of_alpha,
        **own_type,
    }
    of_alpha = form.each_row
    compile_kernel(kernel, capability, types, of_alpha=of_alpha, **form.constants, **constants)


@gpus
@row_forms
@results
def test_short_rows(capability: int, form: RowForm, result: dict[str, Any]) -> None:
    kernel, own_type = triton_kernels.solve_short, {"rows": INTEGER}
    compile_solver(kernel, capability, form, own_type, **SHORT_TILE, **result)


@gpus
@row_forms
@results
def test_long_rows(capability: int, form: RowForm, result: dict[str, Any]) -> None:
    kernel, own_type = triton_kernels.solve_long, {"listed_columns": INTEGERS}
    compile_solver(kernel, capability, form, own_type, **LONG_TILE, **result)


@gpus
@row_forms
def test_gradients_of_short_rows(capability: int, form: RowForm) -> None:
    kernel, own_type = triton_gradient_kernels.gradient_short, {"rows": INTEGER}
    compile_gradient(kernel, capability, form, own_type, **SHORT_GRADIENT_TILE)


@gpus
@row_forms
def test_gradients_of_long_rows(capability: int, form: RowForm) -> None:
    kernel = triton_gradient_kernels.gradient_long
    compile_gradient(kernel, capability, form, {}, **LONG_GRADIENT_TILE)
