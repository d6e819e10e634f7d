"""`onmt-entmax evaluate --predictions FILE`: the official measures of files of tokens."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rapidfuzz.distance import Levenshtein

from onmt_entmax.cli.evaluated_words import WordPredictions, Words, read_predictions
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, refuse_overwriting, write_files
from onmt_entmax.report.accuracy_comparison import compare_accuracy, comparison_text
from onmt_entmax.report.coverage import Coverage, coverage, coverage_text
from onmt_entmax.report.language_table import score_table
from onmt_entmax.report.measures import LanguageScores, nearest_form, score_by_language
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.records import Record, output_of


def evaluate_tokens(options: argparse.Namespace) -> str:
    """Score a file of predictions; write the scores as JSON with `--json`.

    Returns:
        The text to print.

    Raises:
        UserError: a file cannot be read or has no tokens, or the files differ in length.
    """
    (reference,) = options.reference
    files = [options.source, reference, options.predictions]
    refuse_overwriting([*files, *options.against, options.report], [options.json])
    words = Words.read(options.source, reference)
    predictions = read_predictions(options.predictions, words, options.nbest)
    right = words.are_right(predictions.first)
    scores = _first_scores(words, predictions)
    best = _best_scores(words, predictions) if options.nbest > 1 else None
    content: dict[str, Any] = asdict(scores)
    if best is not None:
        content[f"best of {options.nbest}"] = asdict(best)
    texts = [score_table(scores, best, options.nbest), words.several_forms_text()]
    if options.against:
        (path,) = options.against
        other = read_predictions(path, words, options.nbest)
        compared = compare_accuracy(words.languages, right, words.are_right(other.first))
        content["against"] = {name: asdict(row) for name, row in compared.items()}
        texts.append(comparison_text(compared, path.name))
    if options.report:
        curve = _coverage(options.report, words, predictions, right)
        content["coverage"] = [vars(point) for point in curve]
        texts.append(coverage_text(curve, "accuracy"))
    if options.json:
        write_files({options.json: json_text(content)})
    return "\n\n".join(filter(None, texts))


def _first_scores(words: Words, predictions: WordPredictions) -> LanguageScores:
    """Return the scores of each word's first prediction."""
    first = predictions.first
    nearest = list(map(nearest_form, words.forms, first))
    return score_by_language(words.languages, nearest, first)


def _best_scores(words: Words, predictions: WordPredictions) -> LanguageScores:
    """Return the scores of each word's best prediction, which is nearest to a correct form."""
    nearest = list(map(_nearest, words.forms, predictions.lists()))
    references = [reference for reference, _ in nearest]
    return score_by_language(words.languages, references, [prediction for _, prediction in nearest])


def _nearest(forms: Sequence[str], predictions: Sequence[str]) -> tuple[str, str]:
    """Return the correct form and the prediction that are nearest to each other."""
    # Of several equally near pairs, `min` returns the first.
    return min(
        ((form, prediction) for prediction in predictions for form in forms),
        key=lambda pair: Levenshtein.distance(pair[0].split(), pair[1].split()),
    )


def _coverage(
    report: Path, words: Words, predictions: WordPredictions, right: Sequence[bool]
) -> list[Coverage]:
    """Return the curve of coverage against accuracy.

    Args:
        report: exactness report of the same translation.
        words: words that are predicted.
        predictions: predictions of the words.
        right: whether the first prediction of each word is right.

    Raises:
        UserError: the report is of another source, or of other predictions.
    """
    records = list(read_report(report, len(words.sources)))
    _refuse_other_report(report, records, words, predictions)

    def accuracy(kept: Sequence[int]) -> float:
        """Return the accuracy, in percent, of the words at these positions."""
        return 100 * sum(right[position] for position in kept) / len(kept)

    return coverage(records, accuracy)


def _refuse_other_report(
    report: Path, records: Sequence[Record], words: Words, predictions: WordPredictions
) -> None:
    """Refuse a report of another translation.

    Args:
        report: its path.
        records: its records.
        words: words that are predicted.
        predictions: predictions of the words.

    Raises:
        UserError: the report is of another source, or of other predictions.
    """
    if [record["source"] for record in records] != words.sources:
        raise UserError(f"{report}: not of {words.path}")
    outputs = ["" if "abstained" in record else output_of(record).text for record in records]
    if [" ".join(output.split()) for output in outputs] != predictions.first:
        raise UserError(f"{report}: not of {predictions.path}")
