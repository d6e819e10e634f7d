"""Each implementation of entmax, one after the other."""

import os
import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import backends, reference
from onmt_entmax.sparse.backends import cpu
from tests.native_modules import InstructionSet, with_instruction_set

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
CPP = {
    "C++": InstructionSet.OF_EVERY_PROCESSOR,
    "C++ AVX2": InstructionSet.AVX2,
    "C++ AVX-512": InstructionSet.AVX512,
}
CPU = [] if INTERPRETED else ["PyTorch", *CPP]
GPU = ["Triton"] if INTERPRETED or torch.cuda.is_available() else []
KERNEL_DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # of the GPU kernels


@pytest.fixture(params=[*CPU, *GPU])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The device on which an implementation works, C++ with each instruction set.

    test_kernels.py runs Triton, in its interpreter where there is no GPU.
    """
    implementation = request.param
    if implementation in CPP:
        with with_instruction_set(cpu.module, CPP[implementation]):
            yield "cpu"
        return
    if implementation == "PyTorch":
        monkeypatch.setattr(backends, "backend_for", lambda *_: reference)
    yield "cuda" if implementation == "Triton" and torch.cuda.is_available() else "cpu"


@pytest.fixture
def kernels_are_there() -> None:
    """Fail if PyTorch would compute in place of the GPU kernels."""
    from onmt_entmax.sparse.backends import triton  # which not every machine has

    assert backends.backend_for(torch.zeros(1, 2, device=KERNEL_DEVICE), 1.5) is triton


@pytest.fixture
def no_tracer_warnings() -> Iterator[None]:
    """Fail if PyTorch warns that a trace may be wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", torch.jit.TracerWarning)
        yield


def forms_of_alpha(alpha: float, rows: Tensor) -> tuple[float | Tensor, ...]:
    """Return alpha as a number, and as a tensor with one for each of the rows ``(rows, n)``."""
    alphas = torch.full((len(rows), 1), alpha, dtype=torch.float64, device=rows.device)
    return alpha, alphas.requires_grad_()
