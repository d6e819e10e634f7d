"""What tests of native modules share: that they are there, and every instruction set."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest


def assert_built(module: ModuleType | None) -> None:
    """A module is there where it can be built: an installation without it would only be slow."""
    if sys.platform != "linux" or not (shutil.which("c++") or shutil.which("g++")):
        pytest.skip("no C++ compiler, or not Linux")
    if os.environ.get("ONMT_ENTMAX_NATIVE") == "0":
        pytest.skip("the native module is switched off")
    assert module is not None, "install the package again: pip install -e ."


def under(module: ModuleType | None, number: int) -> Iterator[int]:
    """What a fixture yields while a module runs under an instruction set, if there is that one."""
    assert module is not None
    best = module.use_instruction_set()
    if number > best:
        pytest.skip(f"this processor has instruction sets up to {best}")
    module.use_instruction_set(number)
    yield number
    module.use_instruction_set()
