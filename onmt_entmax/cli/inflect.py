"""Inflect words with a trained model: forms, their probabilities and certificates.

    onmt-entmax inflect spanish preferir "V;SBJV;PST;3;SG"
    onmt-entmax inflect --model run/pilot/model --language german --n_best 3 --input verbs.tsv

Without LANGUAGE LEMMA TAGS, each line of the input is a query: `language lemma tags`, or `lemma
tags` with --language, separated by tabs, or by spaces if the lemma has none. Semicolons join the
tags, in the order of the training data; in another order they may give another form. If a language
has no tags, TAGS is ''. A heading, such as `lemma` and `tags`, is left out.

Without --model, inflection-86 is used, a model of 86 languages that comes with the package. Several
models are averaged. Each form is a line of columns, separated by tabs (--json: each query is a line
of JSON):

    language  lemma  tags  rank  form  probability  certificate  warnings

If left-to-right and right-to-left models are averaged, the probability is a proven lower bound.
Certificates:

    only        no other form has any probability
    exhaustive  every possible form was found (--all lists them)
    optimal     the first form is the most probable one
    none        nothing is proven

A warning names tags and characters that the training data does not have, at all or in the language;
a lemma in another Unicode normal form than the training data; and words that mix scripts, such as
Cyrillic with a Latin a. The first warning is printed to the standard error, too. For a single
query, so is a warning if no training source has exactly its tags.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.dialogue import Dialogue
from onmt_entmax.cli.inflection_lines import as_json, as_tsv
from onmt_entmax.cli.inflection_queries import questions_of, read_question
from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.model_options import (
    LISTING_BUDGET,
    add_models,
    add_target_symbols,
    inflector_of,
)
from onmt_entmax.cli.streams import STDIN
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import refuse_overwriting, replaced_when_done
from onmt_entmax.inflector import Inflection, Inflector
from onmt_entmax.rules import whole


def _converse(inflector: Inflector, options: argparse.Namespace) -> None:
    """Answer queries that a user types at a terminal; print the error of a wrong one, and go on."""
    expected = "lemma tags" if options.language else "language lemma tags"
    print(f"type {expected}, such as V;PST for tags; Ctrl-D ends", file=sys.stderr)

    def answer(line: str) -> str:
        if not line.strip():
            return ""
        question = read_question(line, options.language)
        return _text(next(inflector.answers([question])), options)

    Dialogue(options.program).answer_all(answer)


def predictions(inflector: Inflector, options: argparse.Namespace) -> Iterator[str]:
    """Yield the output of the query on the command line, or of each query of the input.

    Warnings of a single query are printed before its form, which may be wrong. Of several queries,
    only the first with warnings is named, at the end.
    """
    questions = questions_of(inflector, options)
    answers = inflector.answers(questions, options.batch_size)
    if len(questions) == 1:
        answer = next(answers)
        if answer.warnings:
            warn("; ".join(answer.warnings))
        yield _text(answer, options)
        return
    with_warnings: list[Inflection] = []
    # `disable=None` shows the bar only on a terminal.
    for answer in tqdm(answers, total=len(questions), unit="word", disable=None):
        if answer.warnings:
            with_warnings.append(answer)
        yield _text(answer, options)
    if with_warnings:
        first = with_warnings[0]
        share = f"words with warnings: {len(with_warnings):,} of {len(questions):,}"
        warn(f"{first.question.lemma}: {'; '.join(first.warnings)} ({share})")


def _text(answer: Inflection, options: argparse.Namespace) -> str:
    """Return a prediction as JSON with `--json`, otherwise as columns."""
    return as_json(answer) if options.json else as_tsv(answer)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    size = whole(1, 10_000)
    parser.add_argument("query", nargs="*", metavar="LANGUAGE LEMMA TAGS", help="one query")
    add_models(parser)
    parser.add_argument(
        "--input", type=Path, help="file of queries; - is the standard input, the default"
    )
    parser.add_argument("--output", type=Path, help="file to write (default: standard output)")
    parser.add_argument("--language", help="language of all queries, which then omit it")
    listed = parser.add_mutually_exclusive_group()
    listed.add_argument("--n_best", type=size, default=1, help="forms per query (default 1)")
    listed.add_argument(
        "--all",
        action="store_true",
        help=f"list every possible form, within {LISTING_BUDGET:,} decoder steps",
    )
    parser.add_argument("--beam_size", type=size, default=5, help="beam size (default 5)")
    parser.add_argument(
        "--batch_size",
        type=whole(1, 10**7),
        default=64,
        help="queries searched together (default 64)",
    )
    add_target_symbols(parser)
    parser.add_argument(
        "--matmul_dtype",
        choices=("float32", "bfloat16"),
        default="float32",
        help="type of products in LSTMs (default float32)",
    )
    parser.add_argument("--json", action="store_true", help="JSON lines instead of columns")
    parser.set_defaults(program=parser.prog)
    options = parser.parse_intermixed_args(arguments)
    expected = ["LEMMA", "TAGS"] if options.language else ["LANGUAGE", "LEMMA", "TAGS"]
    if len(options.query) not in (0, len(expected)):
        number = counted(len(options.query), "word")
        raise UserError(f'expected {" ".join(expected)}, found {number}; quote tags: "V;PST"')
    if options.query and options.input:
        raise UserError("give a query or --input, not both")
    return options


def main(arguments: Sequence[str]) -> int:
    """Inflect the queries; return the exit status."""
    options = parse_arguments(arguments)
    refuse_overwriting([options.input], [options.output])
    n_best = 0 if options.all else options.n_best
    inflector = inflector_of(options, n_best, matmul_dtype=options.matmul_dtype)
    if options.output:
        with replaced_when_done([options.output]) as (file,):
            file.writelines(f"{text}\n" for text in predictions(inflector, options))
    elif not options.query and options.input in (None, STDIN) and sys.stdin.isatty():
        _converse(inflector, options)
    else:
        for text in predictions(inflector, options):
            print(text)
    return 0
