"""Count the nonzeros of attention and output (Peters, Niculae and Martins 2019, Table 3).

    onmt-entmax sparsity run/mt/multi30k/de-en-softmax run/mt/multi30k/de-en \\
        --names softmax 1.5-entmax \\
        --source run/mt/multi30k/val.de --target run/mt/multi30k/val.en --out run/mt/sparsity

At each decoding step it counts the source positions of nonzero attention and the tokens of nonzero
probability, along the given targets (forced decoding) and along the model's own outputs (beam
search). It prints the means; --out also writes, in FOLDER,

    sparsity.json       means, quantiles, and means by position and by frequency rank
    sparsity.md         the same as tables
    sparsity.pdf, .png  the distributions (needs matplotlib)

The frequency rank of a token is its place in the vocabulary.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from onmt_entmax.cli.ending import argument_parser, following
from onmt_entmax.errors import UserError
from onmt_entmax.figures.sparsity import Counts, Pair, draw, forced_steps, markdown, read, table3
from onmt_entmax.figures.style import check_folder, model_names, prepare, write_figure
from onmt_entmax.files import read_lines, write_text
from onmt_entmax.rules import whole
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator


def predicted(
    options: argparse.Namespace, translator: Translator, pairs: Collection[Pair]
) -> Iterator[Pair]:
    """Yield sources with the model's outputs, where an output finished."""
    lines = islice(read_lines(options.source), len(pairs))
    answers = translator.answers(lines, options.batch_size)
    for pair, answer in zip(pairs, answers, strict=True):
        if answer.hypotheses:
            yield Pair(pair.source, list(answer.hypotheses[0].hypothesis.tokens))


def measure(options: argparse.Namespace, folder: Path, name: str) -> dict[str, Any]:
    """Return the figures of one model: by decoding mode, then by attention and output.

    Raises:
        UserError: something cannot be read, or nothing could be decoded.
    """
    task = SearchTask(SearchConfig(options.beam_size))
    given = options.transforms
    translator = Translator.from_folders([folder], task, transforms=given, attention=True)
    pairs = read(translator, options.source, options.target)[: options.limit]
    searched = tqdm(pairs, f"{name}: beam search", leave=False, disable=None)
    own = list(predicted(options, translator, searched))
    if not own:
        raise UserError(f"{folder}: no output finished")
    found: dict[str, Any] = {
        "model": str(folder),
        "sentences": len(pairs),
        "vocabulary": translator.stepper.vocabulary_size,
    }
    for mode, chosen in (("forced", pairs), ("predicted", own)):
        attention, output = Counts(), Counts()
        steps = forced_steps(translator, chosen, options.batch_size)
        for each in tqdm(steps, f"{name}: {mode}", len(chosen), leave=False, disable=None):
            output.add(each.outputs, each.targets, translator.stepper.eos)
            attention.add(each.attended, each.targets, translator.stepper.eos)
        found[mode] = {"attention": attention.summary(), "output": output.summary()}
    return found


def write_all(folder: Path, figures: dict[str, Any]) -> str:
    """Write numbers, tables and picture; return their paths."""
    texts = {
        "sparsity.json": json.dumps(figures, indent=1) + "\n",
        "sparsity.md": markdown(figures),
    }
    for name, text in texts.items():
        write_text(folder / name, text)
    picture = write_figure(draw(figures), folder / "sparsity")
    return ", ".join([*(str(folder / name) for name in texts), picture])


def comparing_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser for a command that compares models on parallel text."""
    parser = argument_parser(description)
    add = parser.add_argument
    add("models", nargs="+", type=Path, metavar="MODEL", help="run or model folders to compare")
    add("--names", nargs="+", metavar="NAME", help="names of the models (default: folder names)")
    add("--source", type=Path, required=True, metavar="FILE")
    add("--target", type=Path, required=True, metavar="FILE")
    add("--transforms", nargs="*", help="transforms of both files, instead of training's subwords")
    add(
        "--limit",
        type=following(whole(1, 10**9)),
        metavar="N",
        help="read only the first N sentences",
    )
    return parser


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = comparing_parser(__doc__)
    add = parser.add_argument
    add("--out", type=Path, metavar="FOLDER", help="write JSON, Markdown and pictures here")
    add("--beam_size", type=following(whole(1, 10_000)), default=5, metavar="N")
    add("--batch_size", type=following(whole(1, 10**7)), default=64, metavar="N")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Print and write the figures; return the exit status."""
    options = parse_arguments(arguments)
    names = model_names(options.models, options.names)
    if options.out:
        check_folder(options.out)
        prepare(names)  # fail before the work if matplotlib is missing
    both = zip(names, options.models, strict=True)
    figures = {name: measure(options, folder, name) for name, folder in both}
    print(table3(figures))
    if options.out:
        print(f"\nwritten: {write_all(options.out, figures)}")
    return 0
