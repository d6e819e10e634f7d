"""Read the options of `translate`: check them, and turn them into a search task and files.

`translate_table.py` declares them, and `translate_replacements.py` replaces options of OpenNMT-py
that are others here.
"""

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.config import ConfigError, declared
from onmt_entmax.data.phrase_table import read_phrase_table
from onmt_entmax.data.subwords import SUBWORD_FILES
from onmt_entmax.files import is_stream, no_such_file, refuse_overwriting
from onmt_entmax.options.declared import transform_options
from onmt_entmax.options.reader import read_options
from onmt_entmax.options.result import Options
from onmt_entmax.options.translate_replacements import draws_samples, with_replacements
from onmt_entmax.options.translate_table import translation_options
from onmt_entmax.report.writers import with_summary
from onmt_entmax.search import (
    Budget,
    Constraints,
    Penalties,
    Sampling,
    SearchConfig,
    SearchTask,
)
from onmt_entmax.search.expression import ExpressionError
from onmt_entmax.search.expression_parser import parse_expression

# Options that name an input file.
_READ = ("config", "src", "tgt", "phrase_table", "constraints", *SUBWORD_FILES)


@dataclass(frozen=True)
class TranslationSetup:
    """The options of `translate`, as its modules read them."""

    models: tuple[Path, ...]
    src: Path
    prefixes: Path | None  # a file of target prefixes, one for each line of `src`
    constraints: Path | None  # a file of constraints, one line for each line of `src`
    output: Path
    chosen: bool  # whether the user named the output
    exactness_report: Path | None
    alignments: Path | None  # a file of alignments, one line for each line of `output`
    task: SearchTask
    n_best: int  # output lines per sentence
    abstain: float  # least probability of a best output; less gives empty lines
    batch_size: int
    gpu: int | None
    transforms: tuple[str, ...] | None  # None: the subword transforms of the model's training
    transform_options: Namespace  # only those given; the model's own options are the rest
    phrases: Mapping[str, str] | None  # replaces <unk>; None: nothing does
    scored: bool = False  # whether each output ends in a tab and its score
    notes: tuple[str, ...] = ()  # on options that have no effect or another one
    warnings: tuple[str, ...] = ()


def translation_setup(arguments: Sequence[str]) -> TranslationSetup:
    """Read the command line of `translate` and the YAML file that it names.

    Raises:
        OptionError: names the first option that is wrong, and why.
    """
    options = with_replacements(read_options(translation_options(), arguments))
    task = _task(options)
    for name in ("src", "tgt", "constraints"):
        if options[name] and not os.path.isfile(options[name]):
            raise options.error(name, no_such_file(options[name]))
    output, report = Path(options["output"]), _path(options, "exactness_report")
    alignments = _alignments(options, output)
    refuse_overwriting(
        [Path(options[name]) for name in _READ if options[name]],
        [output, *with_summary(report), alignments],
    )
    return TranslationSetup(
        models=tuple(Path(name) for name in options["model"]),
        src=Path(options["src"]),
        prefixes=_path(options, "tgt") if options["tgt_prefix"] else None,
        constraints=_path(options, "constraints"),
        output=output,
        chosen=options.given("output"),
        exactness_report=report,
        alignments=alignments,
        task=task,
        n_best=options["n_best"],
        abstain=options["abstain"],
        batch_size=options["batch_size"],
        gpu=options["gpu"] if options["gpu"] >= 0 else None,
        transforms=tuple(options["transforms"]) if options.given("transforms") else None,
        transform_options=Namespace(
            **{name: options[name] for name in transform_options() if options.given(name)}
        ),
        phrases=_phrases(options),
        scored=options["with_score"],
        notes=tuple(options.notes.lines()),
        warnings=tuple(options.notes.warnings),
    )


def _alignments(options: Options, output: Path) -> Path | None:
    """Return the file of alignments, beside the output; None if they are not to be written.

    Raises:
        OptionError: the output is a device or a pipe.
    """
    if not options["report_align"]:
        return None
    if is_stream(output):
        raise options.error("report_align", f"needs an output file, not {output}")
    return output.with_name(f"{output.name}.align")


def _phrases(options: Options) -> dict[str, str] | None:
    """Return target words for source words that replace `<unk>`; None: it stays."""
    if not options["replace_unk"]:
        return None
    table = options["phrase_table"]
    return read_phrase_table(Path(table)) if table else {}


def _path(options: Options, name: str) -> Path | None:
    """Return the file that an option names, or None."""
    return None if options[name] is None else Path(options[name])


def _task(options: Options) -> SearchTask:
    """Return the search that the options describe.

    Raises:
        OptionError: options exclude each other.
    """
    sampling = _sampling(options) if draws_samples(options) else None
    longest = options["max_length"]
    if options["min_length"] > longest:
        raise options.error("min_length", f"is above max_length, {longest}")
    search = options["search"]
    _check_expression(options)
    try:
        listed = {"n_best": 0} if search == "enumerate" else {}  # all
        return SearchTask(
            config=SearchConfig(
                **options.pick(SearchConfig) | listed,
                constraints=Constraints(**options.pick(Constraints)),
                penalties=Penalties(**options.pick(Penalties)),
            ),
            method=search,
            budget=Budget(expansions=options["budget"]),
            ban_unknown=options["ban_unk_token"],
            ignore_when_blocking=tuple(options["ignore_when_blocking"]),
            regex=options["constraint_regex"],
            sampling=sampling,
            **options.pick(SearchTask),
        )
    except ConfigError as error:
        raise options.error(error.key, error.reason) from None


def _sampling(options: Options) -> Sampling:
    """Return how outputs are drawn.

    Raises:
        OptionError: an option goes with a search alone.
    """
    for name in ("replace_unk", "report_align", "constraints", "abstain"):
        if options[name]:
            raise options.error(name, "goes with a search, not with random sampling")
    values = {name: options[f"random_sampling_{name}"] for name in declared(Sampling)}
    return Sampling(**values, seed=max(options["seed"], 0))


def _check_expression(options: Options) -> None:
    """Check the regular expression, which a search parses again.

    Raises:
        OptionError: it cannot be parsed.
    """
    if options["constraint_regex"] is None:
        return
    try:
        parse_expression(options["constraint_regex"])
    except ExpressionError as error:
        raise options.error("constraint_regex", str(error)) from None
