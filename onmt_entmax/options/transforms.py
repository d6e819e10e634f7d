"""The options of OpenNMT-py's transforms, which training and decoding read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onmt_entmax.data.transforms import SUBWORDS
from onmt_entmax.opennmt import AVAILABLE_TRANSFORMS, ArgumentParser
from onmt_entmax.options.reader import canonical, read_recorded, register
from onmt_entmax.options.support import check_values


def _transform_parser() -> ArgumentParser:
    """Return a parser of all options that OpenNMT-py's transforms read."""
    parser = ArgumentParser(add_help=False)
    parser.add_argument("-share_vocab", action="store_true")
    for transform in AVAILABLE_TRANSFORMS.values():
        transform.add_options(parser)
    return parser


def transform_option_names() -> list[str]:
    """Return the names of all options that OpenNMT-py's transforms read."""
    return sorted({canonical(action) for action in register(_transform_parser()).values()})


def transforms_of(options: Mapping[str, Any]) -> list[str]:
    """Return the transforms of all corpora that a training read, in order.

    Args:
        options: all options that its model folder records.
    """
    data = options.get("data")
    corpora = data.values() if isinstance(data, dict) else ()
    own = [corpus.get("transforms") for corpus in corpora if isinstance(corpus, dict)]
    lists = [names for names in (options.get("transforms"), *own) if isinstance(names, list)]
    return list(dict.fromkeys(name for names in lists for name in names if isinstance(name, str)))


def subwords_of(options: Mapping[str, Any]) -> list[str]:
    """Return those transforms of a training that turn text into what the model reads."""
    return [name for name in transforms_of(options) if name in SUBWORDS]


def recorded_transform_options(recorded: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the transforms' options that a model folder records, checked as those of a YAML file.

    Args:
        recorded: all options of the folder.
        where: names the file in errors.

    Raises:
        OptionError: names the first option that is wrong.
    """
    options = read_recorded(_transform_parser(), recorded, where)
    check_values(options)
    return dict(options.values)
