"""OpenNMT-py's transforms, our transform `copychars`, and the seeding of both.

`copychars` copies characters that training never saw. The distinct unknown characters of a sentence
get numbered placeholders, `<copy1>` for the first, on both sides: the model says where a character
goes without having a token for it (the copyable model of Luong et al. 2015, "Addressing the Rare
Word Problem in Neural Machine Translation", section 3.1, for characters). The transform trains this
by hiding known characters of some pairs. A model whose vocabularies have placeholders always uses
them: in training, validation, translation and scoring. Within a sentence the renaming is one to
one, so certificates of outputs with placeholders hold for the outputs with characters.
"""

from __future__ import annotations

import ast
import os
import random
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy
import torch

from onmt_entmax.data.vocabulary import COPY_SYMBOL, Vocabularies
from onmt_entmax.errors import UserError
from onmt_entmax.opennmt import (
    AVAILABLE_TRANSFORMS,
    ArgumentParser,
    ONMTTokenizerTransform,
    Transform,
    TransformPipe,
    register_transform,
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
    names: Sequence[str],
    options: Namespace,
    vocabularies: Vocabularies | None,
    trained: Path | None = None,
) -> TransformPipe:
    """Build OpenNMT-py's transforms of these names, in order.

    Args:
        names: as in the option `transforms`.
        options: the options of all transforms; `seed` is overwritten.
        vocabularies: of the model; without them, transforms that need them are left out.
        trained: folder of the model, if it is trained already.

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
        _check_files(options, trained)
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


def splits(pipe: TransformPipe) -> bool:
    """Tell whether a transform of a pipe splits text into subwords."""
    kinds = tuple(AVAILABLE_TRANSFORMS[name] for name in SUBWORDS)
    return any(isinstance(transform, kinds) for transform in pipe.transforms)


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


def _check_files(options: Namespace, trained: Path | None) -> None:
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
            above, remedy = "", ""
            if trained is not None:
                above = f" and the folders above {trained}"
                remedy = "; `onmt-entmax export`, run where training ran, makes a model to move"
            raise TransformError(
                f"{name}: no such file: {path} (searched in {Path.cwd()}{above}){remedy}"
            )


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


# --- copychars -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Copying:
    """The placeholders of one sentence and the characters that they stand for."""

    symbols: Mapping[str, str]
    """Placeholder of each hidden character."""

    def hide(self, tokens: Iterable[str]) -> list[str]:
        """Replace characters by placeholders, as the model reads and writes them."""
        return [self.symbols.get(token, token) for token in tokens]

    def show(self, tokens: Iterable[str]) -> list[str]:
        """Replace placeholders by characters; an unused placeholder stays."""
        characters = {symbol: character for character, symbol in self.symbols.items()}
        return [characters.get(token, token) for token in tokens]


def copying(source: Sequence[str], vocabularies: Vocabularies) -> Copying:
    """Assign placeholders to the unknown characters of a source, in order of occurrence.

    A character is a token of one code point. Unknown words and tags stay unknown; so do characters
    that one of the vocabularies has (otherwise two outputs would be the same text), and
    characters for which no placeholder is left.
    """
    free = [s for s in vocabularies.target.copy_symbols if s in vocabularies.source]
    if not free:
        return Copying({})
    unknown = dict.fromkeys(
        token
        for token in source
        if len(token) == 1 and not any(token in vocabulary for vocabulary in vocabularies)
    )
    free = [symbol for symbol in free if symbol not in source]  # copychars may have used some
    return Copying(dict(zip(unknown, free, strict=False)))


@register_transform("copychars")
class CopyCharacters(Transform):
    """Hide characters of some training pairs behind placeholders, so that the model learns to copy.

    A character can be hidden if it occurs equally often in source and target, as a copied one does.
    Its weight is its rank in the vocabulary, which favours rare characters: vocabularies are
    ordered by frequency, and frequency is about proportional to 1 / rank. Half of the chosen pairs
    hide one character, a quarter two, and so on.
    """

    _ranks: Mapping[str, int] = {}

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add the options of the transform."""
        add = parser.add_argument_group("Transform/Copychars").add_argument
        add("-copy_symbols", type=int, default=4, help="Number of placeholders.")
        add(
            "-copy_rate",
            type=float,
            default=0.1,
            help="Share of training pairs that get placeholders.",
        )

    @classmethod
    def get_specials(cls, opts: Any) -> tuple[set[str], set[str]]:
        """Return the placeholders, for source and target."""
        symbols = {COPY_SYMBOL.format(i) for i in range(1, opts.copy_symbols + 1)}
        return symbols, set(symbols)

    def warm_up(self, vocabs: Any = None) -> None:
        """Read the known characters; without vocabularies, nothing is hidden."""
        super().warm_up(vocabs)
        if vocabs is not None:
            ranks = {token: rank for rank, token in enumerate(vocabs["src"].itos, 1)}
            known = ranks.keys() & vocabs["tgt"].itos
            self._ranks = {token: ranks[token] for token in known if len(token) == 1}

    def apply(
        self, example: dict[str, Any], is_train: bool = False, stats: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Return the pair; in training, `copy_rate` of the pairs with hidden characters."""
        if not is_train or not self._ranks or random.random() >= self.opts.copy_rate:
            return example
        counts = Counter(example["tgt"])
        candidates = [
            token
            for token, count in Counter(example["src"]).items()
            if token in self._ranks and counts[token] == count
        ]
        number = 1
        while number < self.opts.copy_symbols and random.random() < 0.5:
            number += 1
        # Weighted sampling without replacement (Efraimidis and Spirakis 2006).
        keys = {token: random.random() ** (1 / self._ranks[token]) for token in candidates}
        chosen = set(sorted(candidates, key=keys.__getitem__)[-number:])
        ordered = [token for token in candidates if token in chosen]
        hidden = Copying({token: COPY_SYMBOL.format(i) for i, token in enumerate(ordered, 1)})
        return example | {"src": hidden.hide(example["src"]), "tgt": hidden.hide(example["tgt"])}


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
