"""Steps in C++ and in Triton against PyTorch."""

import pytest
import torch

from onmt_entmax.recurrence.backends.native import NativeBackend, native
from tests.commands import check_kernels
from tests.recurrence.attention_checks import check_attention
from tests.recurrence.backend_checks import with_and_without_dropout
from tests.recurrence.cell_checks import check_cells

needs_native = pytest.mark.skipif(native is None, reason="the native module was not built")
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])


@needs_native
@dtypes
@with_and_without_dropout
def test_cells_in_cpp_equal_those_of_pytorch(has_dropout: bool, dtype: torch.dtype) -> None:
    check_cells(NativeBackend, has_dropout=has_dropout, device="cpu", dtype=dtype)


# C++ finds the support of 512 scores or more by blocks.
@needs_native
@dtypes
@with_and_without_dropout
@pytest.mark.parametrize("alpha", [1.0, 1.33, 1.5, 2.0])
@pytest.mark.parametrize(
    "source_length", [pytest.param(13, id="a short source"), pytest.param(515, id="in blocks")]
)
def test_attention_in_cpp_equals_that_of_pytorch(
    source_length: int, alpha: float, has_dropout: bool, dtype: torch.dtype
) -> None:
    check_attention(
        NativeBackend,
        alpha=alpha,
        has_dropout=has_dropout,
        source_length=source_length,
        device="cpu",
        dtype=dtype,
    )


def test_steps_in_triton_equal_those_of_pytorch() -> None:
    """In Triton's interpreter, or on a GPU if there is one."""
    pytest.importorskip("triton")
    check_kernels("tests/recurrence/triton_checks.py")
