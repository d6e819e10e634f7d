"""Errors of exhausted memory become one line that says what is too large, and what to do."""

import pytest
import torch

from onmt_entmax.exhaustion import TooLargeError, exhaustion, named_exhaustion

ONEDNN_FAILURE = "could not create a primitive"

# --- which errors mean exhausted memory ---


def allocation_error() -> RuntimeError:
    """Return the error of PyTorch for a tensor that no memory can hold."""
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    return caught.value


def test_the_size_of_a_failed_allocation_is_named() -> None:
    text = exhaustion(allocation_error())
    assert text == "does not fit in memory (needs 1,152,921,504.6 GB more)"


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(MemoryError(), id="of Python"),
        pytest.param(torch.OutOfMemoryError("CUDA out of memory. Tried"), id="of a GPU"),
        pytest.param(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED"), id="of cuBLAS"),
        pytest.param(RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), id="of cuDNN"),
        pytest.param(RuntimeError(ONEDNN_FAILURE), id="of oneDNN"),
    ],
)
def test_a_failed_allocation_of_unknown_size_is_recognised(error: Exception) -> None:
    assert exhaustion(error) == "does not fit in memory (an allocation failed)"


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(RuntimeError("shapes differ"), id="another text"),
        pytest.param(ValueError("out of memory"), id="another class"),
    ],
)
def test_other_errors_do_not_mean_exhausted_memory(error: Exception) -> None:
    assert exhaustion(error) is None


# --- what the user reads ---


def test_exhausted_memory_gets_a_name_and_advice() -> None:
    line = r"^line 3: does not fit in memory \(.*\); split it$"
    with pytest.raises(TooLargeError, match=line), named_exhaustion(lambda: "line 3", "split it"):
        raise RuntimeError(ONEDNN_FAILURE)


def test_other_errors_stay_as_they_are() -> None:
    error = RuntimeError("shapes differ")
    with pytest.raises(RuntimeError) as raised, named_exhaustion(lambda: "line 3", ""):
        raise error
    assert raised.value is error
