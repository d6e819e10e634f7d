"""Time training steps against stock OpenNMT-py 2.3.0, alternating in one process.

    export OMP_NUM_THREADS=1
    python -m tools.bench.recurrence --size pilot --variants 1.5,1.5:bf16
    python -m tools.bench.recurrence --size words --variants 1.5
    python -m tools.bench.recurrence --size words --variants 1.5 --against 1
    python -m tools.bench.recurrence --size words --variants 1.2,1.33,1.75 --against 1.5

A step is forward, loss, backward, clipping and Adam, on the same batch and from the same weights.
Contenders are

stock       OpenNMT-py's `NMTModel` with softmax and `NMTLossCompute`
1.5         our model with this alpha in attention and output; so for any number from 1
1.5:bf16    the same with bfloat16 products

The cost of entmax depends on the support, and this on the weights. Each alpha trains for
`--warmup` updates before the timing, which keeps the weights (learning rate 0). `--support 20` then
scales the output weights to about 20 nonzero probabilities per token, as after long training.
Softmax gets the weights of the first alpha.

Without real text (`--data FOLDER`, with `conll2018/` and `tatoeba-deen/`), the pilot uses the
samples of this repository, and words are random.

It prints a JSON line for each contender, and a table. The columns of the table are

ms          median time of a step, in milliseconds
ratio       to the median of the reference (`--against`)
adam_ms     median time of clipping and Adam in it
floor_ms    time of the step's matrix products alone, at the speed of large ones
GF/s        operations of these products over real positions, in a second of a step; a sparse
            backward skips some
support     nonzero probabilities per token

Times are of the processor with one thread, which other load disturbs least, else wall times. Freed
memory is kept (`mallopt`), so that no step waits for fresh pages. Adam is torch's fused one;
`--adam own` gives the stock contender OpenNMT-py's wrapper and torch's plain Adam.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.data.batch import Batch
from onmt_entmax.opennmt import NMTModel
from onmt_entmax.rules import SHARE
from tools.bench import batches as text
from tools.bench.contenders import Contender, stock_model
from tools.bench.recurrence_contenders import (
    SIZES,
    Variant,
    contenders,
    product_speed,
    products,
)
from tools.bench.runner import COUNT, POSITIVE, keep_freed_memory

UNTIMED_STEPS = 3  # of each contender, which allocate memory
COLUMNS = ("contender", "ms", "ratio", "adam_ms", "floor_ms", "GF/s", "support")


@dataclass
class Steps:
    """What was measured of the steps of one contender.

    Attributes:
        seconds: of each whole step.
        adam: seconds of clipping and Adam in each step.
        supports: nonzero probabilities per token in each step; empty for stock softmax.
    """

    seconds: list[float] = field(default_factory=list)
    adam: list[float] = field(default_factory=list)
    supports: list[float] = field(default_factory=list)


class Work(NamedTuple):
    """The work of a step, which is the same for all contenders.

    Attributes:
        gigaflops: operations of a step's products, median.
        fill: share of the target positions that are no padding, mean.
    """

    gigaflops: float
    fill: float


def measure(options: argparse.Namespace) -> list[dict[str, object]]:
    """Time the contenders; return a result for each."""
    torch.manual_seed(1)
    size = SIZES[options.size]
    pairs = size.read(options.data)
    vocabularies = text.vocabularies(pairs, size.vocabulary, size.joint)
    stream = text.batches(pairs, vocabularies, options.batch, options.bucket)
    stock = stock_model(size.hidden, vocabularies, options.dropout)
    names = list(dict.fromkeys([options.against, *options.variants]))
    running = contenders(names, stock, stream, options)
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    speed = product_speed(clock)
    for batch in islice(stream, UNTIMED_STEPS):
        for contender in running.values():
            contender.step(batch, clock)
    timed_batches = list(islice(stream, options.steps))
    steps = time_steps(running, timed_batches, clock)
    work = work_of(stock, timed_batches)
    base = statistics.median(steps[options.against].seconds)
    conditions = conditions_of(options)
    return [
        {
            "contender": name,
            **figures_of(steps[name], work, base, speed),
            "loss": round(running[name].loss, 3),
            "target_fill": round(work.fill, 3),
            **conditions,
        }
        for name in names
    ]


def time_steps(
    running: Mapping[str, Contender], batches: Iterable[Batch], clock: Callable[[], float]
) -> dict[str, Steps]:
    """Time a step of each contender on each batch.

    Args:
        running: the contenders by name.
        batches: of source and target.
        clock: in seconds.
    """
    names = list(running)
    steps = {name: Steps() for name in names}
    for number, batch in enumerate(batches):
        # Every other batch comes to the contenders in reverse, so that none is always first.
        for name in names if number % 2 else reversed(names):
            contender = running[name]
            seconds, adam = contender.step(batch, clock)
            steps[name].seconds.append(seconds)
            steps[name].adam.append(adam)
            if contender.support is not None:
                steps[name].supports.append(contender.support)
    return steps


def work_of(stock: NMTModel, batches: Iterable[Batch]) -> Work:
    """Return the work of a step on batches, for a model of the size of all contenders."""
    operations, fill = [], []
    for batch in batches:
        assert batch.target_lengths is not None
        operations.append(products(stock, batch))
        fill.append(float((batch.target_lengths / batch.target_lengths.max()).mean()))
    return Work(statistics.median(operations) / 1e9, statistics.mean(fill))


def figures_of(steps: Steps, work: Work, base: float, speed: float) -> dict[str, object]:
    """Return the figures of a contender.

    Args:
        steps: what was measured of it.
        work: of a step.
        base: median seconds of the reference.
        speed: operations per second of large products.
    """
    seconds = statistics.median(steps.seconds)
    return {
        "ms": round(1000 * seconds, 1),
        "ratio": round(seconds / base, 3),
        "adam_ms": round(1000 * statistics.median(steps.adam), 1),
        "floor_ms": round(1e12 * work.gigaflops / speed, 1),
        "GF": round(work.gigaflops, 1),
        "GF/s": round(work.gigaflops / seconds, 1),
        "GF/s_of_products": round(speed / 1e9, 1),
        "support": round(statistics.mean(steps.supports), 1) if steps.supports else None,
    }


def conditions_of(options: argparse.Namespace) -> dict[str, object]:
    """Return what the figures depend on."""
    return {
        "against": options.against,
        "size": options.size,
        "batch": options.batch,
        "updates_before": options.warmup,
        "scaled_to_support": options.support,
        "text": "real" if options.data else SIZES[options.size].substitute,
        "threads": torch.get_num_threads(),
        "clock": options.clock,
        "adam": options.adam,
        "load": round(os.getloadavg()[0], 2),
    }


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--size", choices=SIZES, default="pilot")
    parser.add_argument(
        "--variants",
        default="1.5,1",
        help="alphas separated by commas, with or without :bf16",
    )
    parser.add_argument("--against", default="stock", help="the reference: stock, or an alpha")
    parser.add_argument("--data", type=Path, help="folder of real text")
    parser.add_argument("--batch", type=COUNT, default=64)
    parser.add_argument("--bucket", type=COUNT, default=2048, help="pairs sorted together")
    parser.add_argument("--steps", type=COUNT, default=20, help="timed steps of each contender")
    updates = ", ".join(f"{name} {size.warmup}" for name, size in SIZES.items())
    parser.add_argument(
        "--warmup", type=COUNT, help=f"updates before the timing (default: {updates})"
    )
    parser.add_argument("--support", type=POSITIVE, help="nonzero outputs per token to scale to")
    parser.add_argument("--dropout", type=SHARE, default=0.3)
    parser.add_argument("--adam", choices=("fused", "own"), default="fused")
    parser.add_argument("--threads", type=COUNT, default=1)
    parser.add_argument("--clock", choices=("cpu", "wall"), help="default: cpu if one thread")
    options = parser.parse_args(arguments)
    try:
        options.variants = options.variants.split(",")
        for name in (options.against, *options.variants):
            Variant.named(name)
    except ValueError:
        parser.error("--variants and --against: numbers from 1, or stock; 1.5:bf16 for bfloat16")
    if options.warmup is None:
        options.warmup = SIZES[options.size].warmup
    if options.clock is None:
        options.clock = "cpu" if options.threads == 1 else "wall"
    return options


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; return the exit status."""
    options = parse_arguments(arguments)
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    results = measure(options)
    for result in results:
        print(json.dumps(result))
    print(" ".join(f"{column:>10}" for column in COLUMNS))
    for result in results:
        print(" ".join(f"{result[column]!s:>10}" for column in COLUMNS))
    print(f"load average {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    run_script(main)
