"""Compute the official measures of the CoNLL-SIGMORPHON 2018 shared task: accuracy and distance.

    onmt-entmax evaluate --source run/pilot/data/dev.src --reference run/pilot/data/dev.tgt \\
        --predictions run/pilot/dev.pred

Prints the percentage of correct forms and the mean edit distance (Levenshtein, in characters) for
each language, and their averages over languages.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.data.inflection import decode_word, language_of
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines, refuse_overwriting, write_files
from onmt_entmax.report.measures import LanguageScores, Score, score_by_language


def table(scores: LanguageScores) -> str:
    """Return the scores as an aligned table, accuracy in percent."""
    rows: list[tuple[str, Score]] = [*scores.languages.items(), ("average", scores.average)]
    width = max(len("language"), *(len(name) for name, _ in rows))
    lines = [f"{'language':<{width}}  {'words':>6}  {'accuracy':>8}  {'edit distance':>13}"]
    for name, each in rows:
        lines.append(
            f"{name:<{width}}  {each.words:>6}  {100 * each.accuracy:>8.2f}"
            f"  {each.edit_distance:>13.3f}"
        )
    lines.insert(-1, "-" * len(lines[0]))
    return "\n".join(lines)


def evaluate(options: argparse.Namespace) -> LanguageScores:
    """Score a file of predictions; write the scores as JSON if asked to.

    Raises:
        UserError: a file cannot be read, or the files differ in length.
    """
    refuse_overwriting([options.source, options.reference, options.predictions], [options.json])
    sources = list(read_lines(options.source))
    references = list(read_lines(options.reference))
    predictions = list(read_lines(options.predictions))
    for path, lines in ((options.reference, references), (options.predictions, predictions)):
        if len(lines) != len(sources):
            raise UserError(
                f"{path}: {len(lines)} lines, but {options.source} has {len(sources)}; "
                "there must be one line for each source line (and one prediction: -n_best 1)"
            )
    if not sources:
        raise UserError(f"{options.source}: no lines")
    scores = score_by_language(
        [language_of(options.source, n, line) for n, line in enumerate(sources, start=1)],
        [decode_word(line.split()) for line in references],
        [decode_word(line.split()) for line in predictions],
    )
    if options.json:
        content = {
            "average": vars(scores.average),
            "languages": {name: vars(each) for name, each in scores.languages.items()},
        }
        write_files({options.json: json.dumps(content, indent=2, ensure_ascii=False) + "\n"})
    return scores


def main(arguments: Sequence[str]) -> int:
    """Print the measures; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("--source", type=Path, required=True, help="source file of `prepare sigmorphon`")
    add("--reference", type=Path, required=True, help="target file of `prepare sigmorphon`")
    add("--predictions", type=Path, required=True, help="one predicted target a line")
    add("--json", type=Path, help="write the scores here too (accuracy from 0 to 1)")
    print(table(evaluate(parser.parse_args(arguments))))
    return 0
