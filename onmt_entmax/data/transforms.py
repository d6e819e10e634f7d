"""Build OpenNMT-py's transforms from options, apply them to pairs, and undo them."""

from __future__ import annotations

import ast
import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from onmt_entmax.data.subwords import REPLACED, SUBWORD_FILES, SUBWORDS
from onmt_entmax.data.vocabulary import STRUCTURAL, Vocabularies
from onmt_entmax.errors import UserError
from onmt_entmax.files import no_such_file
from onmt_entmax.opennmt import AVAILABLE_TRANSFORMS, Transform, TransformPipe
from onmt_entmax.rules import shown

# Options of `onmt_tokenize` that hold a mapping as text.
MAPPINGS = ("src_onmttok_kwargs", "tgt_onmttok_kwargs")


class TransformError(UserError):
    """A transform that does not exist or cannot be built."""


class Pipe(TransformPipe):
    """Transforms in order, which are undone from the last to the first."""

    def tokens(
        self, source: str, target: str, corpus: str, is_train: bool = False, both: bool = False
    ) -> tuple[list[str], list[str]] | None:
        """Split two texts at white space, and transform them.

        Args:
            source: the source of a line.
            target: its target; when translating, the beginning of an output, mostly empty.
            corpus: its name.
            is_train: whether transforms may change texts at random.
            both: whether a pair with an empty side is dropped; true for training. Transforms that
                draw tokens fail on one, so this is checked after each transform.

        Returns:
            The tokens of both sides; None if the pair is dropped.
        """
        words = {"src": source.split(), "tgt": target.split()}
        pair: Any = {**words, "src_original": words["src"], "tgt_original": words["tgt"]}
        for transform in self.transforms:
            pair = transform.apply(
                pair, is_train=is_train, stats=self.statistics, corpus_name=corpus
            )
            if pair is None:
                return None
            has_empty_side = not pair["src"] or not pair["tgt"]
            if both and has_empty_side:
                return None
        return pair["src"], pair["tgt"]

    def apply_reverse(self, translated: str) -> str:
        """Return the text of target tokens, given between spaces."""
        for transform in reversed(self.transforms):
            translated = transform.apply_reverse(translated)
        return translated


def build_transforms(
    names: Sequence[str], options: Namespace, vocabularies: Vocabularies | None
) -> Pipe:
    """Build OpenNMT-py's transforms of these names, in order.

    Args:
        names: as in the option `transforms`.
        options: the options of all transforms, which are checked even if none is named.
        vocabularies: the vocabularies of the model; without them, transforms that need them are
            left out.

    Raises:
        TransformError: a transform does not exist, one of its options is wrong, or a library or
            file that it needs is missing.
    """
    # With a seed, every transform would reset the global generators when it is built.
    read = Namespace(**vars(options) | _read_mappings(options) | {"seed": -1})
    if SUBWORDS.intersection(names):
        _refuse_missing_files(read)
        _refuse_types_without_model(read)
    tokens = None if vocabularies is None else _tokens_by_side(vocabularies)
    kinds = {name: _kind_of(name, read) for name in names}  # all exist, before any is built
    return Pipe.build_from(
        [
            _build(name, kinds[name], read, tokens)
            for name in names
            if tokens is not None or not kinds[name].require_vocab()
        ]
    )


def _read_mappings(options: Namespace) -> dict[str, dict[str, Any]]:
    """Return the options of `onmt_tokenize` that hold a mapping as text, as mappings.

    Raises:
        TransformError: one is no mapping, or names a file, which model folders would not keep.
    """
    mappings = {}
    for name in MAPPINGS:
        text = getattr(options, name, None)
        if not isinstance(text, str):  # absent, or a mapping already
            continue
        mapping = _read_mapping(text)
        if mapping is None:
            raise TransformError(
                f"{name}: expected a mapping such as {{'mode': 'space'}}, not {shown(text)}"
            )
        side = name.removesuffix("_onmttok_kwargs")
        for key in mapping:
            if key.endswith("_path"):
                files = f"{side}_subword_model or {side}_subword_vocab"
                raise TransformError(f"{name}: {key}: name it in {files}, which model folders keep")
        mappings[name] = mapping
    return mappings


def _read_mapping(text: str) -> dict[str, Any] | None:
    """Return a mapping in Python's notation; None if the text is something else."""
    try:
        mapping = ast.literal_eval(text)  # executes no code
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    if isinstance(mapping, dict) and all(isinstance(key, str) for key in mapping):
        return mapping
    return None


def _refuse_missing_files(options: Namespace) -> None:
    """Refuse subword files that are not there, and pipes and devices, which never end.

    Raises:
        TransformError: names the first.
    """
    for name in SUBWORD_FILES:
        path = getattr(options, name, None)
        if path and not os.path.isfile(path):
            raise TransformError(f"{name}: {no_such_file(path)}")


def _refuse_types_without_model(options: Namespace) -> None:
    """Refuse a type of subwords without their model: pyonmttok would leave words whole.

    Raises:
        TransformError: names the first.
    """
    for side in ("src", "tgt"):
        kind, model = f"{side}_subword_type", f"{side}_subword_model"
        shared = side == "tgt" and options.share_vocab  # the source's tokeniser serves both
        if getattr(options, kind, "none") != "none" and not getattr(options, model) and not shared:
            raise TransformError(f"{kind}: needs {model}, or words stay whole")


def _tokens_by_side(vocabularies: Vocabularies) -> dict[str, Namespace]:
    """Return the tokens of both sides as transforms read them."""
    # `switchout` writes any of these tokens in the place of others.
    return {
        side: Namespace(itos=[token for token in vocabulary.tokens if token not in STRUCTURAL])
        for side, vocabulary in zip(("src", "tgt"), vocabularies, strict=True)
    }


def _kind_of(name: str, options: Namespace) -> type[Transform]:
    """Return the class of a transform.

    Raises:
        TransformError: it does not exist, or not here.
    """
    if name == "prefix" and not hasattr(options, "data"):
        raise TransformError(
            "the transform prefix knows training corpora alone: write the prefix into the "
            "sources, and leave it out of -transforms"
        )
    if name not in AVAILABLE_TRANSFORMS:
        raise TransformError(f"-transforms: no transform {name!r}")
    return REPLACED.get(name, AVAILABLE_TRANSFORMS[name])


def _build(
    name: str,
    kind: type[Transform],
    options: Namespace,
    tokens: Mapping[str, Namespace] | None,
) -> Transform:
    """Return a transform that is ready to be applied.

    Args:
        name: the name of the transform, for errors.
        kind: its class.
        options: the options of all transforms.
        tokens: the tokens of both sides, as `itos`; None if they are unknown.

    Raises:
        TransformError: the transform cannot be made.
    """
    try:
        transform = kind(options)
        transform.warm_up(tokens)
    # OpenNMT-py asserts, and raises ValueError; the others are what libraries of subwords raise for
    # files and settings that they cannot use.
    except (ImportError, OSError, RuntimeError, TypeError, ValueError, AssertionError) as error:
        raise TransformError(f"the transform {name} cannot be made: {_reason(error)}") from None
    return transform


def _reason(error: Exception) -> str:
    """Return why a transform cannot be made, in one line, and what to do about it."""
    lines = str(error).strip().splitlines()
    reason = lines[0] if lines else type(error).__name__
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{reason} (pip install {error.name.replace('_', '-')})"
    if "model_file" in reason:  # as sentencepiece calls it
        return f"{reason}: src_subword_model and tgt_subword_model name them"
    return reason
