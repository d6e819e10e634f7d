"""Time our translator against OpenNMT-py 2.3.0's, alternating in one process.

    python -m tools.bench.search --softmax run/pilot/softmax --entmax run/pilot/model \\
        --src run/pilot/data/dev.src

    python -m tools.bench.search --size words --sentences 64 --rounds 3

Both translators go from lines to text. OpenNMT-py's `build_translator` reads the softmax model,
written as one of its checkpoints, and `Translator.translate` runs with default options except for
beam and batch. Ours is `Translator.answers`, with certificates. In each round, all sides translate
the same sentences, in the order of the table. With one thread, times are processor times; else,
they are wall times.

`--size words` ignores --softmax, --entmax and --src. Its models are random, of the size of
word-level translation (500 dimensions, 18,000 tokens). Softmax and entmax have the same weights,
with an output layer that is scaled to the support of a trained 1.5-entmax model. All outputs have
15 tokens.

It prints a JSON line for each side, then a table with these columns:

    side         `ours entmax, optimal` is our search with `-stop optimal`, which ends when the best
                 output is proven; our other sides have `-stop exhaustive`
    per second   sentences per second
    ratio        median time divided by that of OpenNMT-py
    equal        share of best outputs that equal those of OpenNMT-py. Only `ours softmax` should
                 have 100 %: the entmax models have other weights or another mapping
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.data.garbage_collection import frozen_heap
from tools.bench.arguments import COUNT
from tools.bench.search_sides import Limits, Side, opennmt_side, our_side
from tools.bench.word_models import random_lines, write_word_models

MOST_TOKENS = 100  # of an output; the default of both sides
WORD_OUTPUT = 15  # tokens of all outputs of `--size words`, whose models do not end sentences
OPENNMT = "OpenNMT-py softmax"  # the reference
PILOT = "default: of config/morphology/pilot.yaml"


class Batches(NamedTuple):
    """Numbers of sentences that are translated together.

    Attributes:
        ours: sentences of our batches.
        opennmt: sentences of OpenNMT-py's.
    """

    ours: int
    opennmt: int


class Comparison(NamedTuple):
    """The models to compare, and the sentences that they translate.

    Attributes:
        softmax: folder of the softmax model, which both translators run.
        entmax: folder of the entmax model, which only ours runs.
        limits: beam and lengths of all searches.
        lines: sentences to translate.
    """

    softmax: Path
    entmax: Path
    limits: Limits
    lines: list[str]

    def sides(self, batches: Batches) -> dict[str, Side]:
        """Return the translators to time, by name; the first is the reference."""
        ours = partial(our_side, lines=self.lines, limits=self.limits, batch=batches.ours)
        return {
            OPENNMT: opennmt_side(self.softmax, self.lines, self.limits, batches.opennmt),
            "ours softmax": ours(self.softmax, stop="exhaustive"),
            "ours entmax": ours(self.entmax, stop="exhaustive"),
            "ours entmax, optimal": ours(self.entmax, stop="optimal"),
        }


def given_models(options: argparse.Namespace) -> Comparison:
    """Return the comparison of the models that --softmax and --entmax name."""
    lines = options.src.read_text(encoding="utf-8").splitlines()
    step = max(1, len(lines) // options.sentences)  # a sample of all languages
    return Comparison(
        options.softmax,
        options.entmax,
        Limits(options.beam, 0, MOST_TOKENS),
        list(lines[::step][: options.sentences]),
    )


def word_models(options: argparse.Namespace, folder: Path) -> Comparison:
    """Return the comparison of `--size words`, whose random models it writes to a folder."""
    models = write_word_models(folder)
    limits = Limits(options.beam, WORD_OUTPUT, WORD_OUTPUT)
    return Comparison(models.softmax, models.entmax, limits, random_lines(options.sentences))


class SideResult(NamedTuple):
    """The speed of a translator, and how often it agrees with OpenNMT-py's.

    Attributes:
        side: name of the translator.
        batch: sentences of its batches.
        per_second: sentences per second.
        ratio: median time divided by that of OpenNMT-py.
        equal: share of the best outputs that equal those of OpenNMT-py.
    """

    side: str
    batch: int
    per_second: float
    ratio: float
    equal: float


def measure(
    comparison: Comparison, batches: Batches, *, rounds: int, threads: int
) -> list[SideResult]:
    """Time the sides of a comparison; return a result for each."""
    sides = comparison.sides(batches)
    outputs = {name: translate() for name, translate in sides.items()}  # also warms up
    with frozen_heap():  # else garbage collection stops one side for a tenth of a second at times
        times = time_sides(sides, rounds, threads)
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    return [
        SideResult(
            side=name,
            batch=batches.opennmt if name == OPENNMT else batches.ours,
            per_second=round(len(comparison.lines) / seconds, 1),
            ratio=round(seconds / medians[OPENNMT], 2),
            equal=round(share_of_equal(outputs[name], outputs[OPENNMT]), 4),
        )
        for name, seconds in medians.items()
    ]


def time_sides(sides: Mapping[str, Side], rounds: int, threads: int) -> dict[str, list[float]]:
    """Return the seconds of each side in each round: processor time with one thread."""
    clock = time.process_time if threads == 1 else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, translate in sides.items():
            begin = clock()
            translate()
            times[name].append(clock() - begin)
    return times


def share_of_equal(outputs: Sequence[object], reference: Sequence[object]) -> float:
    """Return the share of outputs that equal those of the reference."""
    pairs = zip(outputs, reference, strict=True)
    return sum(own == other for own, other in pairs) / len(outputs)


def records(
    results: Sequence[SideResult], options: argparse.Namespace, sentences: int
) -> list[dict[str, object]]:
    """Return the results with what they depend on, as objects for JSON."""
    conditions = {
        "size": options.size,
        "beam": options.beam,
        "sentences": sentences,
        "rounds": options.rounds,
        "threads": options.threads,
        "load": round(os.getloadavg()[0], 2),
    }
    return [{"side": result.side, **conditions, **result._asdict()} for result in results]


def print_table(results: Sequence[SideResult]) -> None:
    """Print the results as a table."""
    print(f"{'side':20} {'per second':>10} {'ratio':>6} {'equal':>7}")
    for result in results:
        print(f"{result.side:20} {result.per_second:>10} {result.ratio:>6} {result.equal:>7.2%}")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("--softmax", type=Path, default=Path("run/pilot/softmax"), metavar="MODEL", help=PILOT)
    add("--entmax", type=Path, default=Path("run/pilot/model"), metavar="MODEL", help=PILOT)
    add("--src", type=Path, default=Path("run/pilot/data/dev.src"), metavar="FILE", help=PILOT)
    add("--size", choices=("given", "words"), default="given", help="words: random models")
    add("--sentences", type=COUNT, default=1000, help="default 1000")
    add("--rounds", type=COUNT, default=7, help="timed translations of each side (default 7)")
    add("--beam", type=COUNT, default=5, help="default 5")
    add("--batch", type=COUNT, default=64, help="sentences of ours (default 64, as translate has)")
    add("--opennmt-batch", type=COUNT, default=30, help="of OpenNMT-py's (default 30, as it has)")
    add("--threads", type=COUNT, default=1, help="default 1")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; return the exit status."""
    options = parse_arguments(arguments)
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        if options.size == "words":
            comparison = word_models(options, Path(folder))
        else:
            comparison = given_models(options)
        batches = Batches(options.batch, options.opennmt_batch)
        results = measure(comparison, batches, rounds=options.rounds, threads=options.threads)
    for record in records(results, options, len(comparison.lines)):
        print(json.dumps(record))
    print_table(results)
    return 0


if __name__ == "__main__":
    run_script(main)
