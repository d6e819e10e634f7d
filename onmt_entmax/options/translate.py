"""The options of `translate.py`: OpenNMT-py's and ours."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.opennmt import AVAILABLE_TRANSFORMS, ArgumentParser, translate_opts
from onmt_entmax.options.reader import canonical, read_options, register
from onmt_entmax.options.support import (
    REFUSED_IN_TRANSLATION,
    check_values,
    refuse_unsupported,
)
from onmt_entmax.options.train import transform_option_names
from onmt_entmax.search import SearchConfig


@dataclass(frozen=True)
class TranslationSetup:
    """Everything that `translate.py` was asked for."""

    models: tuple[Path, ...]
    src: Path
    output: Path
    exactness_report: Path | None
    search: SearchConfig
    batch_size: int
    gpu: int | None
    transforms: tuple[str, ...]
    transform_options: Namespace  # those given here; a model's own options fill in the rest


def translation_parser() -> ArgumentParser:
    """OpenNMT-py's translation options and ours."""
    parser = ArgumentParser(description="Translate with certificates.", prog="translate.py")
    group = parser.add_argument_group("Configuration")
    group.add_argument("-config", "--config", help="YAML file with any of these options.")
    translate_opts(parser, dynamic=True)
    ours = parser.add_argument_group("onmt_entmax")
    ours.add_argument(
        "-exactness_report",
        default=None,
        help="Write what is proven about every sentence to this file of JSON lines.",
    )
    ours.add_argument(
        "-stop",
        default="exhaustive",
        choices=["exhaustive", "optimal", "first"],
        help="When a sentence is done: all outputs found, the best proven, or OpenNMT-py's habit.",
    )
    return parser


def translation_setup(arguments: Sequence[str]) -> TranslationSetup:
    """Read the command line of `translate.py`.

    Raises:
        OptionError: the first thing that is not right, in one line.
    """
    parser = translation_parser()
    defaults = {canonical(action): action.default for action in register(parser).values()}
    options = read_options(parser, arguments)
    refuse_unsupported(options, REFUSED_IN_TRANSLATION, defaults)
    check_values(options)
    if options["data_type"] != "text":
        raise options.error("data_type", "only text is supported")
    if options["batch_type"] != "sents":
        raise options.error("batch_type", "only sents is supported for translation")
    source = Path(options["src"])
    if not source.is_file():
        raise options.error("src", f"no such file: {source}")
    for name in options["transforms"]:
        if name not in AVAILABLE_TRANSFORMS:
            raise options.error("transforms", f"no transform {name!r}")
    given = {name: options[name] for name in transform_option_names() if options.given(name)}
    report = options["exactness_report"]
    return TranslationSetup(
        models=tuple(Path(name) for name in options["model"]),
        src=source,
        output=Path(options["output"]),
        exactness_report=None if report is None else Path(report),
        search=SearchConfig(
            beam_size=options["beam_size"],
            n_best=options["n_best"],
            max_length=options["max_length"],
            stop=options["stop"],
        ),
        batch_size=options["batch_size"],
        gpu=options["gpu"] if options["gpu"] >= 0 else None,
        transforms=tuple(options["transforms"]),
        transform_options=Namespace(**given),
    )
