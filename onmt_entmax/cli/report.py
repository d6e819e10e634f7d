"""An exactness report as one HTML page that anyone can open: nothing to install, no network.

    python translate.py -model run/mine -src test.src -output test.out -n_best 10 \\
        -exactness_report test.report.jsonl
    python tools/report_page.py -model run/mine -report test.report.jsonl -output test.html

The page lists the sentences with their certificates. For the first `-details` sentences the models
are run again along the reported hypotheses, and the page draws their lattice, the possible next
tokens and the attention (Figures 1, 2 and 5 of Peters, Niculae and Martins 2019). With more
`-n_best` in the report the lattices have more branches.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.data.batch import make_batch
from onmt_entmax.errors import UserError
from onmt_entmax.files import refuse_overwriting, write_atomically
from onmt_entmax.report.lattice import build_lattice
from onmt_entmax.report.page import drawing, write_page
from onmt_entmax.report.reading import read_report
from onmt_entmax.translator import Translator

LIMIT = 100  # next tokens listed at a prefix; the page says how many more there are
# A log-probability computed in another batch differs by far less, but for those of tokens at the
# edge of the support, which are next to impossible.
CLOSE = 1e-3
SMALL = 1e-6


def draw(translator: Translator, record: dict[str, Any]) -> Any:
    """What the page draws of a record; None where the models do not give the hypotheses the
    probabilities that the report says."""
    reader, names = translator.reader, translator.vocabularies.target
    pairs = [reader.preprocess(record["source"], h["text"]) for h in record["hypotheses"]]
    question = reader.encode(pairs[0][0])
    strings = [tuple(names.encode(question.copied.hide(target))) for _, target in pairs]
    if not question.words or len(set(strings)) < len(strings):
        return None
    batch = make_batch([question.example], translator.vocabularies)
    lattice = build_lattice(translator.stepper, batch, strings, limit=LIMIT)
    for i, hypothesis in enumerate(record["hypotheses"]):
        known = math.log(max(hypothesis["prob"], sys.float_info.min))
        now = max(lattice.log_prob(i), math.log(sys.float_info.min))
        alike = abs(now - known) <= CLOSE or abs(math.exp(now) - math.exp(known)) <= SMALL
        if not alike:  # a nan is not
            return None
    return drawing(lattice, question.words, question.copied.show(names.tokens), names.eos)


def drawings(
    translator: Translator, records: Sequence[dict[str, Any]], wanted: int
) -> Iterator[tuple[int, Any]]:
    """Drawings of the first `wanted` records that have hypotheses, each with its position.

    Raises:
        UserError: not one of them could be drawn.
    """
    positions = [i for i, record in enumerate(records) if record["hypotheses"]][:wanted]
    left_out = 0
    for position in tqdm(
        positions, desc="pictures", unit="sentence", disable=None if positions else True
    ):
        content = draw(translator, records[position])
        if content is None:
            left_out += 1
        else:
            yield position, content
    reason = (
        "this model gives their hypotheses other probabilities than the report says "
        "(is it the report's model, with its -transforms, and without -replace_unk?)"
    )
    if positions and left_out == len(positions):
        raise UserError(f"no sentence can be drawn: {reason}")
    if left_out:
        print(f"warning: no pictures of {left_out} sentences: {reason}", file=sys.stderr)


def number_of_details(text: str) -> int:
    """`-details`: a number, or all."""
    if text == "all":
        return sys.maxsize
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor all")
    return int(text)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Reads the command line; ends the program with status 2 where it is wrong."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("-model", type=Path, nargs="+", required=True, help="the models that made the report")
    add("-report", type=Path, required=True, help="what translate.py -exactness_report wrote")
    add("-output", type=Path, required=True, help="the HTML file to write")
    add(
        "-details", type=number_of_details, default=200, metavar="N",
        help="draw pictures of the first N sentences with hypotheses, or of all (default 200)",
    )  # fmt: skip
    add("-transforms", nargs="*", default=[], help="those that translate.py was given")
    add("-title", help="title of the page; the name of the report by default")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Writes the page; an error of the user's is one line on the standard error and status 2."""
    options = parse_arguments(arguments)
    refuse_overwriting([options.report], [options.output])
    records = list(read_report(options.report))
    translator = Translator.from_folders(
        options.model, transforms=options.transforms, attention=True
    )
    title = options.title or options.report.name

    def write(path: Path) -> None:
        with open(path, "w", encoding="utf-8") as file:
            write_page(file, title, records, drawings(translator, records, options.details))

    write_atomically(options.output, write)
    size = options.output.stat().st_size / 1e6
    print(f"{options.output}: {len(records)} lines, {size:.1f} MB")
    return 0
