"""Inflect words with a trained model: forms, their probabilities, and what is proven of them.

    echo "english draw V;V.PTCP;PST" | python tools/inflect.py run/pilot/model
    python tools/inflect.py run/pilot/model --language german --n_best 3 --input verbs.tsv

A question is a line `language lemma tags`, divided by tabs, or by spaces where the lemma has none;
with --language, `lemma tags`. Tags are joined by semicolons, as in the data of CoNLL-SIGMORPHON
2018. Several models are averaged. One that writes from right to left is named by --reversed. The
output has a line for each form:

    language  lemma  tags  rank  form  probability  certificate  warnings

divided by tabs. Where orders of writing are averaged, a probability is the least that is proven.
The certificate is `only` where no other form has any probability, `exhaustive` where every possible
form was found (--all lists them), `optimal` where the first is proven to be the most probable one,
`none` where nothing is proven. A warning names what training never saw: a tag, a character. --json
writes a line of JSON for each question instead.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines, refuse_overwriting, replaced_when_done, text_lines
from onmt_entmax.inflector import Inflection, Inflector, Question


def read_question(line: str, language: str | None) -> Question:
    """The question of a line.

    Raises:
        UserError: it has another number of columns.
    """
    expected = ["lemma", "tags"] if language else ["language", "lemma", "tags"]
    columns = line.split("\t") if "\t" in line else line.split()
    if len(columns) != len(expected):
        raise UserError(
            f"expected {' '.join(expected)}, divided by tabs (or spaces), "
            f"found {len(columns)} column{'s' * (len(columns) != 1)}"
        )
    named, lemma, tags = [language, *columns] if language else columns
    return Question(str(named), str(lemma), tuple(str(tags).split(";")))


def read_questions(
    lines: Iterable[str],
    where: str,
    language: str | None,
    check: Callable[[Question], None] = lambda question: None,
) -> list[Question]:
    """The questions of a file's lines; blank lines are skipped.

    Raises:
        UserError: names the line that is not a question, or that `check` refuses.
    """
    questions = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                question = read_question(line, language)
                check(question)
                questions.append(question)
            except UserError as error:
                raise UserError(f"{where}:{number}: {error}") from None
    if not questions:
        raise UserError(f"{where}: no questions")
    return questions


def as_tsv(answer: Inflection) -> str:
    """The answer as lines of columns; one line with an empty form where there is none."""
    asked = [answer.question.language, answer.question.lemma, ";".join(answer.question.tags)]
    proven = [answer.level, "; ".join(answer.warnings)]
    rows = [
        [*asked, str(rank), form.text, f"{form.prob:.6g}", *proven]
        for rank, form in enumerate(answer.forms, 1)
    ]
    return "\n".join("\t".join(row) for row in rows or [[*asked, "", "", "0", *proven]])


def as_json(answer: Inflection) -> str:
    """The answer as one line of JSON."""
    content: dict[str, Any] = {
        "language": answer.question.language,
        "lemma": answer.question.lemma,
        "tags": list(answer.question.tags),
        "forms": [
            # JSON has no infinity: null where the least that is proven is nothing.
            {
                "form": f.text,
                "prob": f.prob,
                "log_prob": f.log_prob if math.isfinite(f.log_prob) else None,
            }
            for f in answer.forms
        ],
        "certificate": answer.level,
        "proven": answer.certificate.proven,
        "bound": answer.certificate.bound,
        "mass": min(answer.certificate.mass, 1.0),  # a sum of floats may come out above
        "warnings": list(answer.warnings),
    }
    return json.dumps(content, ensure_ascii=False)


def talk(inflector: Inflector, language: str | None, as_json_lines: bool) -> None:
    """Answer a person, line by line; a line that cannot be answered is told."""
    for line in sys.stdin:
        if line.strip():
            try:
                answer = next(inflector.answers([read_question(line.rstrip("\n"), language)]))
            except UserError as error:
                print(f"inflect.py: {error}", file=sys.stderr)
            else:
                print(as_json(answer) if as_json_lines else as_tsv(answer), flush=True)


def answered(inflector: Inflector, options: argparse.Namespace) -> Iterator[str]:
    """The output for every question of the input."""
    if options.input:
        lines, where = read_lines(options.input), str(options.input)
    else:
        where = "standard input"
        lines = text_lines(sys.stdin.buffer, where)
    questions = read_questions(lines, where, options.language, inflector.check)
    answers = inflector.answers(questions, options.batch_size)
    for answer in tqdm(answers, total=len(questions), unit="word", disable=None):
        yield as_json(answer) if options.json else as_tsv(answer)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "models", nargs="*", type=Path, metavar="MODEL", help="run or model folders"
    )
    parser.add_argument("--input", type=Path, help="file of questions; else the standard input")
    parser.add_argument("--output", type=Path, help="file to write; else the standard output")
    parser.add_argument("--language", help="language of all lines, which then leave it out")
    parser.add_argument("--n_best", type=int, default=1, help="forms a question (default 1)")
    parser.add_argument(
        "--all",
        action="store_true",
        help="every form of any probability, as far as 10,000 steps of the decoder reach",
    )
    parser.add_argument(
        "--beam_size", type=int, default=5, help="prefixes kept in a search (default 5)"
    )
    parser.add_argument("--batch_size", type=int, default=64, help="words searched together")
    parser.add_argument(
        "--reversed", action="append", type=Path, default=[], metavar="MODEL",
        help="one that writes from right to left; once for each",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="JSON lines instead of columns")
    options = parser.parse_intermixed_args(arguments)
    if min(options.n_best, options.beam_size, options.batch_size) < 1:
        parser.error("--n_best, --beam_size and --batch_size must be at least 1")
    if not options.models and not options.reversed:
        parser.error("name a model")
    return options


def main(arguments: Sequence[str]) -> int:
    """Inflects; an error of the user's is one line on the standard error and status 2."""
    options = parse_arguments(arguments)
    refuse_overwriting([options.input], [options.output])
    n_best = 0 if options.all else options.n_best
    inflector = Inflector(
        options.models, n_best, options.beam_size, reversed_folders=options.reversed
    )
    if options.output:
        with replaced_when_done([options.output]) as (file,):
            file.writelines(f"{text}\n" for text in answered(inflector, options))
    elif not options.input and sys.stdin.isatty():
        talk(inflector, options.language, options.json)
    else:
        for text in answered(inflector, options):
            print(text)
    return 0
