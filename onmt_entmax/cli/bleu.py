"""Translations against references: sacrebleu's BLEU, chrF and TER, and which differences are real.

    python tools/bleu.py run/mt/multi30k/de-en.pred run/mt/multi30k/de-en-softmax.pred \\
        --reference run/mt/multi30k/val.en --tokenize none --output scores.json

Each system is a file with a translation a line, each reference a file with as many lines. The
figures are those of sacrebleu's own command, to the digit, with its signatures: what one needs to
know to compare them. Of several systems, the first is the baseline of sacrebleu's paired bootstrap
test (Koehn 2004): `p` is the probability of a difference as large as this one between systems that
do not differ; `+-` is half of the 95 % interval.

`--tokenize` says how BLEU divides text into words. 13a is the standard for translations that are
text; `none` takes the words between spaces, for the tokenised BLEU of papers that report it; `char`
or `ja-mecab` is for Japanese. With several, there is a BLEU for each.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.data.parallel import read_lines
from onmt_entmax.errors import UserError
from onmt_entmax.files import refuse_overwriting, replaced_when_done

METRICS = ("bleu", "chrf", "ter")


@dataclass(frozen=True)
class Score:
    """One measure of one system; the last three only where systems are compared.

    Attributes:
        value: the measure, of 100.
        mean: over the resampled sets.
        half_width: of the 95 % interval around that mean.
        p_value: of the difference from the first system; None for that one.
    """

    value: float
    mean: float | None = None
    half_width: float | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class Measure:
    """One measure of all systems, in their order."""

    name: str
    signature: str
    scores: tuple[Score, ...]


def make_metrics(
    names: Sequence[str], tokenizers: Sequence[str], lowercase: bool
) -> list[tuple[str, Any]]:
    """sacrebleu's measures with the names of their columns.

    Raises:
        UserError: a tokeniser needs what is not installed.
    """
    metrics: list[tuple[str, Any]] = []
    if "bleu" in names:
        for tokenizer in tokenizers:
            name = f"BLEU {tokenizer}"
            try:
                metrics.append((name, BLEU(tokenize=tokenizer, lowercase=lowercase, force=True)))
            except (ImportError, RuntimeError) as error:
                reason = " ".join(str(error).split())
                raise UserError(f"--tokenize {tokenizer}: {reason}") from None
    if "chrf" in names:
        metrics.append(("chrF2", CHRF()))
    if "ter" in names:
        metrics.append(("TER", TER()))  # which leaves case out of account, as tercom does
    return metrics


def measure(
    systems: Sequence[tuple[str, list[str]]],
    references: list[list[str]],
    metrics: Sequence[tuple[str, Any]],
    resamples: int,
) -> list[Measure]:
    """Measure systems; compare them with the first where there are several.

    Args:
        systems: names and translations.
        references: one list or several, each as long as the translations.
        metrics: names and sacrebleu's measures.
        resamples: of the bootstrap; 0 leaves the comparison out.
    """
    measures = []
    for name, metric in metrics:
        if len(systems) > 1 and resamples:
            test = PairedTest(list(systems), {name: metric}, references, "bs", resamples)
            signatures, results = test()
            (kept,) = signatures
            compared: list[Any] = results[kept]
            scores = [
                _score(result, lines == systems[0][1])
                for result, (_, lines) in zip(compared, systems, strict=True)
            ]
            signature = str(signatures[kept])
        else:
            scores = [Score(metric.corpus_score(lines, references).score) for _, lines in systems]
            signature = str(metric.get_signature())
        measures.append(Measure(name, signature, tuple(scores)))
    return measures


def _score(result: Any, is_the_first: bool) -> Score:
    """A result of the bootstrap; of translations that are those of the first system, p is 1: for
    sacrebleu, which counts differences above 0, it would be at its least."""
    p = None if result.p_value is None else 1.0 if is_the_first else float(result.p_value)
    return Score(float(result.score), float(result.mean), float(result.ci), p)


def table(systems: Sequence[str], measures: Sequence[Measure]) -> str:
    """The scores, a system a row, with the signatures below."""
    head = ["system", *(m.name for m in measures)]
    rows = [[name, *(_cell(m.scores[row]) for m in measures)] for row, name in enumerate(systems)]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.ljust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        ).rstrip()
        for row in (head, *rows)
    ]
    return "\n".join([*lines, "", *(f"{m.name}: {m.signature}" for m in measures)])


def _cell(score: Score) -> str:
    text = f"{score.value:.2f}"
    if score.half_width is not None:
        text += f" +- {score.half_width:.2f}"
    if score.p_value is not None:
        text += f" (p {score.p_value:.4f})"
    return text


def as_json(systems: Sequence[str], measures: Sequence[Measure]) -> dict[str, Any]:
    """The scores as they are written: `{system: {measure: {...}}}` and the signatures."""
    return {
        "systems": {
            name: {
                m.name: {k: v for k, v in vars(m.scores[row]).items() if v is not None}
                for m in measures
            }
            for row, name in enumerate(systems)
        },
        "signatures": {m.name: m.signature for m in measures},
    }


def read_texts(paths: Sequence[Path], lines: int | None = None) -> list[list[str]]:
    """The lines of files that must be equally long, without white space at their ends.

    Raises:
        UserError: one cannot be read, is empty, or has another number of lines.
    """
    texts = []
    for path in paths:
        text = [line.rstrip() for line in read_lines(path)]
        lines = lines or len(text)
        if not text:
            raise UserError(f"{path}: the file is empty")
        if len(text) != lines:
            raise UserError(f"{path}: has {len(text)} lines, expected {lines} as in the reference")
        texts.append(text)
    return texts


def run(options: argparse.Namespace) -> str:
    """Measure as the options say; returns the table."""
    refuse_overwriting([*options.system, *options.reference], [options.output])
    references = read_texts(options.reference)
    texts = read_texts(options.system, len(references[0]))
    names = [str(path) for path in options.system]
    if len(set(names)) < len(names):
        raise UserError("the same system is given twice")
    metrics = make_metrics(options.metrics, options.tokenize, options.lowercase)
    systems = list(zip(names, texts, strict=True))
    with replaced_when_done([options.output] if options.output else []) as files:
        measures = measure(systems, references, metrics, options.resamples)
        for file in files:
            file.write(json.dumps(as_json(names, measures), indent=2, ensure_ascii=False) + "\n")
    return table(names, measures)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("system", nargs="+", type=Path, metavar="SYSTEM", help="a file of translations")
    add("--reference", nargs="+", type=Path, required=True, metavar="FILE")
    add("--metrics", nargs="+", choices=METRICS, default=list(METRICS), help="default: all")
    add("--tokenize", nargs="+", choices=list(BLEU.TOKENIZERS), default=["13a"], metavar="NAME")
    add("--lowercase", action="store_true", help="BLEU without regard to case")
    add(
        "--resamples", type=int, default=1000, metavar="N", help="samples of the bootstrap; 0: none"
    )
    add("--output", type=Path, metavar="FILE", help="write the scores as JSON too")
    options = parser.parse_args(arguments)
    if options.resamples < 0:
        parser.error("--resamples must not be negative")
    return options


def main(arguments: Sequence[str]) -> int:
    """Measures; an error of the user's is one line on the standard error and status 2."""
    options = parse_arguments(arguments)
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    print(run(options))
    return 0
