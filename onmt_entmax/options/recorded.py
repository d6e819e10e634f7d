"""The preprocessing that the options of a model folder describe."""

from argparse import Namespace
from collections.abc import Sequence

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.data.reader import Reader
from onmt_entmax.data.transforms import SUBWORDS, build_transforms
from onmt_entmax.options.reader import recorded_transform_options, transforms_of
from onmt_entmax.strings.task import Codec


def reader_of(
    model: LoadedModel,
    transforms: Sequence[str] | None = None,
    transform_options: Namespace | None = None,
) -> Reader:
    """Return the reader of a model's texts.

    Args:
        model: a loaded model folder.
        transforms: names of OpenNMT-py's transforms, undone on outputs; None: the subword
            transforms of the model's training.
        transform_options: their options; those of the model's training fill in the rest.

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
    return Reader(model.vocabularies, pipe, codec)
