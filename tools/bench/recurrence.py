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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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
    """Sizes of a model and its vocabularies, and its data."""

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
    """A contender: stock softmax, or our model with an alpha."""

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
            return cls(True, 1.0, False)
        if not 1 <= float(given) < 100:
            raise ValueError(name)
        return cls(False, float(given), given != name)


def contenders(
    names: list[str], stock: NMTModel, stream: Iterator[Batch], options: argparse.Namespace
) -> dict[str, Contender]:
    """Return the contenders by name, with the weights that they keep."""
    pad = stock.decoder.embeddings.word_padding_idx
    found: dict[str, Contender] = {}
    trained: dict[float, NMTModel] = {}
    variants = {name: Variant.named(name) for name in names}
    for name in sorted(names, key=lambda name: variants[name].alpha == 1):
        variant = variants[name]
        alpha = variant.alpha
        if alpha > 1 and alpha not in trained:
            trained[alpha] = copy.deepcopy(stock)
            model = our_model(stock, alpha, None)
            learner = OurContender(model, pad, LEARNING_RATE)
            for _ in range(options.warmup):
                learner.step(next(stream), time.perf_counter)
            if options.support is not None:
                scale_output(model, next(stream), options.support)
            copy_weights(model, trained[alpha])
        weights = trained.get(alpha, next(iter(trained.values()), stock))
        if variant.stock:
            own = options.adam == "own"
            found[name] = StockContender(copy.deepcopy(weights), pad, 0.0, own)
        else:
            model = our_model(weights, alpha, torch.bfloat16 if variant.bf16 else None)
            found[name] = OurContender(model, pad, 0.0)
    return {name: found[name] for name in names}


@torch.no_grad()
def scale_output(model: SparseNMTModel, batch: Batch, support: float) -> None:
    """Scale the output weights to about `support` nonzero probabilities per token."""
    hidden, target = model.hidden_states(batch)
    layer = model.generator
    parameters = [(parameter, parameter.clone()) for parameter in (layer.weight, layer.bias)]
    low, high = 0.0, 10.0  # exponents of two
    for _ in range(10):
        middle = (low + high) / 2
        for parameter, original in parameters:
            parameter.copy_(original * 2**middle)
        found = float(layer.loss(hidden, target, -1).support) / len(target)
        low, high = (low, middle) if found < support else (middle, high)


def products(model: NMTModel, batch: Batch) -> float:
    """Return the operations of a step's products, forward and backward, over real positions."""
    assert batch.target_lengths is not None
    read, written = int(batch.source_lengths.sum()), int((batch.target_lengths - 1).sum())
    matrices = {
        name: weight.numel()
        for name, weight in model.named_parameters()
        if weight.dim() == 2 and "word_lut" not in name
    }
    encoder = sum(size for name, size in matrices.items() if name.startswith("encoder"))
    looked = int((batch.source_lengths * (batch.target_lengths - 1)).sum())
    attention = 2 * looked * model.decoder.hidden_size  # scores and context vectors
    rest = sum(matrices.values()) - encoder
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


def measure(options: argparse.Namespace) -> list[dict[str, object]]:
    """Time the contenders; return a result for each."""
    torch.manual_seed(1)
    size = SIZES[options.size]
    options.warmup = size.warmup if options.warmup is None else options.warmup
    pairs = size.read(options.data)
    known = text.vocabularies(pairs, size.vocabulary, size.joint)
    stream = text.batches(pairs, known, options.batch, options.bucket)
    stock = stock_model(size.hidden, known, options.dropout)
    names = list(dict.fromkeys([options.against, *options.variants]))
    running = contenders(names, stock, stream, options)
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    speed = product_speed(clock)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    supports: dict[str, list[float]] = {name: [] for name in names}
    operations, fill = [], []
    for number in range(-3, options.steps):  # the first three allocate memory
        batch = next(stream)
        for name in names if number % 2 else reversed(names):
            taken = running[name].step(batch, clock)
            if number >= 0:
                times[name].append(taken)
                if (support := running[name].support) is not None:
                    supports[name].append(support)
        assert batch.target_lengths is not None
        operations.append(products(stock, batch))
        fill.append(float((batch.target_lengths / batch.target_lengths.max()).mean()))
    gigaflops = statistics.median(operations[3:]) / 1e9
    base = statistics.median(whole for whole, _ in times[options.against])
    results: list[dict[str, object]] = []
    for name in names:
        whole, adam = ([taken[part] for taken in times[name]] for part in (0, 1))
        contender = running[name]
        median = statistics.median(whole)
        results.append(
            {
                "contender": name,
                "ms": round(1000 * median, 1),
                "ratio": round(median / base, 3),
                "adam_ms": round(1000 * statistics.median(adam), 1),
                "floor_ms": round(1e12 * gigaflops / speed, 1),
                "GF": round(gigaflops, 1),
                "GF/s": round(gigaflops / median, 1),
                "GF/s_of_products": round(speed / 1e9, 1),
                "support": round(statistics.mean(supports[name]), 1) if supports[name] else None,
                "loss": round(contender.loss, 3),
                "against": options.against,
                "size": options.size,
                "batch": options.batch,
                "updates_before": options.warmup,
                "scaled_to_support": options.support,
                "target_fill": round(statistics.mean(fill), 3),
                "text": "real" if options.data else "samples",
                "threads": torch.get_num_threads(),
                "clock": options.clock,
                "adam": options.adam,
                "load": round(os.getloadavg()[0], 2),
            }
        )
    return results


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
