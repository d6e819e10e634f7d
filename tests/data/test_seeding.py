"""Random choices that depend on a seed alone, and leave the caller's generators as they are."""

import random
import sys
from types import SimpleNamespace

import numpy
import pytest
import torch

from onmt_entmax.data.seeding import with_seed


def numbers() -> list[float]:
    """Draw a number of each generator that transforms use."""
    return [random.random(), numpy.random.random(), torch.rand(()).item()]


def states() -> list[str]:
    """Return the states of these generators."""
    arrays = numpy.random.get_state()[1]
    return [repr(random.getstate()), repr(list(arrays)), repr(torch.get_rng_state().tolist())]


def test_equal_seeds_give_equal_numbers() -> None:
    assert with_seed("a", numbers) == with_seed("a", numbers)


def test_another_seed_changes_the_numbers_of_each_generator() -> None:
    pairs = zip(with_seed("a", numbers), with_seed("b", numbers), strict=True)
    assert all(first != second for first, second in pairs)


def test_the_generators_of_the_caller_do_not_change() -> None:
    before = states()
    with_seed("a", numbers)
    assert states() == before


def test_an_error_of_the_function_leaves_the_generators() -> None:
    before = states()
    with pytest.raises(ZeroDivisionError):
        with_seed("a", lambda: random.random() / 0)
    assert states() == before


def test_an_error_of_a_library_that_is_seeded_leaves_the_generators(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", SimpleNamespace())  # cannot be seeded
    before = states()
    with pytest.raises(AttributeError):
        with_seed("a", numbers)
    assert states() == before
