"""Each implementation of entmax, one after the other."""

import os
from collections.abc import Iterator

import pytest
import torch

from onmt_entmax.sparse import backends, reference
from onmt_entmax.sparse.backends import cpu
from tests.native_modules import under

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


GPU = ["Triton"] if INTERPRETED or torch.cuda.is_available() else []
CPU = [] if INTERPRETED else ["PyTorch", "C++ 1", "C++ 2", "C++ 3"]


@pytest.fixture(params=[*CPU, *GPU])
def device(request: pytest.FixtureRequest, monkeypatch) -> Iterator[str]:
    """The device on which an implementation works, C++ with each instruction set.

    test_kernels.py runs Triton, in its interpreter where there is no GPU.
    """
    name = request.param
    if name == "PyTorch":
        monkeypatch.setattr(backends, "of", lambda *_: reference)
    if name.startswith("C++"):
        if cpu.module is None:
            pytest.skip("not built")
        for _ in under(cpu.module, int(name[-1])):
            yield "cpu"
    else:
        yield "cuda" if name == "Triton" and torch.cuda.is_available() else "cpu"
