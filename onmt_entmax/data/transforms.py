"""OpenNMT-py's transforms, and the seeding of their random choices."""

from __future__ import annotations

import ast
import os
import random
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy
import torch

from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.errors import UserError
from onmt_entmax.opennmt import (
    AVAILABLE_TRANSFORMS,
    ONMTTokenizerTransform,
    Transform,
    TransformPipe,
)
from onmt_entmax.rules import shown

T = TypeVar("T")

# Options of `onmt_tokenize` that hold a mapping as text.
_MAPPINGS = ("src_onmttok_kwargs", "tgt_onmttok_kwargs")
SUBWORDS = {"sentencepiece", "bpe", "onmt_tokenize"}  # transforms that read files
# What OpenNMT-py's transforms raise for a wrong option or a missing library or file.
_BUILD_ERRORS = (ImportError, OSError, RuntimeError, TypeError, ValueError, AssertionError)


class TransformError(UserError):
    """A transform that does not exist or cannot be built."""


def build_transforms(
    names: Sequence[str], options: Namespace, vocabularies: Vocabularies | None
) -> TransformPipe:
    """Build OpenNMT-py's transforms of these names, in order.

    Args:
        names: as in the option `transforms`.
        options: the options of all transforms; `seed` is overwritten.
        vocabularies: of the model; without them, transforms that need them are left out.

    Raises:
        TransformError: a transform does not exist, one of its options is wrong, or a library or
            file that it needs is missing.
    """
    # With a seed, every transform would reset the global generators when it is built.
    options.seed = -1
    for name in _MAPPINGS:
        if isinstance(getattr(options, name, None), str):
            setattr(options, name, _mapping(name, getattr(options, name)))
    if SUBWORDS.intersection(names):
        _check_files(options)
    tokens = None
    if vocabularies is not None:
        tokens = {
            "src": Namespace(itos=vocabularies.source.tokens),
            "tgt": Namespace(itos=vocabularies.target.tokens),
        }
    transforms = []
    for name in names:
        if name == "prefix" and not hasattr(options, "data"):
            raise TransformError(
                "the transform prefix knows training corpora alone: write the prefix into the "
                "sources, and leave it out of -transforms"
            )
        kind = _transform_class(name)
        if tokens is None and kind.require_vocab():
            continue
        try:
            transform = kind(options)
            transform.warm_up(tokens)
        except _BUILD_ERRORS as error:
            raise TransformError(f"the transform {name} cannot be made: {_reason(error)}") from None
        transforms.append(transform)
    return TransformPipe.build_from(transforms)


class SeededTokenizer(ONMTTokenizerTransform):
    """`onmt_tokenize` that samples subwords (`src_subword_alpha`) only in training.

    OpenNMT-py's transform also samples in validation and translation.
    """

    _samples = False

    def apply(
        self, example: Any, is_train: bool = False, stats: Any = None, **more: Any
    ) -> dict[str, Any]:
        """Return the example with both sides in subwords."""
        self._samples = is_train
        changed: dict[str, Any] = super().apply(example, is_train, stats, **more)
        return changed

    def _tokenize(self, tokens: Iterable[str], side: str = "src", is_train: bool = False) -> Any:
        return self.load_models[side].tokenize(" ".join(tokens), training=self._samples)[0]


def _transform_class(name: str) -> type[Transform]:
    """Return the class of a transform.

    Raises:
        TransformError: there is no transform of this name.
    """
    if name not in AVAILABLE_TRANSFORMS:
        raise TransformError(f"-transforms: no transform {name!r}")
    kind: type[Transform] = AVAILABLE_TRANSFORMS[name]
    return SeededTokenizer if kind is ONMTTokenizerTransform else kind


def _check_files(options: Namespace) -> None:
    """Refuse files that are not there, and pipes and devices, which would be read for ever.

    Raises:
        TransformError: names the first.
    """
    named = [
        (f"{side}_subword_{kind}", getattr(options, f"{side}_subword_{kind}", None))
        for side in ("src", "tgt")
        for kind in ("model", "vocab")
    ]
    for option in _MAPPINGS:
        mapping = getattr(options, option, None) or {}
        named += [(f"{option}: {key}", mapping[key]) for key in mapping if key.endswith("_path")]
    for name, path in named:
        if path and os.path.exists(path) and not os.path.isfile(path):
            raise TransformError(f"{name}: {path}: is not a regular file")
        if path and not os.path.exists(path):
            raise TransformError(f"{name}: no such file: {path} (searched in {Path.cwd()})")


def _mapping(option: str, text: str) -> dict[str, Any]:
    """Read a Python mapping from the text of an option; no code is executed.

    Raises:
        TransformError: the text is not a mapping.
    """
    try:
        mapping = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        mapping = None
    if not isinstance(mapping, dict) or not all(isinstance(key, str) for key in mapping):
        raise TransformError(
            f"{option}: expected a mapping such as {{'mode': 'space'}}, not {shown(text)}"
        )
    return mapping


def _reason(error: Exception) -> str:
    """Return in one line why a transform could not be built."""
    message = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{message} (pip install {error.name.replace('_', '-')})"
    if "model_file" in message:  # as sentencepiece calls it
        return f"{message}: src_subword_model and tgt_subword_model name them"
    return message


# --- seeding ---------------------------------------------------------------------------------

# Libraries with a random generator of their own, and the function that seeds it.
_GENERATORS = {"sentencepiece": "set_random_generator_seed", "pyonmttok": "set_random_seed"}


def has_unseeded_sampling(names: Iterable[str], options: Mapping[str, Any]) -> bool:
    """Whether transforms of these names and options sample subwords that no seed fixes.

    Newer versions of sentencepiece seed their generator differently in each process.
    """
    nbest = (options.get(f"{side}_subword_nbest", 1) for side in ("src", "tgt"))
    return "sentencepiece" in names and any(n not in (0, 1) for n in nbest)


def with_seed(seed: str, read: Callable[[], T]) -> T:
    """Call a function that applies transforms whose random numbers depend on the seed alone.

    OpenNMT-py's transforms use the global generators of Python, NumPy and PyTorch, except
    `onmt_tokenize`: pyonmttok has one generator per thread, which is seeded once, at its first use.
    Hence a new thread.
    """
    with _random_state(random.Random(seed).randrange(2**32)):
        if "pyonmttok" not in sys.modules:
            return read()
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(read).result()


@contextmanager
def _random_state(seed: int) -> Iterator[None]:
    """Seed the global generators in the block; restore those of Python, NumPy and PyTorch after it.

    `torch.manual_seed` would also seed the GPUs, whose generators draw the dropout masks.
    """
    python, array = random.getstate(), numpy.random.get_state()
    random.seed(seed)
    numpy.random.seed(seed)
    for name, function in _GENERATORS.items():
        if name in sys.modules:
            getattr(sys.modules[name], function)(seed)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            yield
    finally:
        random.setstate(python)
        numpy.random.set_state(array)
