"""Time training steps of Transformers whose attention differs, alternating in one process.

A step is forward, loss, backward, clipping and Adam. All contenders begin with the same weights and
take their steps on the same batches; the output layer is the same in all.

    export OMP_NUM_THREADS=1
    python -m tools.bench.transformer --size base
    python -m tools.bench.transformer --size small --data DATA --output-alpha 1

The contenders of `--variants` are `softmax`, `learned` or a number, for our model with this alpha
in all attention, and `stock`, for the same model with OpenNMT-py's own attention. `base` is 6
layers of 512 with 8 heads, `small` 3 layers of 256 with 4 heads. `--data FOLDER` has real text, in
`multi30k/`. Without it, sentences have random words, and are as long as Multi30k's.

It prints a line for each contender: the median milliseconds of a step, its ratio to that of the
first contender, and the quartiles of this ratio over the batches. `--warmup` updates come before
the timing, since the cost of entmax depends on its support. With one thread, times are processor
times, which other load disturbs least; else, they are wall times. Freed memory is kept (`mallopt`),
so that no step waits for fresh pages. `--output` appends JSON lines.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from itertools import islice
from statistics import median, quantiles

from onmt_entmax.cli.ending import argument_parser, run_script
from tools.bench import texts
from tools.bench.arguments import ALPHA, COUNT, choose_clock
from tools.bench.batches import Corpus
from tools.bench.steps import (
    BUCKET,
    add_step_arguments,
    clock_of,
    conditions_of,
    prepare_process,
    time_steps,
)
from tools.bench.trainers import OurTrainer
from tools.bench.transformer_models import NAMED_ALPHAS, SIZES, model_of

LEARNING_RATE = 5e-4


def measure(options: argparse.Namespace) -> list[dict[str, object]]:
    """Time the contenders; return a result for each."""
    size = SIZES[options.size]
    corpus = Corpus.read(texts.CAPTIONS, options.data)
    vocabularies = corpus.vocabularies
    stream = corpus.batches(options.batch, BUCKET)
    clock = clock_of(options)
    contenders = {}
    for name in options.variants:
        model = model_of(
            name,
            vocabularies,
            size,
            output_alpha=options.output_alpha,
            dropout=options.dropout,
        )
        contenders[name] = OurTrainer(model, vocabularies.target.pad, LEARNING_RATE)
    time_steps(contenders, islice(stream, options.warmup), clock)
    steps = time_steps(contenders, islice(stream, options.steps), clock)
    reference = steps[options.variants[0]].seconds
    conditions = all_conditions(options)
    return [
        {
            "contender": name,
            **figures_of(steps[name].seconds, reference),
            "loss": round(contender.loss, 3),
            **conditions,
        }
        for name, contender in contenders.items()
    ]


def figures_of(seconds: Sequence[float], reference: Sequence[float]) -> dict[str, object]:
    """Return the figures of a contender, from its times and those of the reference."""
    ratios = [own / other for own, other in zip(seconds, reference, strict=True)]
    low, _, high = quantiles(ratios, n=4)
    return {
        "ms": round(1000 * median(seconds), 1),
        "ratio": round(median(seconds) / median(reference), 3),
        "quartiles": [round(low, 3), round(high, 3)],
    }


def all_conditions(options: argparse.Namespace) -> dict[str, object]:
    """Return what the figures depend on."""
    return {
        "size": options.size,
        "output_alpha": options.output_alpha,
        "dropout": options.dropout,
        **conditions_of(options, texts.CAPTIONS.substitute),
    }


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("--size", choices=SIZES, default="small", help="of the models (default small)")
    variants = "softmax,1.5,learned,stock"
    add("--variants", default=variants, help=f"the first is the reference (default {variants})")
    two_for_quartiles = 2
    add_step_arguments(parser, dropout=0.1, fewest=two_for_quartiles)
    add("--warmup", type=COUNT, default=10, help="updates before the timing")
    add("--output-alpha", type=ALPHA, default=1.5, help="of the output layer (default 1.5)")
    add("--output", default="", help="append JSON lines to this file")
    options = parser.parse_args(arguments)
    options.variants = options.variants.split(",")
    for name in options.variants:
        is_alpha = name.replace(".", "", 1).isdecimal() and float(name) >= 1
        if name not in NAMED_ALPHAS and not is_alpha:
            parser.error(f"--variants: softmax, stock, learned or a number from 1, not {name!r}")
    choose_clock(options)
    return options


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; return the exit status."""
    options = parse_arguments(arguments)
    prepare_process(options)
    with open(options.output or os.devnull, "a", encoding="utf-8") as output:
        for result in measure(options):
            output.write(json.dumps(result) + "\n")
            print(" ".join(f"{key} {value}" for key, value in result.items()))
    return 0


if __name__ == "__main__":
    run_script(main)
