"""OpenNMT-py's transforms, their inverses, and the seeding of their random choices."""

from __future__ import annotations

import ast
import os
import random
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any, TypeVar

import numpy
import torch

from onmt_entmax.data.vocabulary import STRUCTURAL, Vocabularies
from onmt_entmax.errors import UserError
from onmt_entmax.files import no_such_file
from onmt_entmax.libraries import pyonmttok
from onmt_entmax.opennmt import (
    AVAILABLE_TRANSFORMS,
    BPETransform,
    DefaultTokens,
    ONMTTokenizerTransform,
    SentencePieceTransform,
    TransformPipe,
)
from onmt_entmax.rules import shown

T = TypeVar("T")

# Options of `onmt_tokenize` that hold a mapping as text.
MAPPINGS = ("src_onmttok_kwargs", "tgt_onmttok_kwargs")
# Options that name files of a subword model.
SUBWORD_FILES = tuple(
    f"{side}_subword_{kind}" for side in ("src", "tgt") for kind in ("model", "vocab")
)
SUBWORDS = {"sentencepiece", "bpe", "onmt_tokenize"}  # transforms that read files


class TransformError(UserError):
    """A transform that does not exist or cannot be built."""


def build_transforms(
    names: Sequence[str], options: Namespace, vocabularies: Vocabularies | None
) -> Pipe:
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
    for name in MAPPINGS:
        if not isinstance(text := getattr(options, name, None), str):
            continue
        try:
            mapping = ast.literal_eval(text)  # executes no code
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            mapping = None
        if not isinstance(mapping, dict) or not all(isinstance(key, str) for key in mapping):
            raise TransformError(
                f"{name}: expected a mapping such as {{'mode': 'space'}}, not {shown(text)}"
            )
        if path := next((key for key in mapping if key.endswith("_path")), None):
            files = f"{name[:3]}_subword_model or {name[:3]}_subword_vocab"
            raise TransformError(f"{name}: {path}: name it in {files}, which model folders keep")
        setattr(options, name, mapping)
    if SUBWORDS.intersection(names):
        _check_files(options)
    tokens = None
    if vocabularies is not None:
        # `switchout` writes any of these tokens in the place of others.
        tokens = {
            side: Namespace(itos=[each for each in known.tokens if each not in STRUCTURAL])
            for side, known in zip(("src", "tgt"), vocabularies, strict=True)
        }
    transforms = []
    for name in names:
        if name == "prefix" and not hasattr(options, "data"):
            raise TransformError(
                "the transform prefix knows training corpora alone: write the prefix into the "
                "sources, and leave it out of -transforms"
            )
        if name not in AVAILABLE_TRANSFORMS:
            raise TransformError(f"-transforms: no transform {name!r}")
        kind = _OWN.get(name, AVAILABLE_TRANSFORMS[name])
        if tokens is None and kind.require_vocab():
            continue
        try:
            transform = kind(options)
            transform.warm_up(tokens)
        except (ImportError, OSError, RuntimeError, TypeError, ValueError, AssertionError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            if isinstance(error, ModuleNotFoundError) and error.name:
                reason += f" (pip install {error.name.replace('_', '-')})"
            elif "model_file" in reason:  # as sentencepiece calls it
                reason += ": src_subword_model and tgt_subword_model name them"
            raise TransformError(f"the transform {name} cannot be made: {reason}") from None
        transforms.append(transform)
    return Pipe.build_from(transforms)


class Pipe(TransformPipe):
    """Transforms in order, which are undone from the last to the first."""

    def tokens(
        self, source: str, target: str, corpus: str, is_train: bool = False, both: bool = False
    ) -> tuple[list[str], list[str]] | None:
        """Split two texts at white space, and transform them.

        Args:
            source: of a line.
            target: likewise; when translating, the beginning of an output, mostly empty.
            corpus: its name.
            is_train: whether transforms may change texts at random.
            both: whether a pair with an empty side is dropped. Transforms that draw tokens fail on
                one, so this is checked after each transform.

        Returns:
            The tokens of both sides; None if the pair is dropped.
        """
        pair: Any = {"src": source.split(), "tgt": target.split()}
        pair |= {"src_original": pair["src"], "tgt_original": pair["tgt"]}
        for transform in self.transforms:
            pair = transform.apply(
                pair, is_train=is_train, stats=self.statistics, corpus_name=corpus
            )
            if pair is None or (both and not (pair["src"] and pair["tgt"])):
                return None
        return pair["src"], pair["tgt"]

    def apply_reverse(self, translated: str) -> str:
        """Return the text of target tokens, given between spaces."""
        for transform in reversed(self.transforms):
            translated = transform.apply_reverse(translated)
        return translated


class SentencePiece(SentencePieceTransform):
    """`sentencepiece`, which OpenNMT-py does not undo."""

    def apply_reverse(self, translated: str) -> str:
        """Return the text of target pieces, given between spaces; `<unk>` stays as a word."""
        model, unknown = self.load_models["tgt"], DefaultTokens.UNK
        runs = [
            " ".join(run) if is_unknown else model.decode(list(run))
            for is_unknown, run in groupby(translated.split(), unknown.__eq__)
        ]
        # Pieces that the model lacks, such as those of a copied source word, keep their mark.
        return " ".join(" ".join(runs).replace("▁", " ").split())


class Bpe(BPETransform):
    """`bpe` of subword-nmt, which OpenNMT-py does not undo."""

    def apply_reverse(self, translated: str) -> str:
        """Return the text of target pieces, given between spaces."""
        joiner = self.load_models["tgt"].separator
        return f"{translated} ".replace(f"{joiner} ", "").rstrip(" ")


class SeededTokenizer(ONMTTokenizerTransform):
    """`onmt_tokenize` that samples subwords (`src_subword_alpha`) only in training.

    OpenNMT-py's transform also samples in validation and translation.
    """

    _samples = False

    def warm_up(self, vocabs: Any = None) -> None:
        """Load the tokenisers.

        Raises:
            MissingLibraryError: pyonmttok is not installed.
        """
        pyonmttok("train with the transform sentencepiece or bpe instead of onmt_tokenize")
        super().warm_up(vocabs)

    def apply(
        self, example: Any, is_train: bool = False, stats: Any = None, **more: Any
    ) -> dict[str, Any]:
        """Return the example with both sides in subwords."""
        self._samples = is_train
        return super().apply(example, is_train, stats, **more)

    def _tokenize(self, tokens: Iterable[str], side: str = "src", is_train: bool = False) -> Any:
        return self.load_models[side].tokenize(" ".join(tokens), training=self._samples)[0]


# Transforms in place of OpenNMT-py's of these names.
_OWN = {"sentencepiece": SentencePiece, "bpe": Bpe, "onmt_tokenize": SeededTokenizer}


def _check_files(options: Namespace) -> None:
    """Refuse files that are not there, and pipes and devices, which would be read for ever.

    Raises:
        TransformError: names the first.
    """
    for name in SUBWORD_FILES:
        path = getattr(options, name, None)
        if path and not os.path.isfile(path):
            raise TransformError(f"{name}: {no_such_file(path)}")
    for side in ("src", "tgt"):
        kind, model = f"{side}_subword_type", f"{side}_subword_model"
        shared = side == "tgt" and options.share_vocab  # the source's tokeniser serves both
        if getattr(options, kind, "none") != "none" and not getattr(options, model) and not shared:
            raise TransformError(f"{kind}: needs {model}, or words stay whole")


# --- seeding ---------------------------------------------------------------------------------


def with_seed(seed: str, read: Callable[[], T]) -> T:
    """Call a function that applies transforms whose random numbers depend on the seed alone.

    OpenNMT-py's transforms use the global generators of Python, NumPy and PyTorch, except those of
    subwords: pyonmttok, as older versions of sentencepiece, has one generator per thread, which is
    seeded once, at its first use. Hence a new thread.
    """
    number = random.Random(seed).randrange(2**32)
    python, array = random.getstate(), numpy.random.get_state()
    random.seed(number)
    numpy.random.seed(number)
    # Libraries with a random generator of their own.
    if "sentencepiece" in sys.modules:
        sys.modules["sentencepiece"].set_random_generator_seed(number)
    if "pyonmttok" in sys.modules:
        sys.modules["pyonmttok"].set_random_seed(number)
    try:
        with torch.random.fork_rng(devices=[]), ThreadPoolExecutor(1) as thread:
            # `torch.manual_seed` would also seed the GPUs, whose generators draw dropout masks.
            torch.default_generator.manual_seed(number)
            return thread.submit(read).result()
    finally:
        random.setstate(python)
        numpy.random.set_state(array)
