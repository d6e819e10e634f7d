"""The GPU kernels: checked in Triton's interpreter (or on a GPU), and compiled for GPUs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton", reason="the GPU kernels need Triton")
ROOT = Path(__file__).parent.parent.parent

# Every form, both sizes of rows, compiled to machine code for Ampere and Hopper, without a GPU.
COMPILE = """
import triton.language as tl, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from onmt_entmax.sparse.backends import triton_kernels as kernels

def compiled(kernel, capability, types, **constants):
    types = types | {name: "constexpr" for name in constants}
    source = ASTSource(kernel, types, constants)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32)).asm["cubin"]

of_alpha = dict(inner="i32", count="i32")
rows = dict(scores="*bf16", out="*fp32", shifted="*fp32", maxima="*fp32") | of_alpha
loss = dict(scores="*bf16", target="*i64", class_weights="*fp32", weight_sum="*fp32",
            losses="*fp32", statistics="*fp32", alpha="i64", ignore_index="i32",
            smoothing="fp32", rows="i32", n="i32")
for capability in (80, 90):
    for power, log_form, work in ((2, False, tl.float32), (0, False, tl.float32),
                                  (-1, False, tl.float32), (0, True, tl.float64),
                                  (0, True, tl.float32)):
        threshold = "*fp64" if work == tl.float64 else "*fp32"
        each_row = log_form
        form = dict(log_form=log_form, power=power, work=work)
        types = rows | dict(thresholds=threshold, alpha="*fp32" if each_row else "i64")
        part = "all" if not each_row else "steep" if work == tl.float64 else "flat"
        for result, of in (("probabilities", part), ("logs", "all"), ("", "all")):
            assert compiled(kernels.solve_short, capability, types | dict(rows="i32", n="i32"),
                            result=result, part=of, each_row=each_row, height=4, width=64,
                            tiles=8 if of == "steep" else 1, **form)
        assert compiled(kernels.solve_long, capability, types | dict(columns="*i32", n="i32"),
                        result="probabilities", part=part, each_row=each_row, width=2048, room=256,
                        **form)
        types = dict(scores="*bf16", out="*bf16", maxima="*fp32", thresholds=threshold,
                     alpha=types["alpha"], factors="*fp32", n="i32")
        assert compiled(kernels.write_probabilities, capability, types, scaled=True,
                        each_row=each_row, width=512, **form)
        if work == tl.float64:
            continue
        plain = power == 2
        form |= dict(weighted=not plain, smooth=not plain)
        assert compiled(kernels.loss_short, capability, loss, height=4, width=64, **form)
        assert compiled(kernels.loss_long, capability, loss | dict(columns="*i32"), width=512,
                        room=256, **form)
        types = loss | dict(upstream="*fp32", divisor="*fp32", out="*bf16")
        del types["losses"]
        assert compiled(kernels.loss_gradient, capability, types, each=not plain, mean=plain,
                        height=1, width=512, **form)
    assert compiled(kernels.reduce_losses, capability,
                    dict(losses="*fp32", weights="*fp32", out="*bf16", divisor="*fp32",
                         rows="i32"), mean=True, width=512)
    types = dict(probabilities="*fp32", incoming="*fp32", out="*bf16", alpha_out="*fp32", n="i32")
    for above_two in (False, True):
        types |= of_alpha | dict(alpha="*fp32" if above_two else "i64")
        form = dict(each_row=above_two, power=0, above_two=above_two, of_alpha=above_two,
                    work=tl.float32)
        assert compiled(kernels.gradient_long, capability, types, width=512, **form)
        assert compiled(kernels.gradient_short, capability, types | dict(rows="i32"),
                        height=4, width=64, **form)
"""


COMPILE_ATTENTION = """
import triton.language as tl, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from onmt_entmax.sparse.backends import triton_attention_kernels as kernels

def compiled(kernel, capability, types, **constants):
    types = types | {name: "constexpr" for name in constants}
    source, target = ASTSource(kernel, types, constants), GPUTarget("cuda", capability, 32)
    made = triton.compile(source, target=target, options={"num_warps": 4})
    # What a block may have on every GPU since Ampere.
    assert made.metadata.shared <= 101_376, made.metadata.shared
    return made.asm["cubin"]

names = [f"{of}_{stride}" for of in ("query", "key", "value", "mask")
         for stride in ("outer", "head", "row")]
names += "mask_column heads total_heads queries keys size value_size".split()
for capability, given, precision in ((80, "*bf16", "tf32"), (90, "*bf16", "tf32"),
                                     (80, "*fp32", "tf32x3")):
    for part, power, work in (("all", 2, tl.float32), ("flat", 0, tl.float32),
                              ("steep", 0, tl.float64)):
        each = part != "all"
        known = "*fp64" if each else "*fp32"
        types = dict(query=given, key=given, value=given, mask="*u8", seed="*i64",
                     alpha="*fp32" if each else "i64", statistics=known)
        types |= {name: "i32" for name in names} | dict(scale="fp32", dropped="fp32")
        block = 64 if given == "*bf16" and not each else 32
        form = dict(each_head=each, part=part, log_form=each, power=power, work=work,
                    masking="booleans", has_dropout=True, precision=precision, height=block,
                    wide=64, value_wide=64)
        for single in (True, False):
            assert compiled(kernels.attend, capability, types | dict(out=given), single=single,
                            width=128 if single else block, **form)
        types |= dict(upstream=given, means=known)
        of = dict(query_grad=given, alpha_grad=known)
        assert compiled(kernels.gradient_of_queries, capability, types | of, of_alpha=each,
                        width=block, **form)
        of = dict(key_grad=given, value_grad=given)
        assert compiled(kernels.gradient_of_keys, capability, types | of, width=block, **form)
"""


def run(*command: str, **environment: str) -> None:
    """Run Python in the repository; what it printed is in the failure if it fails."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.parametrize("part", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_in_the_interpreter_or_on_a_gpu(part: str) -> None:
    interpreted = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    names = ("kernel_checks.py", "test_conformance.py", "attention_kernel_checks.py")
    files = [f"tests/sparse/{name}" for name in names]
    run("-m", "pytest", "-m", part, *files, **interpreted)


@pytest.mark.slow
@pytest.mark.parametrize("code", [COMPILE, COMPILE_ATTENTION], ids=["rows", "attention"])
def test_compile_for_gpus_that_are_not_here(code: str, tmp_path: Path) -> None:
    pytest.importorskip("triton.backends.nvidia", reason="Triton without its NVIDIA compiler")
    run("-c", code, TRITON_CACHE_DIR=str(tmp_path), TRITON_INTERPRET="0")
