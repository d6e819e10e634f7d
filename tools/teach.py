#!/usr/bin/env python
"""Training pairs for one model from what several models know together, in one command.

    python tools/teach.py --train run/medium/data/train.src --models A --reversed B C \\
        --weights 2 1 2 --reverse --out run/medium-reversed/data/answered

It runs, and shows, the commands that make them: questions about the lemmas of training
(`tools/self_training.py ask`), the answers of each model (`translate.py`), their average
(`tools/combine.py`), and the answers from which there is something to learn
(`tools/self_training.py keep`), which `--out` names: `answered.src` and `answered.tgt` above, which
a configuration mixes in by weight. `--reversed` names models that write from right to left, and
`--reverse` is for teaching such a model.

What lies between is in the folder `<out>.work`. The same command goes on there after the models
that have answered, and with another `--prob` or `--draw` chooses among the same answers again.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.matrix import digest

from onmt_entmax.checkpoint import find_model, load
from onmt_entmax.commands import command
from onmt_entmax.errors import UserError
from onmt_entmax.files import refuse_overwriting, write_text
from onmt_entmax.text.morphology import REVERSED

ROOT = Path(__file__).resolve().parent.parent


def run(script: str, *words: object) -> None:
    """Show a command of the repository and run it.

    Raises:
        subprocess.CalledProcessError: it failed, and has said why.
    """
    print(f"$ python {shlex.join([script, *map(str, words)])}", flush=True)
    subprocess.run([sys.executable, str(ROOT / script), *map(str, words)], check=True)


def ask(work: Path, asked: dict[str, Any], options: argparse.Namespace) -> None:
    """Write the questions, or see that those in the folder are the same, for the same models.

    The record of what was asked comes last: without it, questions are written again.

    Raises:
        UserError: they are others, or the folder cannot be read or written.
        subprocess.CalledProcessError: there is nothing to ask.
    """
    record = work / "teach.json"
    try:
        known = json.loads(record.read_bytes()) if record.exists() else None
    except (OSError, ValueError) as error:
        raise UserError(f"{record}: cannot read: {error}") from None
    if known is None:
        run(
            *("tools/self_training.py", "ask", "--train", options.train, "--each", options.each),
            *("--seed", options.seed, "--out", work / "asked.src"),
        )
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
            *("translate.py", "-model", model, "-src", work / "asked.src"),
            *("-beam_size", beam, "-n_best", beam),
            *("-output", work / f"{number}.pred", "-exactness_report", report),
        )
    return reports


def teach(options: argparse.Namespace) -> None:
    """Ask, average and keep.

    Raises:
        UserError: there is no model in a folder, or one that does not write from right to left
            alone, or `<out>.work` has other answers.
        subprocess.CalledProcessError: a command failed, and has said why.
    """
    pairs = [Path(f"{options.out}.{side}") for side in ("src", "tgt")]
    refuse_overwriting([options.train, options.train.with_suffix(".tgt")], pairs)
    models = [find_model(model) for model in (*options.models, *options.reversed)]
    work = options.out.with_name(f"{options.out.name}.work")
    for model in models[len(options.models) :]:
        if REVERSED in load(model).vocabularies.source:
            raise UserError(
                f"{model}: writes in both orders, and from left to right where nothing else is "
                "asked: name it under --models"
            )
    answering = [[str(model.resolve()), digest(model / "model.safetensors")] for model in models]
    asked = {"train": digest(options.train), "models": answering}
    ask(work, asked | {name: vars(options)[name] for name in ("each", "seed", "beam")}, options)
    reports = answer(work, models, options.beam)
    forward, backward = reports[: len(options.models)], reports[len(options.models) :]
    run(
        *("tools/combine.py", *(["--reports", *forward] if forward else [])),
        *(["--reversed", *backward] if backward else []),
        *(["--weights", *options.weights] if options.weights else []),
        *("--output", work / "together.pred", "--report", work / "together.jsonl"),
    )
    run(
        *("tools/self_training.py", "keep", "--report", work / "together.jsonl"),
        *("--prob", options.prob, "--at-most", options.at_most, "--seed", options.seed),
        *(["--draw"] if options.draw else []),
        *(["--reverse"] if options.reverse else []),
        *("--out", options.out),
    )


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


if __name__ == "__main__":
    sys.exit(main())
