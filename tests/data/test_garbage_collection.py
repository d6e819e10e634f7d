"""Blocks in which Python collects no garbage, or only that of the block itself."""

import gc
from collections.abc import Iterator

import pytest

from onmt_entmax.data.garbage_collection import frozen_heap, without_collections

# --- without collections ---


@pytest.fixture
def collecting() -> Iterator[None]:
    """Enable collections, whatever a test does with them."""
    gc.enable()
    yield
    gc.enable()


@pytest.mark.usefixtures("collecting")
def test_collections_are_off_in_the_block() -> None:
    with without_collections():
        assert not gc.isenabled()


@pytest.mark.usefixtures("collecting")
def test_collections_are_on_again_after_the_block() -> None:
    with without_collections():
        pass
    assert gc.isenabled()


@pytest.mark.usefixtures("collecting")
def test_collections_are_on_again_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), without_collections():
        raise ZeroDivisionError
    assert gc.isenabled()


@pytest.mark.usefixtures("collecting")
def test_collections_that_the_caller_disabled_stay_off() -> None:
    gc.disable()
    with without_collections():
        pass
    assert not gc.isenabled()


# --- a frozen heap ---


@pytest.fixture
def unfrozen() -> Iterator[None]:
    """Release what conftest.py has frozen, until the end of the test."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("unfrozen")
def test_objects_that_exist_are_frozen_in_the_block() -> None:
    with frozen_heap():
        assert gc.get_freeze_count() > 0


@pytest.mark.usefixtures("unfrozen")
def test_objects_are_released_after_the_block() -> None:
    with frozen_heap():
        pass
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("unfrozen")
def test_objects_that_the_caller_has_frozen_stay_frozen() -> None:
    """The tests' conftest.py does so: it freezes the objects of libraries once, for all tests."""
    gc.freeze()
    with frozen_heap():
        pass
    assert gc.get_freeze_count() > 0
