"""Compute the official measures of the CoNLL-SIGMORPHON 2018 shared task: accuracy and distance.

    onmt-entmax evaluate --source run/pilot/data/dev.src --reference run/pilot/data/dev.tgt \\
        --predictions run/pilot/dev.pred

Prints the percentage of correct forms and the mean edit distance (Levenshtein, in characters) for
each language, and their averages over languages. --nbest N reads predictions of `translate -n_best
N`, N lines a word: it measures the first ones, and the best of N, that nearest to the reference.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.cli.ending import argument_parser, following
from onmt_entmax.data.inflection import decode_word, language_of
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_aligned, read_lines, refuse_overwriting, write_files
from onmt_entmax.report.measures import LanguageScores, Score, edit_distance, score_by_language
from onmt_entmax.report.tables import aligned_table
from onmt_entmax.rules import whole


def table(scores: LanguageScores, best: LanguageScores | None = None, nbest: int = 1) -> str:
    """Return the scores as an aligned table, accuracy in percent.

    Args:
        scores: of the first predictions.
        best: of the best of `nbest` predictions, if there are several.
        nbest: predictions of a word.
    """
    head = ["language", "words", "accuracy", "edit distance"]
    rows = [head + ([] if best is None else [f"best of {nbest}", "edit distance"])]
    for name, each in [*scores.languages.items(), ("average", scores.average)]:
        other = [] if best is None else _cells(best.languages.get(name, best.average))
        rows.append([name, str(each.words), *_cells(each), *other])
    lines = aligned_table(rows).splitlines()
    lines.insert(-1, "-" * len(lines[0]))
    return "\n".join(lines)


def _cells(score: Score) -> list[str]:
    return [f"{100 * score.accuracy:.2f}", f"{score.edit_distance:.3f}"]


def evaluate(options: argparse.Namespace) -> tuple[LanguageScores, LanguageScores | None]:
    """Score a file of predictions; write the scores as JSON if asked to.

    Returns:
        The scores of the first predictions, and of the best of `--nbest`, if there are several.

    Raises:
        UserError: a file cannot be read, the files differ in length, or a prediction is no tokens.
    """
    refuse_overwriting([options.source, options.reference, options.predictions], [options.json])
    sources, references = read_aligned(options.source, options.reference)
    predictions = list(read_lines(options.predictions))
    nbest = options.nbest
    for number, line in enumerate(predictions, 1):
        if "\t" in line or line.startswith('{"'):
            raise UserError(
                f"{options.predictions}:{number}: expected tokens between spaces, as `onmt-entmax "
                "translate` writes to -output, not lines of `inflect` or of a report"
            )
    if not sources:
        raise UserError(f"{options.source}: no lines")
    if len(predictions) != nbest * len(sources):
        raise UserError(
            f"{options.predictions}: {counted(len(predictions), 'line')}, but {options.source} has "
            f"{len(sources)}; there must be {nbest} for each source line (--nbest)"
        )
    languages = [language_of(options.source, n, line) for n, line in enumerate(sources, start=1)]
    forms = [decode_word(line.split()) for line in references]
    words = [decode_word(line.split()) for line in predictions]
    scores, best = score_by_language(languages, forms, words[::nbest]), None
    content = _as_json(scores)
    if nbest > 1:
        # Blank lines fill up a list of fewer predictions.
        starts = range(0, len(words), nbest)
        lists = [[words[n], *filter(None, words[n + 1 : n + nbest])] for n in starts]
        nearest = [
            min((edit_distance(form, word), rank, word) for rank, word in enumerate(each))[2]
            for form, each in zip(forms, lists, strict=True)
        ]
        best = score_by_language(languages, forms, nearest)
        content[f"best of {nbest}"] = _as_json(best)
    if options.json:
        write_files({options.json: json.dumps(content, indent=2, ensure_ascii=False) + "\n"})
    return scores, best


def _as_json(scores: LanguageScores) -> dict[str, Any]:
    return {
        "average": vars(scores.average),
        "languages": {name: vars(each) for name, each in scores.languages.items()},
    }


def main(arguments: Sequence[str]) -> int:
    """Print the measures; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("--source", type=Path, required=True, help="source file of `prepare sigmorphon`")
    add("--reference", type=Path, required=True, help="target file of `prepare sigmorphon`")
    add("--predictions", type=Path, required=True, help="one predicted target a line")
    add(
        "--nbest",
        type=following(whole(1, 10_000)),
        default=1,
        metavar="N",
        help="N predicted targets for each source line",
    )
    add("--json", type=Path, help="write the scores here too (accuracy from 0 to 1)")
    options = parser.parse_args(arguments)
    print(table(*evaluate(options), options.nbest))
    return 0
