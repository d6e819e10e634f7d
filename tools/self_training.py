#!/usr/bin/env python
"""More training pairs from what models are sure of: self-training for inflection.

Training data shows a few forms of each lemma. `ask` puts lemmas and tags together that it does not
show together; a model, or better several, answers; `keep` makes training pairs of the answers that
are proven to be the most probable ones and have at least some probability. So a new model sees the
training data's lemmas in more forms, most of them right, which only an ensemble was sure of (Yu et
al. 2020, "Ensemble Self-Training for Low-Resource Languages"). No other data is used.

What one of the models would have answered anyway teaches it nothing: where the average of five has
0.95 for an answer, each of them has 0.75 or more. With `keep --prob 0.3 --at-most 0.95` a model
learns what several know together, which is distillation (Kim and Rush 2016, "Sequence-Level
Knowledge Distillation") with new questions. The best answers make it surer than those models are
together; with `--draw` it learns how sure they are, too.

    python tools/self_training.py ask --train run/medium/data/train.src --each 2 \\
        --out run/medium/data/asked.src
    python translate.py -model run/a/model run/b/model -src run/medium/data/asked.src \\
        -beam_size 5 -output run/medium/asked.pred -exactness_report run/medium/asked.jsonl
    python tools/self_training.py keep --report run/medium/asked.jsonl --prob 0.9 \\
        --out run/medium/data/answered

The last writes `answered.src` and `answered.tgt`, which a configuration mixes in by weight. Forms
stay as the report has them: those of models that write from right to left are for training such
models, and what `tools/combine.py --report` writes is for the others; `keep --reverse` turns them
around. Data of both orders (`sigmorphon.py prepare --both`) is asked for in one, and answers are
pairs of one.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from words.rows import write_pairs

from onmt_entmax.commands import command
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines, refuse_overwriting, write_files
from onmt_entmax.reports.reading import read_report
from onmt_entmax.text.morphology import (
    UNKNOWN,
    asks_reversed,
    decode_source,
    encode_source,
    turned,
)
from onmt_entmax.text.vocabulary import COPY_SYMBOL

_NAMELESS = re.compile(f"{UNKNOWN}|{COPY_SYMBOL.format('[0-9]+')}")
_TRIES = 20  # draws for one new question, before there are taken to be no more


class Question(NamedTuple):
    """What a model of inflection is asked."""

    tags: tuple[str, ...]
    lemma: str


def read_questions(path: Path) -> dict[str, list[Question]]:
    """The questions of a source file, by language; those for forms from right to left are others.

    Raises:
        UserError: the file cannot be read, or names the line that is no question.
    """
    found: dict[str, list[Question]] = {}
    for number, line in enumerate(read_lines(path), 1):
        try:
            language, tags, lemma = decode_source(line.split() or [""])
        except ValueError as error:
            raise UserError(f"{path}:{number}: {error}") from None
        if not asks_reversed(line.split()):
            found.setdefault(language, []).append(Question(tags, lemma))
    return found


def new_questions(
    known: Sequence[Question], count: int, generator: random.Random
) -> list[Question]:
    """Questions of a language that put known lemmas and tags together as no known one does.

    Tags are drawn as often as training has them. A lemma stays what it is: tags and lemma are of
    questions with the same first tag, which is the part of speech.

    Args:
        known: the training questions of the language.
        count: how many are wanted; fewer where the language does not give so many.
        generator: what is random comes from it alone.
    """
    lemmas: dict[tuple[str, ...], dict[str, None]] = {}
    for question in known:
        lemmas.setdefault(question.tags[:1], {})[question.lemma] = None
    choices = {kind: list(each) for kind, each in lemmas.items()}
    taken = set(known)
    made: list[Question] = []
    tries = count * _TRIES
    while len(made) < count and tries:
        tries -= 1
        tags = generator.choice(known).tags
        question = Question(tags, generator.choice(choices[tags[:1]]))
        if question not in taken:
            taken.add(question)
            made.append(question)
    return made


def ask(options: argparse.Namespace) -> int:
    """Writes the questions, language after language."""
    refuse_overwriting([options.train], [options.out])
    lines = []
    for language, known in read_questions(options.train).items():
        # Of its own for each language: the others do not change what it gets.
        generator = random.Random(f"{options.seed}/{language}")
        for tags, lemma in new_questions(known, options.each * len(known), generator):
            lines.append(" ".join(encode_source(language, lemma, tags)) + "\n")
    if not lines:
        raise UserError(f"{options.train}: no lemma that could be asked for with other tags")
    write_files({options.out: "".join(lines)})
    print(f"{options.out}: {len(lines)} questions")
    return 0


def sure_answers(
    path: Path, least: float, most: float = 1.0, generator: random.Random | None = None
) -> Iterable[tuple[str, str]]:
    """Source and an output of the sentences of a report whose best output is proven and sure, but
    for outputs with a character that the model has no name for.

    Args:
        path: an exactness report of `translate.py` or `tools/combine.py`.
        least: the probability that the best output must have.
        most: the probability that it may have.
        generator: draws among the outputs by their probabilities; without it, the best one.

    Raises:
        UserError: the file is no such report.
    """
    for record in read_report(path):
        for best in record["hypotheses"][:1]:
            if record["certificate"] == "none" or not least <= best["prob"] <= most:
                continue
            text = best["text"]
            if generator:
                texts = [hypothesis["text"] for hypothesis in record["hypotheses"]]
                probs = [hypothesis["prob"] for hypothesis in record["hypotheses"]]
                [text] = generator.choices(texts, probs)
            if not any(map(_NAMELESS.fullmatch, text.split())):
                yield record["source"], text


def keep(options: argparse.Namespace) -> int:
    """Writes the pairs, in random order: a training that stops early has seen all languages."""
    refuse_overwriting([options.report], [Path(f"{options.out}.{side}") for side in ("src", "tgt")])
    generator = random.Random(options.seed)
    answers = sure_answers(
        options.report, options.prob, options.at_most, generator if options.draw else None
    )
    pairs = [(source, turned(target, options.reverse)) for source, target in answers]
    if not pairs:
        raise UserError(
            f"{options.report}: no answer that is proven has a probability of {options.prob} to "
            f"{options.at_most}"
        )
    generator.shuffle(pairs)
    write_pairs({options.out: pairs})
    print(f"{options.out}.{{src,tgt}}: {len(pairs)} pairs")
    return 0


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line; ends the program with status 2 where it is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    asking = commands.add_parser("ask", help="known lemmas and tags, put together anew")
    asking.set_defaults(run=ask)
    add = asking.add_argument
    add("--train", type=Path, required=True, help="source file, as sigmorphon.py prepares it")
    add("--each", type=int, default=2, metavar="N", help="questions a training pair (default 2)")
    add("--out", type=Path, required=True, help="source file to write")
    keeping = commands.add_parser("keep", help="the answers of a report that are sure, as pairs")
    keeping.set_defaults(run=keep)
    add = keeping.add_argument
    add("--report", type=Path, required=True, help="-exactness_report of translate.py")
    add("--prob", type=float, default=0.9, help="least probability of an answer (default 0.9)")
    add("--at-most", type=float, default=1, help="greatest, without what all know (default 1)")
    add("--draw", action="store_true", help="draw answers by their probabilities, not the best")
    add("--reverse", action="store_true", help="write the forms the other way around")
    add("--out", type=Path, required=True, help="writes OUT.src and OUT.tgt")
    for each in (asking, keeping):
        each.add_argument("--seed", type=int, default=1, help="of what is random (default 1)")
    options = parser.parse_args(arguments)
    if options.run is ask and options.each < 1:
        raise UserError(f"--each must be at least 1, not {options.each}")
    if options.run is keep and not 0 < options.prob <= 1:
        raise UserError(f"--prob must be above 0 and at most 1, not {options.prob}")
    if options.run is keep and not options.prob <= options.at_most <= 1:
        raise UserError(
            f"--at-most must be at least --prob ({options.prob}) and at most 1, "
            f"not {options.at_most}"
        )
    return options


@command
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; an error of the user's is one line on the standard error and status 2."""
    options = parse_arguments(arguments)
    status: int = options.run(options)
    return status


if __name__ == "__main__":
    sys.exit(main())
