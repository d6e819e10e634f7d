"""Many lists at once, without garbage collections in between."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Suspend Python's garbage collector, which many new lists would start again and again.

    Each collection looks through the lists, none of which is garbage yet.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
