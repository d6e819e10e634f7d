"""Seed transforms, so that their random choices are the same in every process and at any time."""

import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy
import torch

T = TypeVar("T")


def with_seed(seed: str, read: Callable[[], T]) -> T:
    """Call a function that applies transforms, and return what it returns.

    OpenNMT-py's transforms use the global generators of Python, NumPy and PyTorch, whose states are
    restored, also after an error. Libraries of subwords have their own: pyonmttok, like older
    versions of sentencepiece, has a generator for each thread, and seeds it at its first use only.
    Hence the new thread.

    Args:
        seed: any text; the same one gives the same random numbers.
        read: called without arguments.
    """
    number = random.Random(seed).randrange(2**32)
    python_state, numpy_state = random.getstate(), numpy.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]), ThreadPoolExecutor(1) as thread:
            _seed_generators(number)
            return thread.submit(read).result()
    finally:
        random.setstate(python_state)
        numpy.random.set_state(numpy_state)


def _seed_generators(number: int) -> None:
    """Seed all generators that transforms use; libraries that are not imported need no seed."""
    random.seed(number)
    numpy.random.seed(number)
    # `torch.manual_seed` would also seed the GPUs, whose generators draw dropout masks.
    torch.default_generator.manual_seed(number)
    if "sentencepiece" in sys.modules:
        sys.modules["sentencepiece"].set_random_generator_seed(number)
    if "pyonmttok" in sys.modules:
        sys.modules["pyonmttok"].set_random_seed(number)
