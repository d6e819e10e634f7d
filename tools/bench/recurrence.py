"""Time training steps against stock OpenNMT-py 2.3.0, alternating in one process.

A step is forward, loss, backward, clipping and Adam, on the same batch and from the same weights.
`stock` is OpenNMT-py's `NMTModel` with softmax and `NMTLossCompute`; a number is our model with
this alpha in attention and output, and `:bf16` means bfloat16 products.

    export OMP_NUM_THREADS=1
    python -m tools.bench.recurrence --size pilot --variants 1.5,1.5:bf16
    python -m tools.bench.recurrence --size words --variants 1.5
    python -m tools.bench.recurrence --size words --variants 1.5 --against 1
    python -m tools.bench.recurrence --size words --variants 1.2,1.33,1.75 --against 1.5

Real text is in `--data FOLDER` (`conll2018/`, `tatoeba-deen/`); without it, the pilot uses the
samples of this repository, and words are random. The cost of entmax depends on the support, so
`--warmup` updates train each alpha before the timing, which keeps the weights (learning rate 0).
`--support 20` then scales the output weights to about 20 nonzero probabilities per token, as after
long training. Softmax gets the weights of the first variant.

Prints one JSON line for each contender, then a table. Times are medians in milliseconds over the
same batches, ratios those of the medians. `GF` are the operations of a step's matrix products over
real positions, `GF/s` their speed (a sparse backward skips some), and the floor is the time of the
products alone at the speed of large ones. The clock is processor time with one thread, which other
load disturbs least, else wall time. Freed memory is kept (`mallopt`), so that no step waits for
fresh pages, and Adam is torch's fused one (`--adam own`: OpenNMT-py's wrapper and torch's plain
Adam on its side).
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.data.batch import Batch
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.nn.products import product
from onmt_entmax.opennmt import NMTModel
from onmt_entmax.rules import SHARE
from tools.bench import batches as text
from tools.bench.contenders import (
    Contender,
    OurContender,
    StockContender,
    copy_weights,
    our_model,
    stock_model,
)
from tools.bench.runner import COUNT, POSITIVE, keep_freed_memory

LEARNING_RATE = 2e-3


@dataclass(frozen=True)
class Size:
    """Sizes of a model, and its data.

    Attributes:
        hidden: size of each layer.
        vocabulary: tokens of each side.
        joint: whether both sides share one vocabulary.
        read: reads the pairs from a folder, or returns others.
        warmup: updates before the timing, by default.
    """

    hidden: int
    vocabulary: int
    joint: bool
    read: Callable[[Path | None], list[text.Pair]]
    warmup: int


SIZES = {
    "pilot": Size(300, 776, True, text.inflection, 100),
    "words": Size(500, 18_000, False, text.words, 40),
}


@dataclass(frozen=True)
class Variant:
    """A contender: stock softmax, or our model with an alpha.

    Attributes:
        stock: whether it is OpenNMT-py's model.
        alpha: of attention and output.
        bf16: whether products are in bfloat16.
    """

    stock: bool
    alpha: float
    bf16: bool

    @classmethod
    def named(cls, name: str) -> Variant:
        """Return the variant of a name: `stock`, or an alpha with or without `:bf16`.

        Raises:
            ValueError: the name is neither.
        """
        given = name.removesuffix(":bf16")
        if name == "stock":
            return cls(stock=True, alpha=1.0, bf16=False)
        if not 1 <= float(given) < 100:
            raise ValueError(name)
        return cls(stock=False, alpha=float(given), bf16=given != name)


def contenders(
    names: list[str], stock: NMTModel, stream: Iterator[Batch], options: argparse.Namespace
) -> dict[str, Contender]:
    """Return the contenders by name, with the weights that they keep.

    Args:
        names: see `Variant.named`.
        stock: begins every training.
        stream: of batches to train on.
        options: of the command line.
    """
    pad = stock.decoder.embeddings.word_padding_idx
    variants = {name: Variant.named(name) for name in names}
    alphas = dict.fromkeys(variant.alpha for variant in variants.values() if variant.alpha > 1)
    trained = {alpha: train(stock, alpha, stream, options) for alpha in alphas}
    running: dict[str, Contender] = {}
    for name, variant in variants.items():
        # Softmax, which was not trained, has the weights of the first alpha.
        weights = trained.get(variant.alpha, next(iter(trained.values()), stock))
        if variant.stock:
            own = options.adam == "own"
            running[name] = StockContender(copy.deepcopy(weights), pad, 0.0, own)
        else:
            products_type = torch.bfloat16 if variant.bf16 else None
            running[name] = OurContender(our_model(weights, variant.alpha, products_type), pad, 0.0)
    return running


def train(
    stock: NMTModel, alpha: float, stream: Iterator[Batch], options: argparse.Namespace
) -> NMTModel:
    """Return a copy of a model whose weights were trained with an alpha."""
    pad = stock.decoder.embeddings.word_padding_idx
    model = our_model(stock, alpha, None)
    learner = OurContender(model, pad, LEARNING_RATE)
    for _ in range(options.warmup):
        learner.step(next(stream), time.perf_counter)
    if options.support is not None:
        scale_output(model, next(stream), options.support)
    trained = copy.deepcopy(stock)
    copy_weights(model, trained)
    return trained


@torch.no_grad()
def scale_output(model: SparseNMTModel, batch: Batch, support: float) -> None:
    """Scale the output weights to about `support` nonzero probabilities per token, by bisection."""
    hidden, target = model.hidden_states(batch)
    layer = model.generator
    parameters = [(parameter, parameter.clone()) for parameter in (layer.weight, layer.bias)]
    low, high = 0.0, 10.0  # exponents of two
    for _ in range(10):
        middle = (low + high) / 2
        for parameter, original in parameters:
            parameter.copy_(original * 2**middle)
        # Larger weights have fewer nonzeros.
        if float(layer.loss(hidden, target, -1).support) / len(target) < support:
            high = middle
        else:
            low = middle


def products(model: NMTModel, batch: Batch) -> float:
    """Return the operations of a step's products, forward and backward, over real positions."""
    assert batch.target_lengths is not None
    read = int(batch.source_lengths.sum())
    written = int((batch.target_lengths - 1).sum())
    matrices = {
        name: weight.numel()
        for name, weight in model.named_parameters()
        if weight.dim() == 2 and "word_lut" not in name
    }
    encoder = sum(size for name, size in matrices.items() if name.startswith("encoder"))
    attended = int((batch.source_lengths * (batch.target_lengths - 1)).sum())
    attention = 2 * attended * model.decoder.hidden_size  # scores and context vectors
    rest = sum(matrices.values()) - encoder
    # A multiplication and an addition; forward, and backward for both factors.
    return 3 * 2 * (encoder * read + rest * written + attention)


def product_speed(clock: Callable[[], float]) -> float:
    """Return the operations per second of large float32 products."""
    x, weight = torch.randn(768, 600), torch.randn(1200, 600)
    times = []
    for _ in range(20):
        start = clock()
        product(x, weight)
        times.append(clock() - start)
    return 2 * 768 * 600 * 1200 / statistics.median(times)


@dataclass
class Steps:
    """What was measured of the steps of one contender.

    Attributes:
        seconds: of each whole step.
        adam: of Adam in each step.
        supports: nonzero probabilities per token in each step; empty for stock softmax.
    """

    seconds: list[float] = field(default_factory=list)
    adam: list[float] = field(default_factory=list)
    supports: list[float] = field(default_factory=list)


class Work(NamedTuple):
    """What the batches are to everyone.

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
    options.warmup = size.warmup if options.warmup is None else options.warmup
    pairs = size.read(options.data)
    vocabularies = text.vocabularies(pairs, size.vocabulary, size.joint)
    stream = text.batches(pairs, vocabularies, options.batch, options.bucket)
    stock = stock_model(size.hidden, vocabularies, options.dropout)
    names = list(dict.fromkeys([options.against, *options.variants]))
    running = contenders(names, stock, stream, options)
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    speed = product_speed(clock)
    steps, work = time_steps(running, stock, stream, options.steps, clock)
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
    running: Mapping[str, Contender],
    stock: NMTModel,
    stream: Iterator[Batch],
    count: int,
    clock: Callable[[], float],
) -> tuple[dict[str, Steps], Work]:
    """Time steps of all contenders on the same batches, in alternating order.

    Args:
        running: the contenders by name.
        stock: a model of their size, to count operations.
        stream: of batches.
        count: of steps of each.
        clock: in seconds.
    """
    names = list(running)
    steps = {name: Steps() for name in names}
    operations, fill = [], []
    for number in range(-3, count):  # the first three allocate memory
        batch = next(stream)
        for name in names if number % 2 else reversed(names):
            contender = running[name]
            seconds, adam = contender.step(batch, clock)
            if number < 0:
                continue
            steps[name].seconds.append(seconds)
            steps[name].adam.append(adam)
            if contender.support is not None:
                steps[name].supports.append(contender.support)
        if number >= 0:
            assert batch.target_lengths is not None
            operations.append(products(stock, batch))
            fill.append(float((batch.target_lengths / batch.target_lengths.max()).mean()))
    return steps, Work(statistics.median(operations) / 1e9, statistics.mean(fill))


def figures_of(steps: Steps, work: Work, base: float, speed: float) -> dict[str, object]:
    """Return the figures of a contender.

    Args:
        steps: what was measured of it.
        work: of the batches.
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
        "text": "real" if options.data else "samples",
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
    parser.add_argument(
        "--warmup", type=COUNT, help="updates before the timing (default: pilot 100, words 40)"
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
    options.clock = options.clock or ("cpu" if options.threads == 1 else "wall")
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
    columns = ("contender", "ms", "ratio", "adam_ms", "floor_ms", "GF/s", "support")
    print(" ".join(f"{column:>10}" for column in columns))
    for result in results:
        print(" ".join(f"{result[column]!s:>10}" for column in columns))
    print(f"load average {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    run_script(main)
