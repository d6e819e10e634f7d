"""Make the reader that a model's texts need, by the training options in its folder."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.data.language_symbols import LanguageSymbols
from onmt_entmax.data.reader import Reader
from onmt_entmax.data.subwords import SUBWORD_TRANSFORMS
from onmt_entmax.data.transforms import build_transforms
from onmt_entmax.options import declared
from onmt_entmax.options.values import read_value
from onmt_entmax.strings.codec import Codec


def transforms_of(recorded: Mapping[str, Any]) -> list[str]:
    """Return the transforms of all corpora that a training read, in order.

    Args:
        recorded: all options that its model folder records.

    Returns:
        Their names, each once; none if training cannot have written these options.
    """
    with suppress(AttributeError, TypeError):  # a stranger may have written them in another form
        data = recorded.get("data") or {}
        lists = (corpus.get("transforms") or [] for corpus in (recorded, *data.values()))
        return [str(name) for name in dict.fromkeys(chain(*lists))]
    return []


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
        transform_options: options of the transforms; the training's own options fill in the rest.
        symbols: symbols that outputs of each language may have; None: all.

    Raises:
        OptionError: the folder records an option that is wrong.
        TransformError: a transform cannot be built.
    """
    options = transform_options or Namespace()
    if transforms is None:
        transforms = [name for name in transforms_of(model.options) if name in SUBWORD_TRANSFORMS]
    if transforms:
        where = f"{model.folder / 'config.yaml'}: options"
        recorded = _recorded_transform_options(model.options, where)
        options = Namespace(**{**recorded, **vars(options)})
    pipe = build_transforms(transforms, options, model.vocabularies)
    codec = Codec.of_vocabulary(model.task, model.vocabularies.source)
    return Reader(model.vocabularies, pipe, codec, symbols)


def _recorded_transform_options(recorded: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the transforms' options that a model folder records, checked like a YAML file's.

    Args:
        recorded: all options of the folder.
        where: name of the file in errors.

    Raises:
        OptionError: names the first option that is wrong.
    """
    return {
        name: read_value(option, recorded[name], f"{where}: {name}")
        if name in recorded
        else option.default
        for name, option in declared.transform_options().items()
    }
