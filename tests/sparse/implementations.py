"""The implementations of entmax that can run in this process, by their names in ids of tests."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from onmt_entmax.sparse import backends, reference
from onmt_entmax.sparse.backends import cpu
from tests.native_modules import InstructionSet, with_instruction_set

# Whether the GPU kernels run in Triton's interpreter, on CPU tensors. Then they replace all other
# implementations.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
CPP = {
    "C++": InstructionSet.OF_EVERY_PROCESSOR,
    "C++ AVX2": InstructionSet.AVX2,
    "C++ AVX-512": InstructionSet.AVX512,
}
# The names of implementations for tensors on a CPU, and of those for tensors on `KERNEL_DEVICE`.
CPU = [] if INTERPRETED else ["PyTorch", *CPP]
GPU = ["Triton"] if INTERPRETED or torch.cuda.is_available() else []
KERNEL_DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # of the GPU kernels


@contextmanager
def only(implementation: str) -> Iterator[None]:
    """Let one implementation compute; skip the test if this machine cannot run it.

    Triton needs tensors on `KERNEL_DEVICE`, where it computes by default; the others need tensors
    on a CPU.

    Args:
        implementation: one of `CPU` or `GPU`.
    """
    assert implementation in (*CPU, *GPU), implementation
    if implementation in CPP:
        with with_instruction_set(cpu.module, CPP[implementation]):
            yield
    elif implementation == "PyTorch":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(backends, "backend_for", lambda *_: reference)
            yield
    else:
        yield


def device_of(implementation: str) -> str:
    """Return the device of the tensors for which an implementation computes."""
    return KERNEL_DEVICE if implementation in GPU else "cpu"
