"""Compile the GPU kernels to machine code, which needs a compiler and no GPU."""

from typing import Any

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel

AMPERE, HOPPER = 80, 90  # compute capabilities
THREADS_OF_A_WARP = 32

# Types of arguments, as Triton writes them: numbers, and pointers to numbers.
INTEGER, LONG_INTEGER, FLOAT = "i32", "i64", "fp32"
FLOATS, DOUBLES, HALVES = "*fp32", "*fp64", "*bf16"
INTEGERS, LONG_INTEGERS, BYTES = "*i32", "*i64", "*u8"
# What a kernel takes for an alpha that all rows share: the bits of alpha - 1 in float64.
ALPHA_OF_ALL = LONG_INTEGER

gpus = pytest.mark.parametrize("capability", [AMPERE, HOPPER], ids=["Ampere", "Hopper"])


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
        capability: compute capability of the GPU.
        types: types of the kernel's arguments, by their names; all others are constants.
        options: options of the compiler.
        constants: values of the kernel's constants.
    """
    # Triton 3.2 takes the types in the kernel's order.
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    source = ASTSource(kernel, signature, constants)
    target = GPUTarget("cuda", capability, THREADS_OF_A_WARP)
    compiled = triton.compile(source, target=target, options=options)
    assert compiled.asm["cubin"]
    return compiled
