"""The GPU kernels of attention can be compiled to machine code, in the shared memory of a GPU.

Not collected by itself: test_kernels.py runs this with Triton's compiler, not its interpreter.
The head of triton_attention_arguments.py explains each argument and constant of the kernels.
"""

from typing import Any, NamedTuple

import pytest
import torch
from triton.compiler import CompiledKernel

from onmt_entmax.sparse.backends import triton_attention_forward, triton_attention_gradients
from onmt_entmax.sparse.backends.triton_attention_blocks import bytes_of_one_block
from onmt_entmax.sparse.backends.triton_launch import form_of
from tests.sparse.compiling import (
    ALPHA_OF_ALL,
    AMPERE,
    BYTES,
    FLOAT,
    FLOATS,
    HALVES,
    HOPPER,
    INTEGER,
    LONG_INTEGERS,
    compile_kernel,
)

SHARED_MEMORY = 99 * 1024  # bytes that a program has on every GPU since Ampere
WARPS = 4  # as triton_attention.py starts the kernels
VECTOR = 64  # columns of a tile of queries, keys or values
ALPHA = 1.5
ALPHA_OF_EACH_HEAD = torch.tensor([1.2, 1.5])  # its type is enough: the compiler sees no values

# Arguments of all kernels that are whole numbers.
STRIDES = [
    *(
        f"{tensor}_{axis}_stride"
        for tensor in ("query", "key", "value", "mask")
        for axis in ("outer", "head", "row")
    ),
    "mask_column_stride",
]
SIZES = ("heads", "total_heads", "query_count", "key_count", "size", "value_size")


class AttentionForm(NamedTuple):
    """A GPU, a type and alphas: they decide which code the compiler makes of a kernel."""

    capability: int
    """Compute capability of the GPU."""
    inputs: str
    """Type of queries, keys and values."""
    precision: str
    """Input precision of matrix products."""
    alpha: float | torch.Tensor
    """A number, or one for each head."""

    @property
    def each_head(self) -> bool:
        """Whether each head has its own alpha."""
        return isinstance(self.alpha, torch.Tensor)

    @property
    def block(self) -> int:
        """Queries, or keys, that are computed together; `forward` takes as many for `VECTOR`."""
        return 64 if self.inputs == HALVES else 32

    @property
    def types(self) -> dict[str, str]:
        """The types of the arguments of all kernels."""
        return {
            **dict.fromkeys(("query", "key", "value"), self.inputs),
            "mask": BYTES,
            "seed": LONG_INTEGERS,
            "alpha": FLOATS if self.each_head else ALPHA_OF_ALL,
            "statistics": FLOATS,
            **dict.fromkeys((*STRIDES, *SIZES), INTEGER),
            "scale": FLOAT,
            "dropout_p": FLOAT,
        }

    @property
    def constants(self) -> dict[str, Any]:
        """The constants of all kernels."""
        form = form_of(self.alpha, torch.float32)
        return {
            "each_head": self.each_head,
            "log_form": form.log_form,
            "power": form.power,
            "masking": "booleans",
            "has_dropout": True,
            "precision": self.precision,
            "block_queries": self.block,
            "block_keys": self.block,
            "padded_size": VECTOR,
            "padded_value_size": VECTOR,
        }


ATTENTION_FORMS = {
    f"{gpu}, {alphas}": AttentionForm(capability, inputs, precision, alpha)
    for gpu, capability, inputs, precision in (
        ("Ampere in bfloat16", AMPERE, HALVES, "tf32"),
        ("Hopper in bfloat16", HOPPER, HALVES, "tf32"),
        ("Ampere in float32", AMPERE, FLOATS, "tf32x3"),
    )
    for alphas, alpha in (("alpha 1.5", ALPHA), ("an alpha for each head", ALPHA_OF_EACH_HEAD))
}
attention_forms = pytest.mark.parametrize(
    "form", ATTENTION_FORMS.values(), ids=list(ATTENTION_FORMS)
)


def compile_attention(
    kernel: Any, form: AttentionForm, own_types: dict[str, str], **changes: Any
) -> CompiledKernel:
    """Compile a kernel for a form of attention.

    Args:
        kernel: a function of Triton.
        form: form of the attention.
        own_types: types of the arguments that not all kernels of attention have.
        changes: constants that not all kernels have, or that differ from the form's.
    """
    types = {**form.types, **own_types}
    constants = {**form.constants, **changes}
    return compile_kernel(kernel, form.capability, types, {"num_warps": WARPS}, **constants)


@attention_forms
@pytest.mark.parametrize("width", [64, 128])
def test_a_block_of_all_keys_needs_no_more_memory_than_is_expected(
    form: AttentionForm, width: int
) -> None:
    """`forward` takes one block for all keys if what it expects fits into the GPU's memory."""
    kernel, own_types = triton_attention_forward.attend, {"out": form.inputs}
    compiled = compile_attention(kernel, form, own_types, one_block=True, block_keys=width)
    itemsize = 4 if form.inputs == FLOATS else 2
    expected = bytes_of_one_block(width, VECTOR, form.precision, itemsize)
    assert compiled.metadata.shared <= expected


@attention_forms
def test_several_blocks_of_keys_fit_into_shared_memory(form: AttentionForm) -> None:
    kernel, own_types = triton_attention_forward.attend, {"out": form.inputs}
    compiled = compile_attention(kernel, form, own_types, one_block=False)
    assert compiled.metadata.shared <= SHARED_MEMORY


@attention_forms
def test_gradients_of_queries_fit_into_shared_memory(form: AttentionForm) -> None:
    own_types = {
        "upstream": form.inputs,
        "means": FLOATS,
        "query_grad": form.inputs,
        "alpha_grad": FLOATS,
    }
    kernel = triton_attention_gradients.gradient_of_queries
    compiled = compile_attention(kernel, form, own_types, wants_alpha=form.each_head)
    assert compiled.metadata.shared <= SHARED_MEMORY


@attention_forms
def test_gradients_of_keys_fit_into_shared_memory(form: AttentionForm) -> None:
    own_types = {
        "upstream": form.inputs,
        "means": FLOATS,
        "key_grad": form.inputs,
        "value_grad": form.inputs,
    }
    compiled = compile_attention(triton_attention_gradients.gradient_of_keys, form, own_types)
    assert compiled.metadata.shared <= SHARED_MEMORY
