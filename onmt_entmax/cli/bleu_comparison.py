"""`onmt-entmax bleu` without `--tune`: measure systems, and test their differences."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from sacrebleu.metrics.base import Metric

from onmt_entmax.cli.bleu_scores import scores_record, scores_table
from onmt_entmax.cli.bleu_texts import check_lengths, read_references, read_systems
from onmt_entmax.data.detokenize import detokenize
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, replaced_with_optional
from onmt_entmax.report.coverage import Coverage, coverage, coverage_text
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.sacrebleu_metrics import make_metrics, quality_of
from onmt_entmax.report.system_comparison import System, compare


def compare_systems(options: argparse.Namespace) -> str:
    """Measure the systems and compare them; write the scores as JSON with `--output`.

    Args:
        options: options of `bleu`, without `tune`.

    Returns:
        The text to print.

    Raises:
        UserError: a file cannot be read or written, or has a wrong content.
    """
    references = read_references(options.reference)
    systems = _systems(options, len(references[0]))
    if "ter" in options.metrics:
        paths = map(str, options.reference)
        check_lengths([*zip(paths, references, strict=True), *systems.items()])
    metrics = make_metrics(options.metrics, options.tokenize, lowercase=options.lowercase)
    # Opened first: if the file cannot be written, the error comes before the long comparison.
    with replaced_with_optional([], [options.output]) as (_, (output,)):
        measures = compare(
            [System(name, lines) for name, lines in systems.items()],
            references,
            metrics,
            resamples=options.resamples,
            nbest=options.nbest,
        )
        content = scores_record(measures, options.detokenize)
        text = scores_table(measures)
        if options.report:
            first_system, *_ = systems.values()
            translations = first_system[:: options.nbest]
            measure, metric = metrics[0]
            curve = _coverage(options.report, translations, references, metric)
            content["coverage"] = [vars(point) for point in curve]
            text += f"\n\n{coverage_text(curve, measure)}"
        if output is not None:
            output.write(json_text(content))
    if options.detokenize:
        text += f"\ntranslations detokenized by Moses' rules ({options.detokenize})"
    return text


def _coverage(
    report: Path,
    translations: Sequence[str],
    references: Sequence[Sequence[str]],
    metric: Metric,
) -> list[Coverage]:
    """Return the curve of coverage against the quality of the translations that are kept.

    Args:
        report: exactness report of the translations.
        translations: the best translation of each sentence, by one system.
        references: lines of each reference.
        metric: sacrebleu's measure of the quality.
    """
    records = list(read_report(report, len(references[0])))
    return coverage(records, quality_of(metric, translations, references))


def _systems(options: argparse.Namespace, sentences: int) -> dict[str, list[str]]:
    """Return the lines of each system, by the name of its file.

    Args:
        options: `system`, `nbest` and `detokenize`.
        sentences: number of lines of the reference.

    Raises:
        UserError: a file cannot be read, or is given twice.
    """
    texts = read_systems(options.system, sentences, options.nbest)
    if options.detokenize:
        texts = [[detokenize(line, options.detokenize) for line in text] for text in texts]
    names = list(map(str, options.system))
    if len(set(names)) < len(names):
        raise UserError("the same system is given twice")
    return dict(zip(names, texts, strict=True))
