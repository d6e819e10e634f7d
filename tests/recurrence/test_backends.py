"""Steps in C++ and in Triton against PyTorch."""

import pytest
import torch

from onmt_entmax.recurrence.backends.native import NativeBackend, native
from tests.commands import check_kernels
from tests.recurrence.backend_checks import check_attention, check_cells

needs_native = pytest.mark.skipif(native is None, reason="the native module was not built")
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
dropout = pytest.mark.parametrize("factors", [False, True], ids=["plain", "dropout"])


@needs_native
@dtypes
@dropout
def test_native_cells(factors: bool, dtype: torch.dtype) -> None:
    check_cells(NativeBackend, (), factors, "cpu", dtype)


@needs_native
@dtypes
@dropout
@pytest.mark.parametrize("alpha", [1.0, 1.33, 1.5, 2.0])
@pytest.mark.parametrize("source", [13, 515])
def test_native_attention(source: int, alpha: float, factors: bool, dtype: torch.dtype) -> None:
    check_attention(NativeBackend, alpha, factors, source, "cpu", dtype)


def test_kernels_in_the_interpreter_or_on_a_gpu() -> None:
    pytest.importorskip("triton")
    check_kernels("tests/recurrence/backend_checks.py")
