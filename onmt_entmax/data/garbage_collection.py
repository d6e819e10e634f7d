"""Keep Python's garbage collector away from objects that stay in use."""

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


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Exclude the objects that exist before a block from the collections inside it.

    A training or a search makes new objects at each step, and so starts many collections. They
    would visit all modules, data and layers, which live as long as the block.
    """
    before = gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not before:  # else this would also release what the caller has frozen
            gc.unfreeze()
