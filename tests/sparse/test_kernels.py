"""The GPU kernels: run in Triton's interpreter or on a GPU, and compiled for GPUs."""

from pathlib import Path

import pytest

from tests.commands import check_kernels, python

pytest.importorskip("triton", reason="the GPU kernels need Triton")


@pytest.mark.parametrize("speed", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_kernels_compute_the_definition(speed: str) -> None:
    """In Triton's interpreter, or on a GPU if there is one."""
    checks = (
        "kernel",
        "kernel_choice",
        "attention_kernel",
        "attention_dropout_kernel",
        "attention_fallback",
    )
    tests = (
        "conformance",
        "solve",
        "decimals",
        "published_algorithms",
        "support",
        "broken_rows",
        "layout",
        "arguments",
    )
    names = [f"{name}_checks" for name in checks] + [f"test_{name}" for name in tests]
    files = [f"tests/sparse/{name}.py" for name in names]
    check_kernels("-m", speed, "-k", "Triton or _checks", *files)


@pytest.mark.slow
def test_kernels_compile_for_ampere_and_hopper(tmp_path: Path) -> None:
    pytest.importorskip("triton.backends.nvidia", reason="Triton without its NVIDIA compiler")
    compiler = {"TRITON_CACHE_DIR": str(tmp_path), "TRITON_INTERPRET": "0"}
    files = [f"tests/sparse/compile_{kind}_checks.py" for kind in ("row", "attention")]
    python("-m", "pytest", "-q", *files, **compiler)
