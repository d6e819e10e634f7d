"""Time our translator against OpenNMT-py 2.3.0's, alternating in one process.

    python -m tools.bench.search --softmax run/pilot/softmax --entmax run/pilot/model \\
        --src run/pilot/data/dev.src

    python -m tools.bench.search --size words --sentences 64 --rounds 3

OpenNMT-py runs its own code: the softmax model is written as one of its checkpoints, read by its
`build_translator` and run by its `Translator.translate` with default options except for beam and
batch. Ours is `Translator.answers`, from lines to text, with certificates. In a round each side
translates the same sentences; a ratio is a median time divided by OpenNMT-py's. Loaded
objects are excluded from garbage collection (`gc.freeze`), which would interrupt one side for a
tenth of a second now and then. Times are processor time with one thread, else wall time.

`--size words` uses models of the size of word-level translation (500 dimensions, 18,000 tokens)
with random weights, the same for softmax and entmax, and an output layer that is scaled to the
support of a trained 1.5-entmax model. Random models do not end sentences, so all outputs have 15
tokens.

Prints a JSON line for each side, then a table. `equal` is the share of first outputs that equal
OpenNMT-py's (only the softmax model has its weights), `optimal` our search with `-stop optimal`.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from onmt_entmax.cli.ending import argument_parser, run_script
from tools.bench.arguments import COUNT
from tools.bench.search_sides import Limits, Side, opennmt_side, our_side
from tools.bench.word_models import random_lines, write_word_models

MOST_TOKENS = 100  # of an output; the default of both sides
LENGTH = 15  # tokens of all outputs of `--size words`
OPENNMT = "OpenNMT-py softmax"  # the reference


def lines_of(options: argparse.Namespace) -> list[str]:
    """Return the sentences to translate."""
    if options.size == "words":
        return random_lines(options.sentences)
    lines = options.src.read_text(encoding="utf-8").splitlines()
    step = max(1, len(lines) // options.sentences)  # all languages, all lengths
    return list(lines[::step][: options.sentences])


def time_sides(sides: Mapping[str, Side], options: argparse.Namespace) -> dict[str, list[float]]:
    """Return the seconds of each side in each round."""
    clock = time.process_time if options.threads == 1 else time.perf_counter
    gc.collect()
    gc.freeze()
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(options.rounds):
        for name, translate in sides.items():
            begin = clock()
            translate()
            times[name].append(clock() - begin)
    return times


def measure(options: argparse.Namespace) -> list[dict[str, object]]:
    """Time the sides; return a result for each."""
    lines = lines_of(options)
    limits = Limits(options.beam, options.min_length, options.max_length)
    batch = options.batch
    sides = {
        OPENNMT: opennmt_side(options.softmax, lines, limits, options.opennmt_batch),
        "ours softmax": our_side(options.softmax, lines, limits, batch, "exhaustive"),
        "ours entmax": our_side(options.entmax, lines, limits, batch, "exhaustive"),
        "ours entmax, optimal": our_side(options.entmax, lines, limits, batch, "optimal"),
    }
    outputs = {name: translate() for name, translate in sides.items()}
    times = time_sides(sides, options)
    conditions = {
        "size": options.size,
        "beam": options.beam,
        "sentences": len(lines),
        "rounds": options.rounds,
        "threads": options.threads,
        "load": round(os.getloadavg()[0], 2),
    }
    reference = statistics.median(times[OPENNMT])
    results: list[dict[str, object]] = []
    for name in sides:
        seconds = statistics.median(times[name])
        pairs = zip(outputs[name], outputs[OPENNMT], strict=True)
        results.append(
            {
                "side": name,
                **conditions,
                "batch": options.opennmt_batch if name == OPENNMT else options.batch,
                "per_second": round(len(lines) / seconds, 1),
                "ratio": round(seconds / reference, 2),
                "equal": round(sum(own == other for own, other in pairs) / len(lines), 4),
            }
        )
    return results


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--softmax", type=Path, default=Path("run/pilot/softmax"), metavar="MODEL")
    parser.add_argument("--entmax", type=Path, default=Path("run/pilot/model"), metavar="MODEL")
    parser.add_argument("--src", type=Path, default=Path("run/pilot/data/dev.src"))
    parser.add_argument("--size", choices=("given", "words"), default="given")
    parser.add_argument("--sentences", type=COUNT, default=1000)
    parser.add_argument("--rounds", type=COUNT, default=7)
    parser.add_argument("--beam", type=COUNT, default=5)
    parser.add_argument("--batch", type=COUNT, default=64, help="ours; its default is 64")
    parser.add_argument("--opennmt-batch", type=COUNT, default=30, help="its default is 30")
    parser.add_argument("--threads", type=COUNT, default=1)
    parser.set_defaults(min_length=0, max_length=MOST_TOKENS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; return the exit status."""
    options = parse_arguments(arguments)
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        if options.size == "words":
            options.softmax, options.entmax = write_word_models(Path(folder))
            options.min_length = options.max_length = LENGTH
        results = measure(options)
    for result in results:
        print(json.dumps(result))
    print(f"{'side':20} {'per second':>10} {'ratio':>6} {'equal':>7}")
    for result in results:
        print(
            f"{result['side']:20} {result['per_second']:>10} {result['ratio']:>6} "
            f"{result['equal']:>7.2%}"
        )
    return 0


if __name__ == "__main__":
    run_script(main)
