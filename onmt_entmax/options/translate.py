"""Read the options of `translate`: check them, and turn them into a search task and files.

`translate_table.py` declares them, `translate_replacements.py` replaces options of OpenNMT-py that
are others here, and `translate_search.py` makes the search task.
"""

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.data.phrase_table import read_phrase_table
from onmt_entmax.data.subwords import SUBWORD_FILES
from onmt_entmax.files import is_stream, no_such_file, refuse_overwriting
from onmt_entmax.options.declared import transform_options
from onmt_entmax.options.given import Options
from onmt_entmax.options.reader import read_options
from onmt_entmax.options.translate_replacements import with_replacements
from onmt_entmax.options.translate_search import search_task
from onmt_entmax.options.translate_table import translation_options
from onmt_entmax.report.writers import summary_path
from onmt_entmax.search import SearchTask

# Options that name an input file.
_READ = ("config", "src", "tgt", "phrase_table", "constraints", *SUBWORD_FILES)


@dataclass(frozen=True)
class TranslationSetup:
    """The options of `translate`, as its modules read them.

    Attributes:
        models: run folders or checkpoints.
        src: file to translate.
        prefixes: file of target prefixes, one for each line of `src`.
        constraints: file of constraints, one line for each line of `src`.
        output: file of translations.
        chosen: whether the user named the output.
        exactness_report: file of certificates.
        alignments: file of alignments, one line for each line of `output`.
        task: the search.
        n_best: output lines per sentence.
        abstain: least probability of a best output; less gives empty lines.
        batch_size: sentences searched together.
        gpu: number of the GPU; None: the CPU.
        transforms: transforms of the source; None: the subword transforms of the model's training.
        transform_options: options of the transforms that the user gave; the training's options
            fill in the rest.
        phrases: target words for source words, which replace `<unk>`; None: it stays.
        scored: whether each output ends in a tab and its score.
        notes: notes for the user, on options that have no effect or another one.
        warnings: warnings for the user, on options that others overrule.
    """

    models: tuple[Path, ...]
    src: Path
    prefixes: Path | None
    constraints: Path | None
    output: Path
    chosen: bool
    exactness_report: Path | None
    alignments: Path | None
    task: SearchTask
    n_best: int
    abstain: float
    batch_size: int
    gpu: int | None
    transforms: tuple[str, ...] | None
    transform_options: Namespace
    phrases: Mapping[str, str] | None
    scored: bool = False
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def translation_setup(arguments: Sequence[str]) -> TranslationSetup:
    """Read the command line of `translate` and the YAML file that it names.

    Raises:
        OptionError: names the first option that is wrong, and why.
    """
    options = with_replacements(read_options(translation_options(), arguments))
    task = search_task(options)
    for name in ("src", "tgt", "constraints"):
        if options[name] and not os.path.isfile(options[name]):
            raise options.error(name, no_such_file(options[name]))
    output, report = Path(options["output"]), _path(options, "exactness_report")
    alignments = _alignments(options, output)
    refuse_overwriting(
        [Path(options[name]) for name in _READ if options[name]],
        [output, report, summary_path(report), alignments],
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
