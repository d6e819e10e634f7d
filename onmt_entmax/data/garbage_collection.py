"""Pause Python's garbage collector while many objects are made that all stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """Run a block without garbage collections.

    Every few hundred new lists start a collection, which visits the lists made so far. While a
    chunk of lines is read, all of them are in use, so these visits free nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
