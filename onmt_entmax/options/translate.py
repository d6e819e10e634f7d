"""Read the options of `translate`, check them, and make a `TranslationSetup` of them.

`translate_table.py` declares them, `translate_replacements.py` replaces values of OpenNMT-py that
mean something else here, and `translate_search.py` makes the search task.
"""

import os
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.data.phrase_table import read_phrase_table
from onmt_entmax.data.subwords import SUBWORD_FILES
from onmt_entmax.files import is_stream, no_such_file, refuse_overwriting
from onmt_entmax.options.declared import transform_options
from onmt_entmax.options.given import Options
from onmt_entmax.options.reader import read_options
from onmt_entmax.options.translate_replacements import with_replacements
from onmt_entmax.options.translate_search import search_task
from onmt_entmax.options.translate_setup import (
    InputFiles,
    OutputFiles,
    TextSettings,
    TranslationSetup,
)
from onmt_entmax.options.translate_table import translation_options
from onmt_entmax.report.writers import OutputForm

# Options that name files of lines. These are read only after the models were loaded, which takes a
# while, so a missing file is reported here.
_LINE_FILES = ("src", "tgt", "constraints")
# All options that name input files. The other files are read here, or with the models.
_INPUT_FILES = (*_LINE_FILES, "config", "phrase_table", *SUBWORD_FILES)


def translation_setup(arguments: Sequence[str]) -> TranslationSetup:
    """Read the command line of `translate` and the YAML file that it names.

    Raises:
        OptionError: names the first option that is wrong, and why.
        FileError: an output would replace an input or a file of a model.
        UserError: the phrase table is wrong.
    """
    options = with_replacements(read_options(translation_options(), arguments))
    task = search_task(options)
    inputs, outputs = _input_files(options), _output_files(options)
    refuse_overwriting(
        [_path(options, name) for name in _INPUT_FILES], [outputs.translations, *outputs.optional]
    )
    return TranslationSetup(
        models=tuple(Path(name) for name in options["model"]),
        inputs=inputs,
        outputs=outputs,
        texts=_text_settings(options),
        task=task,
        form=OutputForm(options["n_best"], options["abstain"], scored=options["with_score"]),
        batch_size=options["batch_size"],
        gpu=options["gpu"] if options["gpu"] >= 0 else None,
        notes=tuple(options.notes.lines()),
        warnings=tuple(options.notes.warnings),
    )


def _input_files(options: Options) -> InputFiles:
    """Return the files of lines.

    Raises:
        OptionError: if one of them does not exist.
    """
    for name in _LINE_FILES:
        if options[name] and not os.path.isfile(options[name]):
            raise options.error(name, no_such_file(options[name]))
    return InputFiles(
        sources=Path(options["src"]),
        prefixes=_path(options, "tgt") if options["tgt_prefix"] else None,
        constraints=_path(options, "constraints"),
    )


def _output_files(options: Options) -> OutputFiles:
    """Return the files to write; alignments stand beside the translations.

    Raises:
        OptionError: if the output is a device or a pipe, beside which no file can stand.
    """
    translations, alignments = Path(options["output"]), None
    if options["report_align"]:
        if is_stream(translations):
            raise options.error("report_align", f"needs an output file, not {translations}")
        alignments = translations.with_name(f"{translations.name}.align")
    return OutputFiles(
        translations=translations,
        is_default=not options.is_set("output"),
        report=_path(options, "exactness_report"),
        alignments=alignments,
    )


def _text_settings(options: Options) -> TextSettings:
    """Return how texts become tokens, and back.

    Raises:
        UserError: if the phrase table is wrong.
    """
    phrase_table = None
    if options["replace_unk"]:
        path = _path(options, "phrase_table")
        phrase_table = {} if path is None else read_phrase_table(path)
    return TextSettings(
        transforms=tuple(options["transforms"]) if options.is_set("transforms") else None,
        transform_options=Namespace(
            **{name: options[name] for name in transform_options() if options.is_set(name)}
        ),
        phrase_table=phrase_table,
    )


def _path(options: Options, name: str) -> Path | None:
    """Return the file that an option names; None if it names none."""
    return Path(options[name]) if options[name] else None
