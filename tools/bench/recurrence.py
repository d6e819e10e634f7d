"""Time training steps against stock OpenNMT-py 2.3.0, alternating in one process.

    export OMP_NUM_THREADS=1
    python -m tools.bench.recurrence --size pilot --variants 1.5,1.5:bf16
    python -m tools.bench.recurrence --size words --variants 1.5
    python -m tools.bench.recurrence --size words --variants 1.5 --against 1
    python -m tools.bench.recurrence --size words --variants 1.2,1.33,1.75 --against 1.5

A step is forward, loss, backward, clipping and Adam, on the same batch and from the same weights.
Contenders are

stock       OpenNMT-py's `NMTModel` with softmax and `NMTLossCompute`
1.5         our model with this alpha in attention and output, or with any other number from 1
1.5:bf16    the same with bfloat16 products

The cost of entmax depends on the support, which depends on the weights. So a model is trained with
each alpha for `--warmup` updates before the timing, and the timed steps keep its weights (learning
rate 0). `--support 20` then scales the output weights to about 20 nonzero probabilities per token,
as after a long training. Softmax gets the weights of the first alpha.

`--data FOLDER` has real text, in `conll2018/` and `tatoeba-deen/`. Without it, the pilot uses the
samples of this repository, and words are random.

It prints a JSON line for each contender, and a table with these columns:

ms          median time of a step, in milliseconds
ratio       ratio of this to the median of the reference (`--against`)
adam_ms     median time of clipping and Adam in a step
floor_ms    time of a step's matrix products alone, at the speed of large products
GF/s        operations of these products at real positions (10^9), for each second of a step; a
            sparse backward skips some
support     nonzero probabilities per token

With one thread, times are processor times, which other load disturbs least; else, they are wall
times. Freed memory is kept (`mallopt`), so that no step waits for fresh pages. Adam is torch's
fused one; with `--adam own`, the stock contender has OpenNMT-py's wrapper and torch's plain Adam.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from onmt_entmax.cli.ending import argument_parser, run_script
from tools.bench import texts
from tools.bench.arguments import COUNT, POSITIVE, choose_clock
from tools.bench.batches import Corpus
from tools.bench.recurrence_contenders import Variant, Warmup, contenders_of
from tools.bench.recurrence_work import Work, product_speed, work_of
from tools.bench.recurrent_models import stock_model
from tools.bench.steps import (
    BUCKET,
    Steps,
    add_step_arguments,
    clock_of,
    conditions_of,
    prepare_process,
    time_steps,
)

UNTIMED_STEPS = 3  # of each contender, which allocate memory
COLUMNS = ("contender", "ms", "ratio", "adam_ms", "floor_ms", "GF/s", "support")


@dataclass(frozen=True)
class Size:
    """Size of a model, and its text.

    Attributes:
        hidden: size of each layer.
        text: pairs to train on.
        warmup: updates before the timing, by default.
    """

    hidden: int
    text: texts.Text
    warmup: int


SIZES = {
    "pilot": Size(hidden=300, text=texts.INFLECTION, warmup=100),
    "words": Size(hidden=500, text=texts.WORDS, warmup=40),
}


def measure(options: argparse.Namespace) -> list[dict[str, object]]:
    """Time the contenders; return a result for each."""
    torch.manual_seed(1)
    size = SIZES[options.size]
    corpus = Corpus.read(size.text, options.data)
    stream = corpus.batches(options.batch, BUCKET)
    stock = stock_model(size.hidden, corpus.vocabularies, options.dropout)
    names = list(dict.fromkeys([options.against, *options.variants]))
    warmup = Warmup(options.warmup, options.support)
    contenders = contenders_of(names, stock, stream, warmup, stock_optimizer=options.adam == "own")
    clock = clock_of(options)
    speed = product_speed(clock)
    time_steps(contenders, islice(stream, UNTIMED_STEPS), clock)
    timed_batches = list(islice(stream, options.steps))
    steps = time_steps(contenders, timed_batches, clock)
    work = work_of(stock, timed_batches)
    reference = statistics.median(steps[options.against].seconds)
    conditions = all_conditions(options)
    return [
        {
            "contender": name,
            **figures_of(steps[name], work, reference, speed),
            "loss": round(contender.loss, 3),
            "target_fill": round(work.fill, 3),
            **conditions,
        }
        for name, contender in contenders.items()
    ]


def figures_of(steps: Steps, work: Work, reference: float, speed: float) -> dict[str, object]:
    """Return the figures of a contender.

    Args:
        steps: what was measured of it.
        work: work of a training step.
        reference: median seconds of the reference.
        speed: operations per second of large products.
    """
    seconds = statistics.median(steps.seconds)
    return {
        "ms": round(1000 * seconds, 1),
        "ratio": round(seconds / reference, 3),
        "adam_ms": round(1000 * statistics.median(steps.adam), 1),
        "floor_ms": round(1000 * work.gigaflops * 1e9 / speed, 1),
        "GF": round(work.gigaflops, 1),
        "GF/s": round(work.gigaflops / seconds, 1),
        "GF/s_of_products": round(speed / 1e9, 1),
        "support": round(statistics.mean(steps.supports), 1) if steps.supports else None,
    }


def all_conditions(options: argparse.Namespace) -> dict[str, object]:
    """Return what the figures depend on."""
    return {
        "against": options.against,
        "size": options.size,
        "updates_before": options.warmup,
        "scaled_to_support": options.support,
        "adam": options.adam,
        **conditions_of(options, SIZES[options.size].text.substitute),
    }


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("--size", choices=SIZES, default="pilot", help="of the models (default pilot)")
    variants = "alphas separated by commas, with or without :bf16"
    add("--variants", default="1.5,1", help=variants)
    add("--against", default="stock", help="the reference: stock, or an alpha")
    add_step_arguments(parser, dropout=0.3, fewest=1)
    updates = ", ".join(f"{name} {size.warmup}" for name, size in SIZES.items())
    add("--warmup", type=COUNT, help=f"updates before the timing (default: {updates})")
    add("--support", type=POSITIVE, help="nonzero outputs per token to scale to")
    add("--adam", choices=("fused", "own"), default="fused", help="of stock (default fused)")
    options = parser.parse_args(arguments)
    options.variants = options.variants.split(",")
    try:
        for name in (options.against, *options.variants):
            Variant.named(name)
    except ValueError:
        parser.error("--variants and --against: numbers from 1, or stock; 1.5:bf16 for bfloat16")
    if options.warmup is None:
        options.warmup = SIZES[options.size].warmup
    choose_clock(options)
    return options


def print_table(results: Sequence[Mapping[str, object]]) -> None:
    """Print the columns of the results that the docstring of this file explains."""
    print(" ".join(f"{column:>10}" for column in COLUMNS))
    for result in results:
        print(" ".join(f"{result[column]!s:>10}" for column in COLUMNS))


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; return the exit status."""
    options = parse_arguments(arguments)
    prepare_process(options)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    results = measure(options)
    for result in results:
        print(json.dumps(result))
    print_table(results)
    print(f"load average {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    run_script(main)
