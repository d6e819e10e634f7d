"""`onmt-entmax translate`: translate a file, with a certificate for each sentence."""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from onmt_entmax.cli.messages import note, warn
from onmt_entmax.data.unknown_warnings import unknown_warnings
from onmt_entmax.errors import UserError
from onmt_entmax.files import (
    check_aligned,
    count_lines,
    json_text,
    read_lines,
    replaced_with_optional,
)
from onmt_entmax.options.help import requested_help
from onmt_entmax.options.translate import translation_setup
from onmt_entmax.options.translate_setup import InputFiles, TranslationSetup
from onmt_entmax.options.translate_table import TOPICS, translation_options
from onmt_entmax.parallel.devices import choose_device
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.parallel.sharding import connected, in_order, send_answers
from onmt_entmax.parallel.windows import Windows
from onmt_entmax.report.answers import Answer
from onmt_entmax.report.sample_summary import SampleSummary
from onmt_entmax.report.summary import Summary
from onmt_entmax.report.writers import AnswerWriter
from onmt_entmax.search import LineConstraints, SearchTask
from onmt_entmax.translator import Translator


def main(arguments: Sequence[str]) -> int:
    """Translate a file; return the exit status.

    Raises:
        UserError: for everything that the user can fix; then no output file is changed.
    """
    usage = (
        "-model FOLDER -src FILE -output FILE [-option value ...]\n\n"
        "Translate a file and prove what can be proven about each output."
    )
    help_text = requested_help(translation_options(), TOPICS, usage, arguments)
    if help_text:
        print(help_text)
        return 0
    processes = Processes()
    with connected(processes):
        if not processes.writes:
            # Each process reads the options itself; only the first prints notes about them.
            send_answers(lambda: _begin(translation_setup(arguments), processes).answers)
            return 0
        setup = translation_setup(arguments)
        note(*setup.notes)
        warn(*setup.warnings)
        summary = _run_translation(setup, processes)
    if setup.outputs.is_default:
        print(f"wrote {setup.outputs.translations}", file=sys.stderr)
    print(summary.text())
    return 0


@dataclass(frozen=True)
class _Translation:
    """The translation of the lines of one process.

    Attributes:
        answers: answers to these lines, in order; each is computed when it is taken.
        lines: number of lines of the whole file.
        windows: the lines of each process.
        translator: the models.
    """

    answers: Iterator[Answer]
    lines: int
    windows: Windows
    translator: Translator


def _begin(setup: TranslationSetup, processes: Processes) -> _Translation:
    """Check the input, load the models, and begin the translation of the lines of this process.

    Raises:
        UserError: the source is empty, a file of prefixes or constraints has another number of
            lines, or a constraint is wrong.
    """
    inputs, texts = setup.inputs, setup.texts
    lines = _checked_lines(inputs)
    translator = Translator.from_folders(
        setup.models,
        setup.task,
        choose_device(processes, setup.gpu, "gpu"),
        transforms=texts.transforms,
        transform_options=texts.transform_options,
        attention=setup.outputs.report is not None,
        align=setup.outputs.alignments is not None,
        unknown=texts.phrase_table,
    )
    windows = Windows.of(lines, processes)
    answers = translator.answers(
        read_lines(inputs.sources),
        setup.batch_size,
        prefixes=None if inputs.prefixes is None else read_lines(inputs.prefixes),
        windows=windows,
        constraints=(
            None if inputs.constraints is None else _constraints(inputs.constraints, inputs.sources)
        ),
    )
    return _Translation(answers, lines, windows, translator)


def _checked_lines(inputs: InputFiles) -> int:
    """Check the files to read, before the models are loaded; return the source's number of lines.

    Raises:
        UserError: the source is empty, a file of prefixes or constraints has another number of
            lines, or a constraint is wrong.
    """
    lines = count_lines(inputs.sources)
    if lines == 0:
        raise UserError(f"{inputs.sources}: the file is empty, there is nothing to translate")
    beside = [path for path in (inputs.prefixes, inputs.constraints) if path is not None]
    check_aligned({inputs.sources: lines, **{path: count_lines(path) for path in beside}})
    if inputs.constraints is not None:
        for _ in _constraints(inputs.constraints, inputs.sources):
            pass  # reading a wrong line raises the error
    return lines


def _constraints(path: Path, sources: Path) -> Iterator[LineConstraints]:
    """Yield the constraints of each line.

    Args:
        path: file of constraints.
        sources: file of the source lines, to which the constraints refer.

    Raises:
        UserError: names the first line that is wrong.
    """
    for number, pair in enumerate(zip(read_lines(path), read_lines(sources), strict=True), 1):
        try:
            yield LineConstraints.parse(*pair)
        except UserError as error:
            raise UserError(f"{path}: line {number}: {error}") from None


def _run_translation(setup: TranslationSetup, processes: Processes) -> Summary | SampleSummary:
    """Translate a file and write its report; the other processes send their answers.

    Args:
        setup: the options of the command.
        processes: the processes of the run; this one is the first.
    """
    started = time.monotonic()
    outputs = setup.outputs
    new_folders = outputs.missing_folders()
    optional = [outputs.report, outputs.summary, outputs.alignments]
    with replaced_with_optional([outputs.translations], optional) as ((output,), others):
        report, summary, alignments = others
        translation = _begin(setup, processes)
        # The user may have mistyped the name of a folder. The note comes after all checks, so that
        # an error stands alone.
        note(*(f"creates the folder {folder}" for folder in new_folders))
        for folder in sorted(set(translation.translator.folders) - set(setup.models)):
            # A run that is still training gives its best checkpoint so far.
            print(f"model: {folder}", file=sys.stderr)
        counts = Summary() if setup.task.sampling is None else SampleSummary()
        writer = AnswerWriter(output, setup.form, counts, report=report, alignments=alignments)
        lines = translation.lines
        answers = in_order(translation.answers, lines, translation.windows)
        for answer in tqdm(answers, total=lines, unit="line", disable=None):
            writer.write(answer)
        seconds = time.monotonic() - started
        if summary is not None:
            summary.write(json_text(_summary(counts, setup.task, translation, seconds)))
    warn(*unknown_warnings(counts.source))
    return counts


def _summary(
    counts: Summary | SampleSummary, task: SearchTask, translation: _Translation, seconds: float
) -> dict[str, Any]:
    """Return the summary of a report for JSON: counts, and how the outputs came about."""
    if task.sampling is None:
        method: dict[str, Any] = {"search": task.method, "beam_size": task.config.beam_size}
    else:
        method = {"search": "sampling", "sampling": asdict(task.sampling)}
    return {
        **counts.as_dict(),
        "seconds": round(seconds, 2),
        **method,
        "max_length": task.config.max_length,
        # A run folder may name another checkpoint as its best by now.
        "models": [str(folder) for folder in translation.translator.folders],
    }
