"""The preprocessing that the options of a model folder describe."""

import warnings
from argparse import Namespace
from collections.abc import Sequence

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.config import TARGET_SYMBOLS, TargetSymbols
from onmt_entmax.data.reader import LanguageSymbols, Reader
from onmt_entmax.data.transforms import SUBWORDS, build_transforms
from onmt_entmax.options.reader import recorded_transform_options, transforms_of
from onmt_entmax.strings.task import Codec


def reader_of(
    model: LoadedModel,
    transforms: Sequence[str] | None = None,
    transform_options: Namespace | None = None,
    symbols: LanguageSymbols | None = None,
) -> Reader:
    """Return the reader of a model's texts.

    Args:
        model: a loaded model folder.
        transforms: names of OpenNMT-py's transforms, undone on outputs; None: the subword
            transforms of the model's training.
        transform_options: their options; those of the model's training fill in the rest.
        symbols: that outputs may have.

    Raises:
        OptionError: the folder records an option that is wrong.
        TransformError: a transform cannot be built.
    """
    options = transform_options or Namespace()
    if transforms is None:
        transforms = [name for name in transforms_of(model.options) if name in SUBWORDS]
    if transforms:
        where = f"{model.folder / 'config.yaml'}: options"
        recorded = recorded_transform_options(model.options, where)
        options = Namespace(**{**recorded, **vars(options)})
    pipe = build_transforms(transforms, options, model.vocabularies)
    codec = Codec.of_vocabulary(model.task, model.vocabularies.source)
    return Reader(model.vocabularies, pipe, codec, symbols)


def language_symbols(
    models: Sequence[LoadedModel], wanted: TargetSymbols | None = None
) -> LanguageSymbols | None:
    """Return the symbols that outputs of each language may have; None: all.

    A symbol may be in outputs if a training target of its language has it, of any of the models.
    Warns if these symbols are wanted, and the models do not record them.

    Args:
        models: of an ensemble.
        wanted: as `SearchTask.target_symbols`.
    """
    if (wanted or TARGET_SYMBOLS) == "any":
        return None
    recorded = [model.vocabularies.target.seen for model in models]
    languages = set.intersection(*map(set, recorded))
    if languages:
        return LanguageSymbols(
            {
                language: frozenset().union(*(each[language] for each in recorded))
                for language in languages
            }
        )
    if wanted:
        without = next(model for model, seen in zip(models, recorded, strict=True) if not seen)
        warnings.warn(
            f"target_symbols: {without.folder} does not record the target symbols of languages "
            "(its training had no languages, or subwords, or was by an earlier version): no "
            "symbols are excluded",
            stacklevel=3,
        )
    return None
