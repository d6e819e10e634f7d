"""The GPU kernels can be compiled to machine code, which needs no GPU.

Not collected by itself: test_kernels.py runs this with Triton's compiler, not its interpreter.
Arguments and constants have their names in the modules of the kernels, which explain them.
"""

from typing import Any, NamedTuple

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel

from onmt_entmax.sparse.backends import triton_attention_kernels as attention_kernels
from onmt_entmax.sparse.backends import triton_kernels as row_kernels
from onmt_entmax.sparse.backends.triton_attention import bytes_of_one_block

AMPERE, HOPPER = 80, 90  # compute capabilities
INTEGER, FLOAT = "i32", "fp32"
FLOATS, DOUBLES, HALVES = "*fp32", "*fp64", "*bf16"  # pointers


def compile_kernel(
    kernel: Any,
    capability: int,
    types: dict[str, str],
    options: dict[str, Any] | None = None,
    **constants: Any,
) -> CompiledKernel:
    """Compile a kernel for a GPU; fail if there is no machine code.

    Args:
        kernel: a function of Triton.
        capability: of the GPU.
        types: of the kernel's arguments, by their names; all others are constants.
        options: of the compiler.
        constants: values of the kernel's constants.
    """
    # Triton 3.2 takes the types in the kernel's order.
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    source = ASTSource(kernel, signature, constants)
    threads_of_a_warp = 32
    target = GPUTarget("cuda", capability, threads_of_a_warp)
    kernel_on_a_gpu = triton.compile(source, target=target, options=options)
    assert kernel_on_a_gpu.asm["cubin"]
    return kernel_on_a_gpu


# --- rows ------------------------------------------------------------------------------------


class RowForm(NamedTuple):
    """How the kernels of rows compute."""

    power: int
    """1 / (alpha - 1), if it is a whole number; else 0."""
    each_row: bool
    """Whether each row has its own alpha."""
    numbers: str
    """Type of the results."""

    @property
    def work(self) -> Any:
        """The type in which the kernel computes."""
        return tl.float64 if self.numbers == DOUBLES else tl.float32

    @property
    def constants(self) -> dict[str, Any]:
        """The constants that all kernels of rows have."""
        return {"each_row": self.each_row, "power": self.power, "work": self.work}

    @property
    def types_of_alpha(self) -> dict[str, str]:
        alpha = FLOATS if self.each_row else "i64"
        return {"alpha": alpha, "inner": INTEGER, "count": INTEGER}


ROW_FORMS = {
    "alpha 1.5": RowForm(power=2, each_row=False, numbers=FLOATS),
    "any alpha": RowForm(power=0, each_row=False, numbers=FLOATS),
    "an alpha for each row": RowForm(power=0, each_row=True, numbers=FLOATS),
    "an alpha for each row, in float64": RowForm(power=0, each_row=True, numbers=DOUBLES),
}
row_forms = pytest.mark.parametrize("form", ROW_FORMS.values(), ids=list(ROW_FORMS))
gpus = pytest.mark.parametrize("capability", [AMPERE, HOPPER], ids=["Ampere", "Hopper"])
RESULTS = {
    "probabilities": {"result": "probabilities", "conjugate": True},
    "logarithms": {"result": "logs", "conjugate": False},
}
results = pytest.mark.parametrize("result", RESULTS.values(), ids=list(RESULTS))


def compile_solver(
    kernel: Any, capability: int, form: RowForm, types: dict[str, str], **constants: Any
) -> CompiledKernel:
    results = dict.fromkeys(("out", "shifted", "maxima"), form.numbers)
    return compile_kernel(
        kernel,
        capability,
        {"scores": HALVES, "n": INTEGER, **results, **form.types_of_alpha, **types},
        log_form=form.each_row,  # as `form_of` has it: alphas of a tensor may be near 1
        **form.constants,
        **constants,
    )


def compile_gradient(
    kernel: Any, capability: int, form: RowForm, types: dict[str, str], **constants: Any
) -> CompiledKernel:
    names = ("probabilities", "incoming", "out", "alpha_out")
    return compile_kernel(
        kernel,
        capability,
        {"n": INTEGER, **dict.fromkeys(names, form.numbers), **form.types_of_alpha, **types},
        of_alpha=form.each_row,
        **form.constants,
        **constants,
    )


@gpus
@row_forms
@results
def test_short_rows(capability: int, form: RowForm, result: dict[str, Any]) -> None:
    types = {"rows": INTEGER}
    compile_solver(row_kernels.solve_short, capability, form, types, height=4, width=128, **result)


@gpus
@row_forms
@results
def test_long_rows(capability: int, form: RowForm, result: dict[str, Any]) -> None:
    types = {"columns": "*i32"}
    compile_solver(row_kernels.solve_long, capability, form, types, width=2048, room=256, **result)


@gpus
@row_forms
def test_gradients_of_short_rows(capability: int, form: RowForm) -> None:
    types = {"rows": INTEGER}
    compile_gradient(row_kernels.gradient_short, capability, form, types, height=4, width=64)


@gpus
@row_forms
def test_gradients_of_long_rows(capability: int, form: RowForm) -> None:
    compile_gradient(row_kernels.gradient_long, capability, form, {}, width=512)


# --- attention -------------------------------------------------------------------------------

SHARED_MEMORY = 101_376  # bytes that a program has on every GPU since Ampere
WIDTH_OF_ROWS = 64  # columns of a tile of queries, keys or values


class AttentionForm(NamedTuple):
    """How the kernels of attention compute."""

    capability: int
    inputs: str
    """Type of queries, keys and values."""
    precision: str
    """Of matrix products."""
    each_head: bool
    """Whether each head has its own alpha; else all have 1.5."""

    @property
    def block(self) -> int:
        """Queries, or keys, that are computed together."""
        return 64 if self.inputs == HALVES and not self.each_head else 32


ATTENTION_FORMS = {
    f"{gpu}, {alphas}": AttentionForm(capability, inputs, precision, each_head)
    for gpu, capability, inputs, precision in (
        ("Ampere in bfloat16", AMPERE, HALVES, "tf32"),
        ("Hopper in bfloat16", HOPPER, HALVES, "tf32"),
        ("Ampere in float32", AMPERE, FLOATS, "tf32x3"),
    )
    for alphas, each_head in (("alpha 1.5", False), ("an alpha for each head", True))
}
attention_forms = pytest.mark.parametrize(
    "form", ATTENTION_FORMS.values(), ids=list(ATTENTION_FORMS)
)


def compile_attention(
    kernel: Any, form: AttentionForm, types: dict[str, str], **changes: Any
) -> CompiledKernel:
    """Compile a kernel for a form of attention.

    Args:
        kernel: a function of Triton.
        form: of the attention.
        types: of the arguments that not all kernels of attention have.
        changes: constants that not all kernels have, or that differ from the form's.
    """
    strides = [
        f"{tensor}_{axis}"
        for tensor in ("query", "key", "value", "mask")
        for axis in ("outer", "head", "row")
    ]
    strides.append("mask_column")
    sizes = ("heads", "total_heads", "queries", "keys", "size", "value_size")
    constants = {
        "each_head": form.each_head,
        "log_form": form.each_head,
        "power": 0 if form.each_head else 2,
        "masking": "booleans",
        "has_dropout": True,
        "precision": form.precision,
        "height": form.block,
        "width": form.block,
        "wide": WIDTH_OF_ROWS,
        "value_wide": WIDTH_OF_ROWS,
    }
    return compile_kernel(
        kernel,
        form.capability,
        {
            **dict.fromkeys(("query", "key", "value"), form.inputs),
            "mask": "*u8",
            "seed": "*i64",
            "alpha": FLOATS if form.each_head else "i64",
            "statistics": FLOATS,
            **dict.fromkeys((*strides, *sizes), INTEGER),
            "scale": FLOAT,
            "dropped": FLOAT,
            **types,
        },
        {"num_warps": 4},
        **{**constants, **changes},
    )


@attention_forms
@pytest.mark.parametrize("width", [64, 128])
def test_all_keys_in_one_block(form: AttentionForm, width: int) -> None:
    """In no more shared memory than `forward` expects, which decides whether it takes one block."""
    kernel = compile_attention(
        attention_kernels.attend, form, {"out": form.inputs}, single=True, width=width
    )
    sizes = {
        "precision": form.precision,
        "wide": WIDTH_OF_ROWS,
        "value_wide": WIDTH_OF_ROWS,
    }
    itemsize = 4 if form.inputs == FLOATS else 2
    assert kernel.metadata.shared <= bytes_of_one_block(width, sizes, itemsize)


@attention_forms
def test_keys_in_several_blocks(form: AttentionForm) -> None:
    kernel = compile_attention(attention_kernels.attend, form, {"out": form.inputs}, single=False)
    assert kernel.metadata.shared <= SHARED_MEMORY


@attention_forms
def test_gradients_of_queries(form: AttentionForm) -> None:
    types = {"upstream": form.inputs, "means": FLOATS, "query_grad": form.inputs}
    kernel = compile_attention(
        attention_kernels.gradient_of_queries,
        form,
        {**types, "alpha_grad": FLOATS},
        of_alpha=form.each_head,
    )
    assert kernel.metadata.shared <= SHARED_MEMORY


@attention_forms
def test_gradients_of_keys(form: AttentionForm) -> None:
    types = {"upstream": form.inputs, "means": FLOATS}
    kernel = compile_attention(
        attention_kernels.gradient_of_keys,
        form,
        {**types, "key_grad": form.inputs, "value_grad": form.inputs},
    )
    assert kernel.metadata.shared <= SHARED_MEMORY
