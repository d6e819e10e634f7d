"""Blocks that garbage collection leaves alone."""

import gc

from onmt_entmax.data.garbage_collection import frozen_heap


def test_objects_that_the_caller_has_frozen_stay_frozen() -> None:
    """conftest.py does so: it freezes the libraries' objects once, for all tests."""
    gc.freeze()
    with frozen_heap():
        pass
    assert gc.get_freeze_count() > 0
