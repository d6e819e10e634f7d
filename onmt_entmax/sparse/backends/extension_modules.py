"""Loading this package's C++ extension modules, which are optional.

They exist where the package was installed with a C++ compiler. With ``ONMT_ENTMAX_NATIVE=0`` in the
environment they are not loaded.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from types import ModuleType


def load_extension(name: str) -> ModuleType | None:
    """Return a C++ extension module by its full name, or None if it is absent or switched off.

    A module that was built for another machine or Python gives a warning, and None.
    """
    if os.environ.get("ONMT_ENTMAX_NATIVE") == "0":
        return None
    try:
        return import_module(name)
    except ModuleNotFoundError:  # installed without a compiler
        return None
    except ImportError as error:
        warnings.warn(
            f"{name} cannot be loaded, PyTorch does its work, slower: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
