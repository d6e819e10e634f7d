"""The GPU kernels: checked in Triton's interpreter (or on a GPU), and compiled for GPUs."""

from pathlib import Path

import pytest

from tests.commands import check_kernels, python

pytest.importorskip("triton", reason="the GPU kernels need Triton")

# Every form, both sizes of rows, compiled to machine code for Ampere and Hopper, without a GPU.
COMPILE = """
import triton.language as tl, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from onmt_entmax.sparse.backends import triton_kernels as kernels

def compiled(kernel, capability, types, **constants):
    # Triton 3.2 takes them in the kernel's order.
    types = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    source = ASTSource(kernel, types, constants)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32)).asm["cubin"]

of_alpha = dict(inner="i32", count="i32")
for capability in (80, 90):
    for power, log_form, number in ((2, False, "*fp32"), (0, False, "*fp32"), (0, True, "*fp32"),
                                    (0, True, "*fp64")):
        work = tl.float64 if number == "*fp64" else tl.float32
        each = dict(alpha="*fp32" if log_form else "i64", **of_alpha)
        types = dict(scores="*bf16", out=number, shifted=number, maxima=number, n="i32") | each
        form = dict(log_form=log_form, power=power, work=work, each_row=log_form)
        for result, conjugate in (("probabilities", True), ("logs", False)):
            made = form | dict(result=result, conjugate=conjugate)
            assert compiled(kernels.solve_short, capability, types | dict(rows="i32"),
                            height=4, width=128, **made)
            assert compiled(kernels.solve_long, capability, types | dict(columns="*i32"),
                            width=2048, room=256, **made)
        types = dict(probabilities=number, incoming=number, out=number, alpha_out=number, n="i32")
        form = dict(each_row=log_form, power=power, of_alpha=log_form, work=work)
        assert compiled(kernels.gradient_long, capability, types | each, width=512, **form)
        assert compiled(kernels.gradient_short, capability, types | each | dict(rows="i32"),
                        height=4, width=64, **form)
"""


COMPILE_ATTENTION = """
import triton.language as tl, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from onmt_entmax.sparse.backends import triton_attention_kernels as kernels
from onmt_entmax.sparse.backends.triton_attention import bytes_of_one_block

def compiled(kernel, capability, types, **constants):
    # Triton 3.2 takes them in the kernel's order.
    types = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    source, target = ASTSource(kernel, types, constants), GPUTarget("cuda", capability, 32)
    made = triton.compile(source, target=target, options={"num_warps": 4})
    # What forward() compares with the device's, or what every GPU since Ampere has.
    size = 4 if given == "*fp32" else 2
    one_block = constants.get("single", False)
    room = bytes_of_one_block(constants["width"], constants, size) if one_block else 101_376
    assert made.metadata.shared <= room, (made.metadata.shared, room)
    return made.asm["cubin"]

names = [f"{of}_{stride}" for of in ("query", "key", "value", "mask")
         for stride in ("outer", "head", "row")]
names += "mask_column heads total_heads queries keys size value_size".split()
for capability, given, precision in ((80, "*bf16", "tf32"), (90, "*bf16", "tf32"),
                                     (80, "*fp32", "tf32x3")):
    for each, power in ((False, 2), (True, 0)):
        known = "*fp32"
        types = dict(query=given, key=given, value=given, mask="*u8", seed="*i64",
                     alpha="*fp32" if each else "i64", statistics=known)
        types |= {name: "i32" for name in names} | dict(scale="fp32", dropped="fp32")
        block = 64 if given == "*bf16" and not each else 32
        form = dict(each_head=each, log_form=each, power=power, masking="booleans",
                    has_dropout=True, precision=precision, height=block, wide=64, value_wide=64)
        for single, width in ((True, 128), (True, 64), (False, block)):
            assert compiled(kernels.attend, capability, types | dict(out=given), single=single,
                            width=width, **form)
        types |= dict(upstream=given, means=known)
        of = dict(query_grad=given, alpha_grad=known)
        assert compiled(kernels.gradient_of_queries, capability, types | of, of_alpha=each,
                        width=block, **form)
        of = dict(key_grad=given, value_grad=given)
        assert compiled(kernels.gradient_of_keys, capability, types | of, width=block, **form)
"""


@pytest.mark.parametrize("part", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_in_the_interpreter_or_on_a_gpu(part: str) -> None:
    names = ("kernel_checks.py", "test_conformance.py", "attention_kernel_checks.py")
    files = [f"tests/sparse/{name}" for name in names]
    check_kernels("-m", part, "-k", "Triton or kernel_checks", *files)


@pytest.mark.slow
@pytest.mark.parametrize("code", [COMPILE, COMPILE_ATTENTION], ids=["rows", "attention"])
def test_compile_for_gpus_that_are_not_here(code: str, tmp_path: Path) -> None:
    pytest.importorskip("triton.backends.nvidia", reason="Triton without its NVIDIA compiler")
    python("-c", code, TRITON_CACHE_DIR=str(tmp_path), TRITON_INTERPRET="0")
