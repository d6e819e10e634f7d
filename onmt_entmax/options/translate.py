"""The options of `translate`: declared, checked, and turned into a search task and files."""

import os
import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import get_args

from onmt_entmax.config import FEW, LIMIT, SIZE, TRANSFORMS, ConfigError, Option, declared
from onmt_entmax.data.phrase_table import read_phrase_table
from onmt_entmax.data.subwords import SUBWORD_FILES
from onmt_entmax.files import is_stream, no_such_file, refuse_overwriting
from onmt_entmax.opennmt import translate_opts
from onmt_entmax.options.declared import options_of, transform_options
from onmt_entmax.options.reader import read_options
from onmt_entmax.options.result import Options
from onmt_entmax.report.writers import with_summary
from onmt_entmax.rules import FLAG, Rule, number, one_of, whole
from onmt_entmax.search import (
    Budget,
    Constraints,
    Penalties,
    Sampling,
    SearchConfig,
    SearchTask,
)
from onmt_entmax.search.config import Method
from onmt_entmax.search.expression import ExpressionError
from onmt_entmax.search.expression_parser import parse_expression

_SEARCH = "Search and certificates"
_SAMPLING = "Sampling (OpenNMT-py's options from here on)"
_FILES = "Files"
_OUTPUTS = "Outputs"
TOPICS = (_SEARCH, _SAMPLING, _FILES, _OUTPUTS)
_TEXT = Rule(str)
# OpenNMT-py's random sampling does not read them either.
_PENALTIES = ("length_penalty", "alpha", "coverage_penalty", "beta")

OPTIONS = {
    "exactness_report": Option(
        None, _TEXT, "JSON Lines file with the certificate of each sentence.", _SEARCH
    ),
    "search": Option(
        SearchTask.method,
        one_of(*get_args(Method)),
        "exact: search on until the n_best are proven; enumerate: list the support.",
        _SEARCH,
    ),
    "budget": Option(
        Budget.expansions,
        LIMIT,
        "Prefixes per sentence that may be computed.",
        _SEARCH,
        needs="search: exact or search: enumerate or verify",
    ),
    "constraints": Option(
        None,
        _TEXT,
        "File of phrases that each line's output must contain, or must not.",
        _SEARCH,
    ),
    "constraint_regex": Option(
        None, _TEXT, "Regular expression over tokens that every output must match.", _SEARCH
    ),
    **{f"random_sampling_{name}": each for name, each in declared(Sampling).items()},
    "seed": Option(-1, whole(0, 2**32 - 1, off=-1), "Seed of the samples; -1 is 0.", _SAMPLING),
    "config": Option(None, _TEXT, "YAML file with any of these options.", _FILES),
    "model": Option(
        [],
        _TEXT,
        "Run folders or checkpoints; an ensemble averages probabilities.",
        _FILES,
        required=True,
    ),
    "src": Option(None, _TEXT, "File to translate.", _FILES, required=True),
    "output": Option("pred.txt", _TEXT, "File of translations.", _FILES),
    "tgt": Option(None, _TEXT, "File of target prefixes.", _FILES),
    "tgt_prefix": Option(False, FLAG, "Complete the prefixes in tgt.", _FILES, needs="tgt"),
    "transforms": Option(
        [], TRANSFORMS, "Transforms of the source, instead of training's subwords.", _FILES
    ),
    # OpenNMT-py's default is 30.
    "batch_size": Option(64, SIZE, "Sentences searched together.", _FILES),
    "batch_type": Option(
        "sents", one_of("sents", "tokens"), "tokens: the default batch_size, for the same outputs."
    ),
    "gpu": Option(
        -1, whole(0, 10_000, off=-1), "The GPU to use; -1, or no GPU here: the CPU.", _FILES
    ),
    **declared(SearchTask, SearchConfig, Penalties, Constraints),
    "n_best": Option(
        1,
        FEW,
        "Outputs per sentence, a line each.",
        _OUTPUTS,
        needs="search: beam or search: exact or mbr",
    ),
    "abstain": Option(
        0.0,
        number(0, 1),
        "Write an empty line if the best output has less probability (the sum of the n_best "
        "hypotheses with its text).",
        _OUTPUTS,
    ),
    "max_length": Option(100, whole(1, 10**6), "Longest output, in tokens.", _OUTPUTS),
    "ignore_when_blocking": Option(
        [], _TEXT, "Tokens that may repeat.", _OUTPUTS, needs="block_ngram_repeat"
    ),
    "ban_unk_token": Option(False, FLAG, "Exclude outputs with <unk>.", _OUTPUTS),
    "replace_unk": Option(
        False, FLAG, "Replace <unk> by the source word with the most attention.", _OUTPUTS
    ),
    "report_align": Option(
        False, FLAG, "Write the attended source positions to OUTPUT.align, as i-j.", _OUTPUTS
    ),
    "with_score": Option(
        False, FLAG, "Append a tab and its score to each output, as OpenNMT-py does.", _OUTPUTS
    ),
    "phrase_table": Option(
        "", _TEXT, "Lines of `source|||target` words.", _OUTPUTS, needs="replace_unk"
    ),
}
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


def translation_options() -> dict[str, Option]:
    """Return the options of `translate`."""
    return options_of(partial(translate_opts, dynamic=True), OPTIONS)


def translation_setup(arguments: Sequence[str]) -> TranslationSetup:
    """Read the command line of `translate` and the YAML file that it names.

    Raises:
        OptionError: names the first option that is wrong, and why.
    """
    options = _with_equals(read_options(translation_options(), arguments))
    task = _task(options)
    for name in ("src", "tgt", "constraints"):
        if options[name] and not os.path.isfile(options[name]):
            raise options.error(name, no_such_file(options[name]))
    output, report = Path(options["output"]), _path(options, "exactness_report")
    aligned = output.with_name(output.name + ".align") if options["report_align"] else None
    if aligned is not None and is_stream(output):
        raise options.error("report_align", f"needs an output file, not {output}")
    refuse_overwriting(
        [Path(options[name]) for name in _READ if options[name]],
        [output, *with_summary(report), *([] if aligned is None else [aligned])],
    )
    phrases, table = None, options["phrase_table"]
    if options["replace_unk"]:
        phrases = read_phrase_table(Path(table)) if table else {}
    return TranslationSetup(
        models=tuple(Path(name) for name in options["model"]),
        src=Path(options["src"]),
        prefixes=_path(options, "tgt") if options["tgt_prefix"] else None,
        constraints=_path(options, "constraints"),
        output=output,
        chosen=options.given("output"),
        exactness_report=report,
        alignments=aligned,
        task=task,
        n_best=options["n_best"],
        abstain=options["abstain"],
        batch_size=options["batch_size"],
        gpu=options["gpu"] if options["gpu"] >= 0 else None,
        transforms=tuple(options["transforms"]) if options.given("transforms") else None,
        transform_options=Namespace(
            **{name: options[name] for name in transform_options() if options.given(name)}
        ),
        phrases=phrases,
        scored=options["with_score"],
        notes=tuple(options.notes.lines()),
        warnings=tuple(options.notes.warnings),
    )


def _with_equals(options: Options) -> Options:
    """Return the options with those of OpenNMT-py replaced that have no equal here."""
    values, notes = dict(options.values), options.notes
    if values["batch_type"] == "tokens":
        values["batch_type"], values["batch_size"] = "sents", OPTIONS["batch_size"].default
        notes.replaced.append(f"batch_type tokens as batch_size {values['batch_size']} sentences")
    if values["tgt"] and not values["tgt_prefix"]:
        files = {"model": values["model"], "src": [values["src"]], "tgt": [values["tgt"]]}
        flags = [word for name, words in files.items() for word in (f"-{name}", *words)]
        command = shlex.join(["onmt-entmax", "score", *flags, "-output", "scores.jsonl"])
        notes.ignored.append(f"tgt (without tgt_prefix; for its probabilities: {command})")
    if values["random_sampling_topk"] or values["random_sampling_topp"]:
        for name in _PENALTIES:
            if values[name] != OPTIONS[name].default:
                notes.ignored.append(f"{name} (of a search)")
                values[name] = OPTIONS[name].default
        if options.given("beam_size") and values["beam_size"] not in (1, values["n_best"]):
            notes.replaced.append(
                f"beam_size in random sampling as n_best {values['n_best']} samples"
            )
            values["beam_size"] = OPTIONS["beam_size"].default
    return replace(options, values=values)


def _path(options: Options, name: str) -> Path | None:
    return None if options[name] is None else Path(options[name])


def _task(options: Options) -> SearchTask:
    """Return the search that the options describe.

    Raises:
        OptionError: options exclude each other.
    """
    sampling, length = None, options["max_length"]
    if options["random_sampling_topk"] or options["random_sampling_topp"]:
        values = {name: options[f"random_sampling_{name}"] for name in declared(Sampling)}
        sampling = Sampling(**values, seed=max(options["seed"], 0))
        for name in ("replace_unk", "report_align", "constraints", "abstain"):
            if options[name]:
                raise options.error(name, "goes with a search, not with random sampling")
    if options["min_length"] > length:
        raise options.error("min_length", f"is above max_length, {length}")
    search = options["search"]
    try:
        if options["constraint_regex"] is not None:
            parse_expression(options["constraint_regex"])
        return SearchTask(
            config=SearchConfig(
                **options.pick(SearchConfig),
                n_best=0 if search == "enumerate" else options["n_best"],
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
    except ExpressionError as error:
        raise options.error("constraint_regex", str(error)) from None
