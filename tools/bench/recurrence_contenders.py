"""Who takes steps in `recurrence.py`, with which weights, and the operations of a step."""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from onmt_entmax.data.batch import Batch
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.nn.products import product
from onmt_entmax.opennmt import NMTModel
from tools.bench import batches as text
from tools.bench.contenders import (
    Contender,
    OurContender,
    StockContender,
    copy_weights,
    our_model,
)

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
        substitute: what `read` returns without a folder, "samples" or "random".
    """

    hidden: int
    vocabulary: int
    joint: bool
    read: Callable[[Path | None], list[text.Pair]]
    warmup: int
    substitute: str


SIZES = {
    "pilot": Size(300, 776, True, text.inflection, 100, "samples"),
    "words": Size(500, 18_000, False, text.words, 40, "random"),
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
