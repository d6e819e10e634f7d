"""Helpers of the native modules' tests: whether they are built, and each instruction set."""

import os
import shutil
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest


def assert_built(module: ModuleType | None) -> None:
    """Fail if a module is missing although it can be built: only speed would show that."""
    if sys.platform != "linux" or not (shutil.which("c++") or shutil.which("g++")):
        pytest.skip("no C++ compiler, or not Linux")
    if os.environ.get("ONMT_ENTMAX_NATIVE") == "0":
        pytest.skip("the native module is switched off")
    assert module is not None, "install the package again: pip install -e ."


def under(module: ModuleType | None, number: int) -> Iterator[int]:
    """Yield from a fixture while a module uses an instruction set; skip if there is none such."""
    assert module is not None
    best = module.use_instruction_set()
    if number > best:
        pytest.skip(f"this processor has instruction sets up to {best}")
    module.use_instruction_set(number)
    yield number
    module.use_instruction_set()
