"""The GPU kernels of rows can be compiled to machine code, which needs no GPU.

Not collected by itself: test_kernels.py runs this with Triton's compiler, not its interpreter.
"""

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse.backends import (
    triton_gradient_kernels,
    triton_long_rows,
    triton_short_rows,
)
from onmt_entmax.sparse.backends.triton_launch import form_of
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
    """Alphas and a type of scores: they decide which code `triton_rows` compiles of a kernel."""

    alpha: float | Tensor
    scores: torch.dtype

    @property
    def types(self) -> dict[str, str]:
        """The types of the arguments of all kernels of rows, by their names in the kernels."""
        double, each_row = self.scores == torch.float64, isinstance(self.alpha, Tensor)
        numbers = DOUBLES if double else FLOATS
        return {
            "n": INTEGER,  # the length of a row
            "rows": INTEGER,  # their number, if a program has several
            # A `RowAlphas`.
            "alpha": FLOATS if each_row else ALPHA_OF_ALL,
            "inner": INTEGER,
            "count": INTEGER,
            # What is read: scores, or probabilities and the gradient in them.
            "scores": DOUBLES if double else HALVES,
            "probabilities": numbers,
            "incoming": numbers,
            # What is written: results and conjugates, or the gradients in scores and in alphas.
            "out": numbers,
            "shifted": numbers,
            "maxima": numbers,
            "alpha_out": numbers,
            "listed_columns": INTEGERS,  # the candidates of long rows
        }

    @property
    def constants(self) -> dict[str, Any]:
        """The constants of all kernels of rows that follow from alphas and scores."""
        each_row = isinstance(self.alpha, Tensor)
        return {
            **form_of(self.alpha, self.scores).constants,
            "each_row": each_row,
            "of_alpha": each_row,  # a number has no gradient
        }


ALPHAS = torch.tensor([[1.2], [1.5]])  # their type is enough: the compiler sees no values
ROW_FORMS = {
    "alpha 1.5": RowForm(1.5, torch.bfloat16),  # powers are squares
    "any alpha": RowForm(1.3, torch.bfloat16),
    "an alpha for each row": RowForm(ALPHAS, torch.bfloat16),
    "an alpha for each row, in float64": RowForm(ALPHAS, torch.float64),
}
row_forms = pytest.mark.parametrize("form", ROW_FORMS.values(), ids=list(ROW_FORMS))
# As `triton_rows` calls the solvers: for the loss conjugates are needed too.
results = pytest.mark.parametrize(
    ("result", "conjugate"),
    [
        pytest.param("probabilities", True, id="probabilities and conjugates"),
        pytest.param("logs", False, id="logarithms"),
    ],
)


def compile_rows(kernel: Any, capability: int, form: RowForm, **constants: Any) -> None:
    """Compile a kernel of rows.

    Args:
        kernel: a function of Triton.
        capability: compute capability of the GPU.
        form: has more arguments and constants than this kernel.
        constants: the kernel's others.
    """

    def of_kernel(by_name: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in by_name.items() if name in kernel.arg_names}

    constants |= of_kernel(form.constants)
    compile_kernel(kernel, capability, of_kernel(form.types), **constants)


@gpus
@row_forms
@results
def test_short_rows(capability: int, form: RowForm, result: str, conjugate: bool) -> None:
    kernel = triton_short_rows.solve_short
    compile_rows(kernel, capability, form, result=result, conjugate=conjugate, **SHORT_TILE)


@gpus
@row_forms
@results
def test_long_rows(capability: int, form: RowForm, result: str, conjugate: bool) -> None:
    kernel = triton_long_rows.solve_long
    compile_rows(kernel, capability, form, result=result, conjugate=conjugate, **LONG_TILE)


@gpus
@row_forms
def test_gradients_of_short_rows(capability: int, form: RowForm) -> None:
    kernel = triton_gradient_kernels.gradient_short
    compile_rows(kernel, capability, form, **SHORT_GRADIENT_TILE)


@gpus
@row_forms
def test_gradients_of_long_rows(capability: int, form: RowForm) -> None:
    kernel = triton_gradient_kernels.gradient_long
    compile_rows(kernel, capability, form, **LONG_GRADIENT_TILE)
