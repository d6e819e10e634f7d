"""The transforms of OpenNMT-py, made from their options."""

from __future__ import annotations

import ast
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import Any

from onmt_entmax.errors import UserError
from onmt_entmax.opennmt import (
    AVAILABLE_TRANSFORMS,
    ONMTTokenizerTransform,
    Transform,
    TransformPipe,
)
from onmt_entmax.text.vocabulary import Vocabularies

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
