"""Characters that training never saw, copied from the source instead of becoming unknown.

The distinct unknown characters of a sentence get numbered placeholders, `<copy1>` for the first
of them, on both sides: the model says where a character goes without a name for it (the copyable
model of Luong et al. 2015, "Addressing the Rare Word Problem in Neural Machine Translation",
section 3.1, for characters). The transform `copychars` teaches this, by hiding known characters
of some training pairs. A model whose vocabularies have placeholders uses them always: when it
trains, validates, translates and scores.

Within a sentence this renames symbols one to one, so what is proven of strings with placeholders
is proven of the strings that are read.
"""

from __future__ import annotations

import ast
import random
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
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

# The transforms of OpenNMT-py, made from their options.

# Options of `onmt_tokenize` that are mappings, given as text.
_MAPPINGS = ("src_onmttok_kwargs", "tgt_onmttok_kwargs")
# What OpenNMT-py's transforms raise where an option, a library or a file is not right.
_NOT_MADE = (ImportError, OSError, RuntimeError, TypeError, ValueError, AssertionError)


class TransformError(UserError):
    """A transform that there is not, or that cannot be made."""


def build_transforms(
    names: Sequence[str], options: Namespace, vocabularies: Vocabularies | None
) -> TransformPipe:
    """OpenNMT-py's transforms of these names, in order, with their options.

    Raises:
        TransformError: an option of a transform is wrong, or a library or file that it needs is
            missing.
    """
    # A seed would make every transform reset the global generators whenever it is built.
    options.seed = -1
    for name in _MAPPINGS:
        if isinstance(getattr(options, name, None), str):
            setattr(options, name, _mapping(name, getattr(options, name)))
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
        except _NOT_MADE as error:
            raise TransformError(f"the transform {name} cannot be made: {_reason(error)}") from None
        transforms.append(transform)
    return TransformPipe.build_from(transforms)


class SeededTokenizer(ONMTTokenizerTransform):
    """`onmt_tokenize` that drops merges (`src_subword_alpha`) in training; OpenNMT-py's does so in
    validation and in translation too."""

    _drops = False

    def apply(
        self, example: Any, is_train: bool = False, stats: Any = None, **more: Any
    ) -> dict[str, Any]:
        """The example with its two sides in subwords."""
        self._drops = is_train
        changed: dict[str, Any] = super().apply(example, is_train, stats, **more)
        return changed

    def _tokenize(self, tokens: Iterable[str], side: str = "src", is_train: bool = False) -> Any:
        return self.load_models[side].tokenize(" ".join(tokens), training=self._drops)[0]


def _transform_class(name: str) -> type[Transform]:
    """The class of a transform of OpenNMT-py, or what takes its place here.

    Raises:
        TransformError: there is none of this name.
    """
    if name not in AVAILABLE_TRANSFORMS:
        raise TransformError(f"-transforms: no transform {name!r}")
    kind: type[Transform] = AVAILABLE_TRANSFORMS[name]
    return SeededTokenizer if kind is ONMTTokenizerTransform else kind


def _mapping(option: str, text: str) -> dict[str, Any]:
    """The mapping that an option holds as Python writes it; nothing is executed.

    Raises:
        TransformError: it is something else.
    """
    try:
        mapping = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        mapping = None
    if not isinstance(mapping, dict) or not all(isinstance(key, str) for key in mapping):
        raise TransformError(
            f"{option}: expected a mapping such as {{'mode': 'space'}}, not {text!r}"
        )
    return mapping


def _reason(error: Exception) -> str:
    """Why a transform could not be made, in one line."""
    message = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{message} (pip install {error.name.replace('_', '-')})"
    if "model_file" in message:  # sentencepiece's own word for it
        return f"{message}: src_subword_model and tgt_subword_model name them"
    return message


@dataclass(frozen=True)
class Copying:
    """What the placeholders of one sentence stand for."""

    symbols: Mapping[str, str]
    """The placeholder of each character that has one."""

    def hide(self, tokens: Iterable[str]) -> list[str]:
        """The tokens with placeholders, as the model reads and writes them."""
        return [self.symbols.get(token, token) for token in tokens]

    def show(self, tokens: Iterable[str]) -> list[str]:
        """The tokens with characters; a placeholder that stands for nothing stays."""
        characters = {symbol: character for character, symbol in self.symbols.items()}
        return [characters.get(token, token) for token in tokens]


def copying(source: Sequence[str], vocabularies: Vocabularies) -> Copying:
    """Placeholders for the unknown characters of a source, in the order they come.

    A character is a token of one code point; an unknown tag or word stays unknown. So does a
    character that one vocabulary has (else two outputs would be the same string), and so do
    characters beyond the last placeholder.
    """
    free = [s for s in vocabularies.target.copy_symbols if s in vocabularies.source]
    if not free:
        return Copying({})
    unknown = dict.fromkeys(
        token
        for token in source
        if len(token) == 1 and not any(token in vocabulary for vocabulary in vocabularies)
    )
    free = [symbol for symbol in free if symbol not in source]  # the transform may have used some
    return Copying(dict(zip(unknown, free, strict=False)))


@register_transform("copychars")
class CopyCharacters(Transform):
    """Hides some characters of some training pairs, so that the model learns to copy.

    A character may be hidden if it occurs as often in the target as in the source: it can have
    been copied. Rarer ones are likelier: in proportion to their place in the vocabulary, which is
    ordered by frequency, and frequency falls about as 1 / place. Half of the chosen pairs hide one
    character, a quarter two, and so on.
    """

    _places: Mapping[str, int] = {}

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """The options of the transform."""
        add = parser.add_argument_group("Transform/Copychars").add_argument
        add("-copy_symbols", type=int, default=4, help="How many placeholders there are.")
        add("-copy_rate", type=float, default=0.1, help="Part of the training pairs to change.")

    @classmethod
    def get_specials(cls, opts: Any) -> tuple[set[str], set[str]]:
        """The placeholders, for both sides."""
        symbols = {COPY_SYMBOL.format(i) for i in range(1, opts.copy_symbols + 1)}
        return symbols, set(symbols)

    def warm_up(self, vocabs: Any = None) -> None:
        """Learn which characters are known; without vocabularies nothing is hidden."""
        super().warm_up(vocabs)
        if vocabs is not None:
            places = {token: place for place, token in enumerate(vocabs["src"].itos, 1)}
            known = places.keys() & vocabs["tgt"].itos
            self._places = {token: places[token] for token in known if len(token) == 1}

    def apply(
        self, example: dict[str, Any], is_train: bool = False, stats: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        """The pair, or while training now and then one with characters hidden."""
        if not is_train or not self._places or random.random() >= self.opts.copy_rate:
            return example
        counts = Counter(example["tgt"])
        candidates = [
            token
            for token, count in Counter(example["src"]).items()
            if token in self._places and counts[token] == count
        ]
        number = 1
        while number < self.opts.copy_symbols and random.random() < 0.5:
            number += 1
        # Without replacement, by weight (Efraimidis and Spirakis 2006).
        keys = {token: random.random() ** (1 / self._places[token]) for token in candidates}
        drawn = set(sorted(candidates, key=keys.__getitem__)[-number:])
        ordered = [token for token in candidates if token in drawn]
        hidden = Copying({token: COPY_SYMBOL.format(i) for i, token in enumerate(ordered, 1)})
        return example | {"src": hidden.hide(example["src"]), "tgt": hidden.hide(example["tgt"])}


# What transforms draw: from the seed alone, and subwords in training alone.
#
# The transforms of OpenNMT-py draw from the global generators of Python, NumPy and PyTorch, but for
# two: `onmt_tokenize` from one of pyonmttok, of which each thread has its own, seeded before its
# first draw and never again; and `sentencepiece` from one that newer versions begin differently in
# each process.

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
