"""Time training steps of Transformers whose attention differs, alternating in one process.

A step is forward, loss, backward, clipping and Adam. All contenders begin with the same weights and
take their steps on the same batches; the output layer is the same in all.

    export OMP_NUM_THREADS=1
    python -m tools.bench.transformer --size base
    python -m tools.bench.transformer --size small --data DATA --output-alpha 1

`softmax`, a number and `learned` are our model with this alpha in all attention; `stock` is the
same model with OpenNMT-py's own attention. `base` is 6 layers of 512 with 8 heads, `small` 3 layers
of 256 with 4 heads. Real text is in `--data FOLDER` (`multi30k/`); without it, sentences are as
long as Multi30k's, of random words.

Prints one line for each contender: the median milliseconds of a step, its ratio to that of the
first contender, and the quartiles of the batches' ratios. `--warmup` updates come before the
timing, since the cost of entmax depends on its support. The clock is processor time with one
thread, which other load disturbs least, else wall time. Freed memory is kept (`mallopt`), so that
no step waits for fresh pages. `--output` appends JSON lines.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median, quantiles

import torch
from torch import nn

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.nn.transformer import EntmaxMultiHeadedAttention
from onmt_entmax.opennmt import MultiHeadedAttention
from onmt_entmax.rules import SHARE, whole
from tools.bench import batches as text
from tools.bench.contenders import OurContender
from tools.bench.runner import ALPHA, COUNT, keep_freed_memory

VOCABULARY = 10_000
LEARNING_RATE = 5e-4


@dataclass(frozen=True)
class Size:
    """Sizes of a Transformer."""

    layers: int
    hidden: int
    heads: int
    feed_forward: int


SIZES = {
    "base": Size(6, 512, 8, 2048),
    "small": Size(3, 256, 4, 1024),
    "tiny": Size(1, 32, 2, 64),  # for smoke tests
}
NAMED_ALPHAS = {"softmax": 1.0, "stock": 1.0}


def model_of(
    name: str, vocabularies: Vocabularies, size: Size, output_alpha: float, dropout: float
) -> SparseNMTModel:
    """Return the model of a contender; all have the same weights."""
    alpha: float | str = name
    if name != "learned":
        alpha = NAMED_ALPHAS[name] if name in NAMED_ALPHAS else float(name)
    torch.manual_seed(1)
    model = build_model(
        ModelConfig(
            encoder_type="transformer",
            decoder_type="transformer",
            enc_layers=size.layers,
            dec_layers=size.layers,
            rnn_size=size.hidden,
            src_word_vec_size=size.hidden,
            tgt_word_vec_size=size.hidden,
            heads=size.heads,
            transformer_ff=size.feed_forward,
            position_encoding=True,
            share_embeddings=True,
            share_decoder_embeddings=True,
            param_init=0.0,
            param_init_glorot=True,
            encoder_attention_alpha=alpha,
            decoder_attention_alpha=alpha,
            context_attention_alpha=alpha,
            generator_alpha=output_alpha,
            dropout=dropout,
            attention_dropout=dropout,
        ),
        vocabularies,
    )
    if name == "stock":
        use_stock(model)
    return model.train()


def use_stock(model: nn.Module) -> None:
    """Replace attention by OpenNMT-py's own."""
    for part in [*model.modules()]:
        for name, child in part.named_children():
            if isinstance(child, EntmaxMultiHeadedAttention):
                relative = child.max_relative_positions
                sizes = child.head_count, child.model_dim
                stock = MultiHeadedAttention(*sizes, child.dropout.p, relative)
                stock.load_state_dict(child.state_dict())
                setattr(part, name, stock)


def measure(options: argparse.Namespace) -> list[dict[str, object]]:
    """Time the contenders; return a result for each."""
    pairs = text.captions(options.data)
    vocabularies = text.vocabularies(pairs, VOCABULARY, joint=True)
    stream = text.batches(pairs, vocabularies, options.batch, 2048)
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    contenders = {}
    for name in options.variants:
        size = SIZES[options.size]
        model = model_of(name, vocabularies, size, options.output_alpha, options.dropout)
        contenders[name] = OurContender(model, vocabularies.target.pad, LEARNING_RATE)
    for batch in islice(stream, options.warmup):
        for contender in contenders.values():
            contender.step(batch, clock)
    times = time_steps(contenders, islice(stream, options.steps), clock)
    reference = times[options.variants[0]]
    return [
        {
            "contender": name,
            **figures_of(times[name], reference),
            "loss": round(contender.loss, 3),
            **conditions_of(options),
        }
        for name, contender in contenders.items()
    ]


def time_steps(
    contenders: Mapping[str, OurContender], batches: Iterable[Batch], clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Return the seconds of each contender's steps on the same batches, in alternating order."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number, batch in enumerate(batches):
        for name in contenders if number % 2 else reversed(list(contenders)):
            seconds, _ = contenders[name].step(batch, clock)
            times[name].append(seconds)
    return times


def figures_of(seconds: Sequence[float], reference: Sequence[float]) -> dict[str, object]:
    """Return the figures of a contender, from its times and those of the reference."""
    ratios = [one / other for one, other in zip(seconds, reference, strict=True)]
    low, _, high = quantiles(ratios, n=4)
    return {
        "ms": round(1000 * median(seconds), 1),
        "ratio": round(median(seconds) / median(reference), 3),
        "quartiles": [round(low, 3), round(high, 3)],
    }


def conditions_of(options: argparse.Namespace) -> dict[str, object]:
    """Return what the figures depend on."""
    return {
        "size": options.size,
        "batch": options.batch,
        "output_alpha": options.output_alpha,
        "dropout": options.dropout,
        "text": "real" if options.data else "random",
        "threads": torch.get_num_threads(),
        "clock": options.clock,
        "load": round(os.getloadavg()[0], 2),
    }


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--variants", default="softmax,1.5,learned,stock")
    parser.add_argument("--data", type=Path, help="folder of real text")
    parser.add_argument("--batch", type=COUNT, default=64)
    parser.add_argument("--warmup", type=COUNT, default=10, help="updates before the timing")
    several = whole(2, 10**9)
    parser.add_argument("--steps", type=several, default=20, help="timed steps of each contender")
    parser.add_argument("--output-alpha", type=ALPHA, default=1.5)
    parser.add_argument("--dropout", type=SHARE, default=0.1)
    parser.add_argument("--threads", type=COUNT, default=1)
    parser.add_argument("--clock", choices=("cpu", "wall"), help="default: cpu if one thread")
    parser.add_argument("--output", default="", help="append JSON lines to this file")
    options = parser.parse_args(arguments)
    options.variants = options.variants.split(",")
    for name in options.variants:
        number = name.replace(".", "", 1).isdecimal() and float(name) >= 1
        if name not in ("learned", *NAMED_ALPHAS) and not number:
            parser.error(f"--variants: softmax, stock, learned or a number from 1, not {name!r}")
    options.clock = options.clock or ("cpu" if options.threads == 1 else "wall")
    return options


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; return the exit status."""
    options = parse_arguments(arguments)
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    with open(options.output or os.devnull, "a", encoding="utf-8") as output:
        for result in measure(options):
            output.write(json.dumps(result) + "\n")
            print(" ".join(f"{key} {value}" for key, value in result.items()))
    return 0


if __name__ == "__main__":
    run_script(main)
