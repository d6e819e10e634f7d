"""What transforms draw: from the seed alone, and subwords in training alone.

The transforms of OpenNMT-py draw from the global generators of Python, NumPy and PyTorch, but for
two: `onmt_tokenize` from one of pyonmttok, of which each thread has its own, seeded before its
first draw and never again; and `sentencepiece` from one that newer versions begin differently in
each process.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy
import torch

T = TypeVar("T")

# Libraries that draw, with what seeds the generator inside them.
_GENERATORS = {"sentencepiece": "set_random_generator_seed", "pyonmttok": "set_random_seed"}


def draws_of_each_process(names: Iterable[str], options: Mapping[str, Any]) -> bool:
    """Whether transforms of these names and options draw what no seed decides."""
    nbest = (options.get(f"{side}_subword_nbest", 1) for side in ("src", "tgt"))
    return "sentencepiece" in names and any(n not in (0, 1) for n in nbest)


def drawn(seed: str, read: Callable[[], T]) -> T:
    """What a function returns that reads text, with transforms that draw from this seed alone."""
    with _random_state(random.Random(seed).randrange(2**32)):
        if "pyonmttok" not in sys.modules:
            return read()
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(read).result()


@contextmanager
def _random_state(seed: int) -> Iterator[None]:
    """Seed the global generators; restore after it those that others draw from.

    `torch.manual_seed` would reach the generators of GPUs too, which draw dropout masks.
    """
    python, array = random.getstate(), numpy.random.get_state()
    generator = torch.default_generator
    tensors = generator.get_state()
    random.seed(seed)
    numpy.random.seed(seed)
    generator.manual_seed(seed)
    for name, function in _GENERATORS.items():
        if name in sys.modules:
            getattr(sys.modules[name], function)(seed)
    try:
        yield
    finally:
        random.setstate(python)
        numpy.random.set_state(array)
        generator.set_state(tensors)
