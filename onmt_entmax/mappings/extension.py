"""Modules written in C++, which are there where the package was built with a compiler."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType


def load(name: str) -> ModuleType | None:
    """A native module of this package, if it was built and is wanted."""
    if os.environ.get("ONMT_ENTMAX_NATIVE") == "0":
        return None
    try:
        return import_module(name)
    except ImportError:
        return None
