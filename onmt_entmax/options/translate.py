"""The options of `translate`: checked, and turned into a search task and files."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from onmt_entmax.data.reader import UnknownWords, read_phrase_table
from onmt_entmax.files import is_stream, refuse_overwriting
from onmt_entmax.opennmt import AVAILABLE_TRANSFORMS, ArgumentParser, translate_opts
from onmt_entmax.options.reader import Options, read_options, register
from onmt_entmax.options.support import (
    REFUSED_IN_TRANSLATION,
    check_values,
    refuse_unsupported,
)
from onmt_entmax.options.transforms import transform_option_names
from onmt_entmax.report.writers import with_summary
from onmt_entmax.search import (
    Budget,
    Constraints,
    Penalties,
    Sampling,
    SearchConfig,
    SearchTask,
)
from onmt_entmax.search.config import Method, Stop
from onmt_entmax.search.expression import ExpressionError, parse_expression
from onmt_entmax.search.mbr import UTILITIES

# Options that name an input file.
_READ = (
    *("config", "src", "tgt", "phrase_table", "constraints"),
    *("src_subword_model", "tgt_subword_model", "src_subword_vocab", "tgt_subword_vocab"),
)

# Options that ask for a search.
_NOT_SAMPLED = (
    *("search", "stop", "mbr", "verify", "replace_unk", "ban_unk_token", "min_length"),
    *("block_ngram_repeat", "length_penalty", "coverage_penalty", "constraints"),
    *("constraint_regex", "report_align"),
)


BATCH_SIZE = 64  # sentences searched together; OpenNMT-py's default is 30


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
    batch_size: int
    gpu: int | None
    transforms: tuple[str, ...] | None  # None: the subword transforms of the model's training
    transform_options: Namespace  # only those given; the model's own options are the rest
    unknown: UnknownWords | None


def translation_parser() -> ArgumentParser:
    """Return a parser of OpenNMT-py's translation options and ours.

    The defaults of our options are those of the configurations that they end in.
    """
    parser = ArgumentParser()
    add = parser.add_argument
    add("-config", "--config")
    translate_opts(parser, dynamic=True)
    register(parser)["batch_size"].default = BATCH_SIZE
    register(parser)["transforms"].nargs = "*"
    add("-exactness_report", default=None)
    add("-stop", default=SearchConfig.stop, choices=get_args(Stop))
    add("-search", default=SearchTask.method, choices=get_args(Method))
    add("-budget", type=int, default=Budget.expansions)
    add("-mass", type=float, default=SearchTask.mass)
    add("-verify", action="store_true")
    add("-constraints", default=None)
    add("-constraint_regex", default=None)
    add("-mbr", default=None, choices=UTILITIES)
    add("-random_sampling_distinct", action="store_true")
    return parser


def translation_setup(arguments: Sequence[str]) -> TranslationSetup:
    """Read the command line of `translate` and the YAML file that it names.

    Raises:
        OptionError: names the first option that is wrong, and why.
    """
    parser = translation_parser()
    options = read_options(parser, arguments)
    refuse_unsupported(options, REFUSED_IN_TRANSLATION, parser)
    check_values(options)
    if options["data_type"] != "text":
        raise options.error("data_type", "only text is supported")
    if options["batch_type"] != "sents":
        raise options.error("batch_type", "only sents is supported for translation")
    source = _input(options, "src")
    for name in options["transforms"]:
        if name not in AVAILABLE_TRANSFORMS:
            raise options.error("transforms", f"no transform {name!r}")
    _check_search(options)
    given = {name: options[name] for name in transform_option_names() if options.given(name)}
    report = None if options["exactness_report"] is None else Path(options["exactness_report"])
    output = Path(options["output"])
    aligned = output.with_name(output.name + ".align") if options["report_align"] else None
    if aligned is not None and is_stream(output):
        raise options.error("report_align", f"needs an output file, not {output}")
    refuse_overwriting(
        [Path(options[name]) for name in _READ if options[name]],
        [output, *with_summary(report), *([] if aligned is None else [aligned])],
    )
    return TranslationSetup(
        models=tuple(Path(name) for name in options["model"]),
        src=source,
        prefixes=_prefixes(options),
        constraints=_constraints(options),
        output=output,
        chosen=options.given("output"),
        exactness_report=report,
        alignments=aligned,
        task=_task(options),
        n_best=options["n_best"],
        batch_size=options["batch_size"],
        gpu=options["gpu"] if options["gpu"] >= 0 else None,
        transforms=tuple(options["transforms"]) if options.given("transforms") else None,
        transform_options=Namespace(**given),
        unknown=_unknown(options),
    )


def _input(options: Options, name: str) -> Path:
    """Return the file that an option names."""
    if not os.path.isfile(options[name]):
        raise options.no_file(name, options[name])
    return Path(options[name])


def _check_search(options: Options) -> None:
    """Refuse options that the chosen search does not read."""
    search = options["search"]
    if search == "enumerate" and options.given("stop"):
        raise options.error("stop", "is only read with search: beam or exact")
    if search == "exact" and options["stop"] == "first":
        raise options.error("stop", "first goes with search: beam; exact needs another")
    if search == "beam" and options.given("budget") and not options["verify"]:
        raise options.error("budget", "is only read with search: exact or enumerate, or verify")
    if search != "enumerate" and options.given("mass"):
        raise options.error("mass", "is only read with search: enumerate")
    if search == "enumerate" and options.given("n_best") and options["mbr"] is None:
        raise options.error("n_best", "enumerate lists the support; use search: exact, or mbr")


def _task(options: Options) -> SearchTask:
    penalties = Penalties(
        options["length_penalty"], options["alpha"], options["coverage_penalty"], options["beta"]
    )
    for name, needed, used in (
        ("alpha", "length_penalty: wu", options["length_penalty"] == "wu"),
        ("beta", "coverage_penalty", options["coverage_penalty"] != "none"),
        ("ignore_when_blocking", "block_ngram_repeat", options["block_ngram_repeat"]),
    ):
        if options[name] and not used:
            raise options.error(name, f"is only read with {needed}")
    if options["coverage_penalty"] != "none" and not options["beta"]:
        raise options.error("coverage_penalty", "does nothing without beta, its weight")
    if not penalties.is_finite(options["max_length"]):
        raise options.error("alpha", "too large: the penalty of max_length overflows")
    if options["min_length"] > options["max_length"]:
        raise options.error("min_length", f"is above max_length, {options['max_length']}")
    config = SearchConfig(
        beam_size=options["beam_size"],
        n_best=0 if options["search"] == "enumerate" else options["n_best"],
        max_length=options["max_length"],
        stop=options["stop"],
        constraints=Constraints(options["min_length"], options["block_ngram_repeat"]),
        penalties=penalties,
    )
    if options["search"] == "enumerate" and config.penalties.any:
        raise options.error("search", "enumerate lists by probability, without penalties")
    if options["mbr"] is not None and options["search"] == "exact":
        raise options.error("mbr", "goes with search: beam or enumerate")
    if options["mbr"] is not None and penalties.any:
        raise options.error("mbr", "is by probability, without penalties")
    return SearchTask(
        config=config,
        method=options["search"],
        budget=Budget(expansions=options["budget"]),
        mass=options["mass"],
        verify=options["verify"],
        ban_unknown=options["ban_unk_token"],
        ignore_when_blocking=tuple(options["ignore_when_blocking"]),
        regex=options["constraint_regex"],
        mbr=options["mbr"],
        sampling=_sampling(options),
    )


def _sampling(options: Options) -> Sampling | None:
    topk, topp = options["random_sampling_topk"], options["random_sampling_topp"]
    temp, distinct = options["random_sampling_temp"], options["random_sampling_distinct"]
    seed = max(options["seed"], 0)
    if not topk and not topp:
        for name, off in (("random_sampling_temp", 1), ("random_sampling_distinct", False)):
            if options[name] != off:
                raise options.error(name, "needs random_sampling_topk (-1: all tokens) or topp")
        return None
    for name in _NOT_SAMPLED:
        if options.given(name) and options[name] not in (0, None, "none"):
            raise options.error(name, "goes with a search, not with random sampling")
    if options.given("beam_size") and options["beam_size"] not in (1, options["n_best"]):
        raise options.error("beam_size", "is not read in random sampling; n_best counts samples")
    return Sampling(topk or -1, topp, temp, distinct, seed)


def _unknown(options: Options) -> UnknownWords | None:
    if options["phrase_table"] and not options["replace_unk"]:
        raise options.error("phrase_table", "is only read with replace_unk")
    if not options["replace_unk"]:
        return None
    table = options["phrase_table"]
    return UnknownWords(read_phrase_table(Path(table)) if table else {})


def _constraints(options: Options) -> Path | None:
    if options["constraint_regex"] is not None:
        try:
            parse_expression(options["constraint_regex"])
        except ExpressionError as error:
            raise options.error("constraint_regex", str(error)) from None
    return None if options["constraints"] is None else _input(options, "constraints")


def _prefixes(options: Options) -> Path | None:
    if bool(options["tgt"]) != options["tgt_prefix"]:
        raise options.error(
            "tgt" if options["tgt"] else "tgt_prefix",
            "give -tgt FILE -tgt_prefix to force prefixes; onmt-entmax score scores targets",
        )
    return _input(options, "tgt") if options["tgt"] else None
