"""`onmt-entmax evaluate --predictions FILE`: the official measures of files of tokens."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rapidfuzz.distance import Levenshtein

from onmt_entmax.cli.evaluated_words import Words, read_predictions
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, refuse_overwriting, write_files
from onmt_entmax.report.coverage import Coverage, coverage, coverage_text
from onmt_entmax.report.language_table import score_table
from onmt_entmax.report.mcnemar import Difference, comparison, comparison_text
from onmt_entmax.report.measures import LanguageScores, nearest_form, score_by_language
from onmt_entmax.report.reading import read_report
from onmt_entmax.report.records import output_of


def evaluate_tokens(options: argparse.Namespace) -> str:
    """Score a file of predictions; write the scores as JSON if asked to.

    Returns:
        What to print.

    Raises:
        UserError: a file cannot be read, the files differ in length, or a prediction is no tokens.
    """
    (reference,) = options.reference
    files = [options.source, reference, options.predictions]
    refuse_overwriting([*files, *options.against, options.report], [options.json])
    words = Words.read(options.source, reference)
    nbest = options.nbest
    predictions = read_predictions(options.predictions, words, nbest)
    first = predictions[::nbest]
    right = words.are_right(first)
    nearest = list(map(nearest_form, words.forms, first))
    scores = score_by_language(words.languages, nearest, first)
    content: dict[str, Any] = asdict(scores)
    best = None
    if nbest > 1:
        best = _best_scores(words, predictions, nbest)
        content[f"best of {nbest}"] = asdict(best)
    texts = [score_table(scores, best, nbest)]
    several = sum(len(correct) > 1 for correct in words.forms)
    if several:
        texts.append(f"words with several correct forms: {several:,} of {len(words.forms):,}")
    if options.against:
        compared = _compared(options, words, right)
        content["against"] = {name: asdict(row) for name, row in compared.items()}
        texts.append(comparison_text(compared, options.against[0].name))
    if options.report:
        curve = _coverage(options, words.sources, first, right)
        content["coverage"] = [vars(point) for point in curve]
        texts.append(coverage_text(curve, "accuracy"))
    if options.json:
        write_files({options.json: json_text(content)})
    return "\n\n".join(texts)


def _best_scores(words: Words, predictions: Sequence[str], nbest: int) -> LanguageScores:
    """Return the scores of each word's best prediction: that nearest to a correct form.

    Args:
        words: that are predicted.
        predictions: `nbest` of each word; blank lines fill up a list of fewer ones.
        nbest: predictions of a word.
    """
    references: list[str] = []
    best: list[str] = []
    for number, correct in enumerate(words.forms):
        first, *others = predictions[number * nbest : (number + 1) * nbest]
        reference, prediction = _nearest(correct, [first, *filter(None, others)])
        references.append(reference)
        best.append(prediction)
    return score_by_language(words.languages, references, best)


def _nearest(references: Sequence[str], predictions: Sequence[str]) -> tuple[str, str]:
    """Return the nearest pair of reference and prediction; of several, that ranked first."""
    # `min` takes the first of equal ones.
    return min(
        ((reference, prediction) for prediction in predictions for reference in references),
        key=lambda pair: Levenshtein.distance(pair[0].split(), pair[1].split()),
    )


def _compared(
    options: argparse.Namespace, words: Words, right: Sequence[bool]
) -> dict[str, Difference]:
    """Compare with the predictions of `--against`, by language and in all.

    Args:
        options: name the other file.
        words: that are predicted.
        right: whether the first prediction of each is right.

    Raises:
        UserError: the other file cannot be read, or is not of these words.
    """
    (path,) = options.against
    others = read_predictions(path, words, options.nbest)[:: options.nbest]
    return comparison(words.languages, right, words.are_right(others))


def _coverage(
    options: argparse.Namespace, sources: Sequence[str], first: Sequence[str], right: Sequence[bool]
) -> list[Coverage]:
    """Return the curve of coverage against accuracy.

    Args:
        options: have the report, and the file of predictions.
        sources: lines of the source file.
        first: the first prediction of each.
        right: whether it is right.

    Raises:
        UserError: the report is of another source, or of other predictions.
    """
    records = list(read_report(options.report, len(sources)))
    _refuse_other_report(options, records, sources, first)

    def accuracy(kept: Sequence[int]) -> float:
        """Return the accuracy, in percent, of the words of these numbers."""
        return 100 * sum(right[number] for number in kept) / len(kept)

    return coverage(records, accuracy)


def _refuse_other_report(
    options: argparse.Namespace,
    records: Sequence[dict[str, Any]],
    sources: Sequence[str],
    first: Sequence[str],
) -> None:
    """Refuse a report of another translation.

    Args:
        options: name the files, for errors.
        records: of the report.
        sources: lines of the source file.
        first: the first prediction of each.

    Raises:
        UserError: the report is of another source, or of other predictions.
    """
    if [record["source"] for record in records] != sources:
        raise UserError(f"{options.report}: not of {options.source}")
    outputs = ["" if "abstained" in record else output_of(record)[0] for record in records]
    if [" ".join(output.split()) for output in outputs] != first:
        raise UserError(f"{options.report}: not of {options.predictions}")
