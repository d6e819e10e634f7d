"""Build OpenNMT-py's transforms from options, apply them to pairs, and undo them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from onmt_entmax.data.subwords import REPLACED, SUBWORD_TRANSFORMS
from onmt_entmax.data.transform_options import (
    TransformError,
    read_mappings,
    refuse_missing_files,
    refuse_types_without_model,
)
from onmt_entmax.data.vocabulary import STRUCTURAL, Vocabularies
from onmt_entmax.opennmt import AVAILABLE_TRANSFORMS, Transform, TransformPipe


class TextPair(NamedTuple):
    """The tokens of the texts of source and target, after the transforms."""

    source: list[str]
    target: list[str]


class Pipe(TransformPipe):
    """Transforms in order, which are undone from the last to the first."""

    def tokens(
        self,
        source: str,
        target: str,
        *,
        corpus: str,
        is_train: bool = False,
        drop_empty: bool = False,
    ) -> TextPair | None:
        """Split two texts at white space, and transform them.

        Args:
            source: the source of a line.
            target: its target; when translating, the beginning of an output, mostly empty.
            corpus: its name.
            is_train: whether transforms may change texts at random.
            drop_empty: whether a pair is dropped if one side becomes empty, as in training. This is
                checked after each transform, since those that draw tokens fail on an empty side.

        Returns:
            The pair; None if it is dropped.
        """
        words = {"src": source.split(), "tgt": target.split()}
        example: Any = {**words, "src_original": words["src"], "tgt_original": words["tgt"]}
        for transform in self.transforms:
            example = transform.apply(
                example, is_train=is_train, stats=self.statistics, corpus_name=corpus
            )
            if example is None:
                return None
            if drop_empty and not (example["src"] and example["tgt"]):
                return None
        return TextPair(example["src"], example["tgt"])

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
        names: the names in the option `transforms`.
        options: the options of all transforms, which are checked even if none is named.
        vocabularies: the vocabularies of the model; without them, transforms that need them are
            left out.

    Raises:
        TransformError: a transform does not exist, one of its options is wrong, or a library or
            file that it needs is missing.
    """
    # With a seed, every transform would reset the global generators when it is built.
    settings = Namespace(**vars(options) | read_mappings(options) | {"seed": -1})
    if SUBWORD_TRANSFORMS.intersection(names):
        refuse_missing_files(settings)
        refuse_types_without_model(settings)
    tokens = None if vocabularies is None else _tokens_by_side(vocabularies)
    kinds = {name: _kind_of(name, settings) for name in names}  # all exist, before any is built
    return Pipe.build_from(
        [
            _build(name, kinds[name], settings, tokens)
            for name in names
            if tokens is not None or not kinds[name].require_vocab()
        ]
    )


def _tokens_by_side(vocabularies: Vocabularies) -> dict[str, Namespace]:
    """Return the tokens of both sides as transforms read them.

    The model's own symbols are left out: the transform `switchout` replaces tokens by any of these.
    """
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
