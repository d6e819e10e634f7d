"""The GPU kernels of rows compile to machine code, which needs no GPU.

Not collected by itself: test_kernels.py runs this with Triton's compiler, not its interpreter.
"""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from triton import JITFunction
from triton.compiler import CompiledKernel

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

# Tiles as `triton_rows` may choose them. One of each is tried, since compiling takes seconds.
SHORT_TILE = {"height": 4, "width": 128}  # four rows of up to 128 scores
LONG_TILE = {"width": 2048, "room": 256}  # scores at once, and candidates in the list
SHORT_GRADIENT_TILE = {"height": 4, "width": 64}
LONG_GRADIENT_TILE = {"width": 512}


class RowForm(NamedTuple):
    """Alphas and a type of scores: for each pair, the compiler makes other code of a kernel."""

    alpha: float | Tensor
    scores: torch.dtype

    @property
    def each_row(self) -> bool:
        """Whether each row has its own alpha."""
        return isinstance(self.alpha, Tensor)

    @property
    def score_type(self) -> str:
        """The type of scores in memory."""
        return DOUBLES if self.scores == torch.float64 else HALVES

    @property
    def result_type(self) -> str:
        """The type of the results, in memory."""
        return DOUBLES if self.scores == torch.float64 else FLOATS

    @property
    def shared_types(self) -> dict[str, str]:
        """The types of the arguments of all kernels: a `RowAlphas`, and the length of a row."""
        return {
            "alpha": FLOATS if self.each_row else ALPHA_OF_ALL,
            "inner": INTEGER,
            "count": INTEGER,
            "n": INTEGER,
        }


ALPHAS = torch.tensor([[1.2], [1.5]])  # their type is enough: the compiler sees no values
ROW_FORMS = {
    "alpha 1.5": RowForm(1.5, torch.bfloat16),  # powers are squares
    "any alpha": RowForm(1.3, torch.bfloat16),
    "an alpha for each row": RowForm(ALPHAS, torch.bfloat16),
    "an alpha for each row, in float64": RowForm(ALPHAS, torch.float64),
}
row_forms = pytest.mark.parametrize("form", ROW_FORMS.values(), ids=list(ROW_FORMS))


# --- solvers ---------------------------------------------------------------------------------

# What `triton_rows` lets the solvers compute: the loss needs conjugates, too.
results = pytest.mark.parametrize(
    "result",
    [
        pytest.param(
            {"result": "probabilities", "conjugate": True}, id="probabilities and conjugates"
        ),
        pytest.param({"result": "logs", "conjugate": False}, id="logarithms"),
    ],
)


def compile_solver(
    kernel: JITFunction,
    capability: int,
    form: RowForm,
    own_types: dict[str, str],
    **constants: object,
) -> CompiledKernel:
    """Compile a kernel that solves rows.

    Args:
        kernel: `solve_short` or `solve_long`.
        capability: compute capability of the GPU.
        form: alphas and type of the scores.
        own_types: types of the arguments that only this kernel has.
        constants: the result and the tile.
    """
    types = {
        "scores": form.score_type,
        **dict.fromkeys(("out", "shifted", "maxima"), form.result_type),
        **form.shared_types,
        **own_types,
    }
    form_constants = {"each_row": form.each_row, **form_of(form.alpha, form.scores).constants}
    return compile_kernel(kernel, capability, types, **form_constants, **constants)


@gpus
@row_forms
@results
def test_the_solver_of_short_rows_compiles(
    capability: int, form: RowForm, result: dict[str, object]
) -> None:
    kernel, own_types = triton_short_rows.solve_short, {"rows": INTEGER}
    assert compile_solver(kernel, capability, form, own_types, **result, **SHORT_TILE).asm["cubin"]


@gpus
@row_forms
@results
def test_the_solver_of_long_rows_compiles(
    capability: int, form: RowForm, result: dict[str, object]
) -> None:
    kernel, own_types = triton_long_rows.solve_long, {"listed_columns": INTEGERS}
    assert compile_solver(kernel, capability, form, own_types, **result, **LONG_TILE).asm["cubin"]


# --- gradients -------------------------------------------------------------------------------


def compile_gradient(
    kernel: JITFunction, capability: int, form: RowForm, own_types: dict[str, str], **tile: int
) -> CompiledKernel:
    """Compile a kernel that computes gradients of rows.

    Args:
        kernel: `gradient_short` or `gradient_long`.
        capability: compute capability of the GPU.
        form: alphas and type of the scores.
        own_types: types of the arguments that only this kernel has.
        tile: constants that only this kernel has.
    """
    tensors = ("probabilities", "incoming", "out", "alpha_out")
    types = {**dict.fromkeys(tensors, form.result_type), **form.shared_types, **own_types}
    launch = form_of(form.alpha, form.scores)
    constants = {
        "each_row": form.each_row,
        "wants_alpha": form.each_row,  # a number has no gradient
        "power": launch.jacobian_power,
        "work": launch.constants["work"],
    }
    return compile_kernel(kernel, capability, types, **constants, **tile)


@gpus
@row_forms
def test_gradients_of_short_rows_compile(capability: int, form: RowForm) -> None:
    kernel, own_types = triton_gradient_kernels.gradient_short, {"rows": INTEGER}
    assert compile_gradient(kernel, capability, form, own_types, **SHORT_GRADIENT_TILE).asm["cubin"]


@gpus
@row_forms
def test_gradients_of_long_rows_compile(capability: int, form: RowForm) -> None:
    kernel = triton_gradient_kernels.gradient_long
    assert compile_gradient(kernel, capability, form, {}, **LONG_GRADIENT_TILE).asm["cubin"]
