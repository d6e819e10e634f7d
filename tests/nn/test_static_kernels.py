"""Triton's kernels in trainings with fixed shapes: interpreted or run on a GPU, and compiled."""

from pathlib import Path

import pytest

from tests.commands import check_kernels, python

pytest.importorskip("triton", reason="the GPU kernels need Triton")


def test_kernels_compute_the_definition() -> None:
    check_kernels("tests/nn/static_kernel_checks.py")


@pytest.mark.slow
def test_kernels_compile_for_gpus_that_are_not_here(tmp_path: Path) -> None:
    pytest.importorskip("triton.backends.nvidia", reason="Triton without its NVIDIA compiler")
    compiler = {"TRITON_CACHE_DIR": str(tmp_path), "TRITON_INTERPRET": "0"}
    python("-m", "pytest", "-q", "tests/nn/static_compile_checks.py", **compiler)


def test_triton_is_not_imported_on_a_cpu() -> None:
    python(
        "-c",
        "import sys, onmt_entmax.train.update; "
        "names = [n for n in sys.modules if n.startswith('onmt_entmax.')]; "
        "found = {name for name in names if name.endswith('.triton')}; "
        "assert not found and 'triton.language' not in sys.modules, found",
        TRITON_INTERPRET="0",
    )
