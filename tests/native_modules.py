"""The C++ modules in tests: fail where one was not built, and run under one instruction set."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest


def assert_built(module: ModuleType | None) -> None:
    """Fail if a module is missing although it can be built: nothing else but speed shows that."""
    if sys.platform != "linux" or not (shutil.which("c++") or shutil.which("g++")):
        pytest.skip("no C++ compiler, or not Linux")
    if os.environ.get("ONMT_ENTMAX_NATIVE") == "0":
        pytest.skip("the native module is switched off")
    assert module is not None, "install the package again: pip install -e ."


@contextmanager
def with_instruction_set(module: ModuleType | None, number: int) -> Iterator[None]:
    """Let a module use an instruction set; skip the test if the processor has none such.

    Args:
        module: the C++ module.
        number: 1: that of every processor; 2: AVX2; 3: AVX-512.
    """
    if module is None:
        pytest.skip("not built")
    best = module.use_instruction_set()  # without a number: the best one, which it returns
    if number > best:
        pytest.skip(f"this processor has instruction sets up to {best}")
    module.use_instruction_set(number)
    try:
        yield
    finally:
        module.use_instruction_set()
