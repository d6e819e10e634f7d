"""Training pairs for one model from what several models know together, in one command.

    python tools/teach.py --train run/medium/data/train.src --models A --reversed B C \\
        --weights 2 1 2 --reverse --out run/medium-reversed/data/answered

Training data shows a few forms of each lemma. This asks models for other forms (it puts lemmas and
tags of training together anew), and makes pairs of the answers that are proven to be the most
probable ones: a new model learns what several know together, which is distillation (Kim and Rush
2016, "Sequence-Level Knowledge Distillation") with new questions. What all of them know teaches it
nothing: `--at-most` leaves that out. The pairs are `answered.src` and `answered.tgt` above, which a
configuration mixes in by weight. `--reversed` names models that write from right to left, and
`--reverse` is for teaching such a model. The commands that answer (`translate.py`) and average
(`tools/combine.py`) are shown.

What lies between is in the folder `<out>.work`. The same command goes on there after the models
that have answered, and with another `--prob` or `--draw` chooses among the same answers again.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.checkpoint import find_model
from onmt_entmax.cli.ending import command
from onmt_entmax.data.inflection import UNKNOWN, decode_source, encode_source, turned, write_pairs
from onmt_entmax.data.vocabulary import COPY_SYMBOL
from onmt_entmax.errors import UserError
from onmt_entmax.experiment.matrix import digest
from onmt_entmax.files import read_lines, refuse_overwriting, write_files, write_text
from onmt_entmax.report.reading import read_report

# New questions about the lemmas of training, and training pairs of the answers to them.
#
# Training data shows a few forms of each lemma. `new_questions` puts lemmas and tags together that it
# does not show together, models answer, and `proven_answers` are what there is to learn from.

_NAMELESS = re.compile(f"{UNKNOWN}|{COPY_SYMBOL.format('[0-9]+')}")
_TRIES = 20  # draws for one new question, before there are taken to be no more


class Question(NamedTuple):
    """What a model of inflection is asked."""

    tags: tuple[str, ...]
    lemma: str


def read_questions(path: Path) -> dict[str, list[Question]]:
    """The questions of a source file, by language.

    Raises:
        UserError: the file cannot be read, or names the line that is no question.
    """
    found: dict[str, list[Question]] = {}
    for number, line in enumerate(read_lines(path), 1):
        try:
            language, tags, lemma = decode_source(line.split() or [""])
        except ValueError as error:
            raise UserError(f"{path}:{number}: {error}") from None
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


def proven_answers(
    path: Path, least: float, most: float = 1.0, generator: random.Random | None = None
) -> Iterator[tuple[str, str]]:
    """Source and an output of the sentences of a report whose best output is proven and has a
    probability in these bounds, but for outputs with a character that the model has no name for.

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


def run(name: str, *words: object) -> None:
    """Show a console command and run it.

    Raises:
        subprocess.CalledProcessError: it failed, and has said why.
    """
    print(f"$ onmt-entmax {shlex.join([name, *map(str, words)])}", flush=True)
    subprocess.run([sys.executable, "-m", "onmt_entmax", name, *map(str, words)], check=True)


def write_questions(options: argparse.Namespace, out: Path) -> None:
    """Write new questions about the lemmas of training, language after language.

    Raises:
        UserError: there is nothing to ask, or a file cannot be read or written.
    """
    lines = []
    for language, known in read_questions(options.train).items():
        # Of its own for each language: the others do not change what it gets.
        generator = random.Random(f"{options.seed}/{language}")
        for tags, lemma in new_questions(known, options.each * len(known), generator):
            lines.append(" ".join(encode_source(language, lemma, tags)) + "\n")
    if not lines:
        raise UserError(f"{options.train}: no lemma that could be asked for with other tags")
    write_files({out: "".join(lines)})
    print(f"{out}: {len(lines)} questions", flush=True)


def ask(work: Path, asked: dict[str, Any], options: argparse.Namespace) -> None:
    """Write the questions, or see that those in the folder are the same, for the same models.

    The record of what was asked comes last: without it, questions are written again.

    Raises:
        UserError: they are others, there is nothing to ask, or the folder cannot be read or
            written.
    """
    record = work / "teach.json"
    try:
        known = json.loads(record.read_bytes()) if record.exists() else None
    except (OSError, ValueError) as error:
        raise UserError(f"{record}: cannot read: {error}") from None
    if known is None:
        write_questions(options, work / "asked.src")
        write_text(record, json.dumps(asked, indent=2) + "\n")
    elif known != asked:
        other = sorted(
            key for key in asked if not isinstance(known, dict) or asked[key] != known.get(key)
        )
        raise UserError(
            f"{work}: has answers for other {', '.join(other)}; delete it or give another --out"
        )


def answer(work: Path, models: Sequence[Path], beam: int) -> list[Path]:
    """Each model's answers to the questions; those that are there already stay."""
    reports = []
    for number, model in enumerate(models, 1):
        report = work / f"{number}.jsonl"
        reports.append(report)
        if report.exists():
            print(f"{report}: {model} has answered already")
            continue
        run(
            *("translate", "-model", model, "-src", work / "asked.src"),
            *("-beam_size", beam, "-n_best", beam),
            *("-output", work / f"{number}.pred", "-exactness_report", report),
        )
    return reports


def keep(report: Path, options: argparse.Namespace) -> None:
    """Write the pairs, in random order: a training that stops early has seen all languages.

    Raises:
        UserError: there is nothing to learn, or a file cannot be read or written.
    """
    generator = random.Random(options.seed)
    drawing = generator if options.draw else None
    answers = proven_answers(report, options.prob, options.at_most, drawing)
    pairs = [(source, turned(target, options.reverse)) for source, target in answers]
    if not pairs:
        raise UserError(
            f"{report}: no answer that is proven has a probability of {options.prob} to "
            f"{options.at_most}"
        )
    generator.shuffle(pairs)
    write_pairs({options.out: pairs})
    print(f"{options.out}.{{src,tgt}}: {len(pairs)} pairs")


def teach(options: argparse.Namespace) -> None:
    """Ask, average and keep.

    Raises:
        UserError: there is no model in a folder, `<out>.work` has other answers, or there is
            nothing to ask or to learn.
        subprocess.CalledProcessError: a command failed, and has said why.
    """
    pairs = [Path(f"{options.out}.{side}") for side in ("src", "tgt")]
    refuse_overwriting([options.train, options.train.with_suffix(".tgt")], pairs)
    models = [find_model(model) for model in (*options.models, *options.reversed)]
    work = options.out.with_name(f"{options.out.name}.work")
    answering = [[str(model.resolve()), digest(model / "model.safetensors")] for model in models]
    asked = {"train": digest(options.train), "models": answering}
    ask(work, asked | {name: vars(options)[name] for name in ("each", "seed", "beam")}, options)
    reports = answer(work, models, options.beam)
    forward, backward = reports[: len(options.models)], reports[len(options.models) :]
    run(
        *("combine", *(["--reports", *forward] if forward else [])),
        *(["--reversed", *backward] if backward else []),
        *(["--weights", *options.weights] if options.weights else []),
        *("--output", work / "together.pred", "--report", work / "together.jsonl"),
    )
    keep(work / "together.jsonl", options)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line; ends the program with status 2 where it is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    several = {"type": Path, "nargs": "+", "action": "extend", "default": []}
    add("--train", type=Path, required=True, help="source file, as sigmorphon.py prepares it")
    add("--models", **several, help="models that write from left to right")
    add("--reversed", **several, help="models that write from right to left")
    add("--weights", type=float, nargs="+", help="one for each model; all the same by default")
    add("--out", type=Path, required=True, help="writes OUT.src and OUT.tgt")
    add(
        "--reverse", action="store_true", help="for teaching a model that writes from right to left"
    )
    add("--each", type=int, default=2, metavar="N", help="questions a training pair (default 2)")
    add("--beam", type=int, default=5, help="of the search, and answers of a model (default 5)")
    add("--prob", type=float, default=0.3, help="least probability of an answer (default 0.3)")
    add("--at-most", type=float, default=0.95, help="greatest probability (default 0.95)")
    add("--draw", action="store_true", help="draw answers by their probabilities, not the best")
    add("--seed", type=int, default=1, help="of what is random (default 1)")
    options = parser.parse_args(arguments)
    count = len(options.models) + len(options.reversed)
    if not count:
        raise UserError("name the models that teach: --models, --reversed or both")
    if options.weights and len(options.weights) != count:
        raise UserError(f"--weights has {len(options.weights)} numbers for {count} models")
    if not all(weight > 0 for weight in options.weights or ()):
        raise UserError("--weights must be positive numbers")  # before the models answer, not after
    if options.each < 1:
        raise UserError(f"--each must be at least 1, not {options.each}")
    if options.beam < 1:
        raise UserError(f"--beam must be at least 1, not {options.beam}")
    if not 0 < options.prob <= options.at_most <= 1:
        raise UserError(
            "--prob must be above 0 and --at-most from there to 1, "
            f"not {options.prob} and {options.at_most}"
        )
    return options


@command
def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the pairs; an error of the user's is one line on the standard error and status 2."""
    options = parse_arguments(arguments)
    try:
        teach(options)
    except subprocess.CalledProcessError as error:
        status = int(error.returncode)
        return status if status > 0 else 128 - status  # as a shell has it, after a signal
    return 0
