"""Fixtures that choose an implementation of entmax, and two that fail if PyTorch steps in."""

import warnings
from collections.abc import Iterator

import pytest
import torch

from onmt_entmax.sparse import backends
from tests.sparse.implementations import CPU, GPU, KERNEL_DEVICE, device_of, only

_NONE = pytest.param("none", marks=pytest.mark.skip("Triton's interpreter replaces them"))


@pytest.fixture(params=[*CPU, *GPU])
def implementation(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each implementation in turn, by name. Triton computes only for tensors on `device`."""
    with only(request.param):
        yield request.param


@pytest.fixture
def device(implementation: str) -> str:
    """The device of the tensors for which `implementation` computes."""
    return device_of(implementation)


@pytest.fixture(params=CPU or [_NONE])
def cpu_implementation(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each implementation on a CPU in turn, by name: PyTorch, C++ with each instruction set."""
    with only(request.param):
        yield request.param


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
