"""The kernels of the static path: checked in Triton's interpreter or on a GPU, and compiled."""

from pathlib import Path

import pytest

from tests.commands import check_kernels, python

pytest.importorskip("triton", reason="the GPU kernels need Triton")

# Machine code for Ampere and Hopper, without a GPU.
COMPILE = """
import triton.language as tl, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from onmt_entmax.recurrence.backends import triton as lstm

# Arguments that are not pointers to float32.
TYPES = {"targets": "*i64", "lengths": "*i64", "supports": "*i32", "columns": "*i32",
         "alpha": "i64", "rows": "i32", "n": "i32", "size": "i32", "source": "i32"}

def check(kernel, **constants):
    types = {}
    for name in kernel.arg_names:
        stride = name.endswith(("_step", "_row"))
        types[name] = "constexpr" if name in constants else "i32" if stride else "*fp32"
        types[name] = TYPES.get(name, types[name])
    for capability in (80, 90):
        source = ASTSource(kernel, types, constants)
        target = GPUTarget("cuda", capability, 32)
        assert triton.compile(source, target=target).asm["cubin"]

for scaled in (False, True):
    cell = dict(hidden=300, scaled=scaled, width=512)
    check(lstm._cell_forward_kernel, **cell)
    check(lstm._cell_backward_kernel, **cell)
    attend = dict(hidden=300, scaled=scaled, height=32, width=256)
    check(lstm._attend_backward_kernel, power=2, **attend)
    for power, log_form in ((-1, False), (0, False), (2, False), (0, True)):
        form = dict(power=power, log_form=log_form, work=tl.float32)
        check(lstm._attend_kernel, **attend, **form)
"""


def test_in_the_interpreter_or_on_a_gpu() -> None:
    check_kernels("tests/nn/static_kernel_checks.py")


@pytest.mark.slow
def test_compile_for_gpus_that_are_not_here(tmp_path: Path) -> None:
    pytest.importorskip("triton.backends.nvidia", reason="Triton without its NVIDIA compiler")
    python("-c", COMPILE, TRITON_CACHE_DIR=str(tmp_path), TRITON_INTERPRET="0")


def test_triton_is_not_imported_on_a_cpu() -> None:
    python(
        "-c",
        "import sys, onmt_entmax.train.update; "
        "names = [n for n in sys.modules if n.startswith('onmt_entmax.')]; "
        "found = {name for name in names if name.endswith('.triton')}; "
        "assert not found and 'triton.language' not in sys.modules, found",
        TRITON_INTERPRET="0",
    )
