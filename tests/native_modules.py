"""Tests of C++ modules: fail if a module was not built, or run it with one instruction set."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from types import ModuleType

import pytest


class InstructionSet(IntEnum):
    """Instructions that a C++ module may use; its `use_instruction_set` takes the numbers."""

    OF_EVERY_PROCESSOR = 1
    AVX2 = 2
    AVX512 = 3


def assert_built(module: ModuleType | None) -> None:
    """Fail if a module is missing although it can be built: otherwise only speed would show it."""
    if sys.platform != "linux" or not (shutil.which("c++") or shutil.which("g++")):
        pytest.skip("no C++ compiler, or not Linux")
    if os.environ.get("ONMT_ENTMAX_NATIVE") == "0":
        pytest.skip("the native module is switched off")
    assert module is not None, "install the package again: pip install -e ."


@contextmanager
def with_instruction_set(module: ModuleType | None, instructions: InstructionSet) -> Iterator[None]:
    """Let a C++ module use an instruction set; skip the test if the processor does not have it."""
    if module is None:
        pytest.skip("not built")
    best = InstructionSet(module.use_instruction_set())  # the best that the processor has
    if instructions > best:
        pytest.skip(f"this processor has instruction sets up to {best.name}")
    module.use_instruction_set(int(instructions))
    try:
        yield
    finally:
        module.use_instruction_set()
