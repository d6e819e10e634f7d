"""The work of a training step of recurrent models: operations of its matrix products, and padding.

The time of these products alone, at the speed of large ones, is a floor below every contender.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch

from onmt_entmax.data.batch import Batch
from onmt_entmax.nn.products import product
from onmt_entmax.opennmt import NMTModel

OPERATIONS = 2  # of a product for each pair of entries: a multiplication and an addition
PASSES = 3  # forward, and backward for both factors
# Sizes of a large product: it takes a matrix (ROWS, WIDTH) to (ROWS, OUT).
ROWS = 768
WIDTH = 600
OUT = 1200
REPEATS = 20


class Work(NamedTuple):
    """The work of a step, which is the same for all contenders.

    Attributes:
        gigaflops: median number of operations of a step's products, in 10⁹.
        fill: mean share of the target positions that are not padding.
    """

    gigaflops: float
    fill: float


def work_of(stock: NMTModel, batches: Iterable[Batch]) -> Work:
    """Return the work of a step on batches, for a model of the size of all contenders."""
    operations, fill = [], []
    for batch in batches:
        assert batch.target_lengths is not None
        operations.append(operations_of_products(stock, batch))
        fill.append(float((batch.target_lengths / batch.target_lengths.max()).mean()))
    return Work(statistics.median(operations) / 1e9, statistics.mean(fill))


def operations_of_products(model: NMTModel, batch: Batch) -> int:
    """Return the operations of a step's products, forward and backward, over real positions.

    Each weight matrix is a factor once a position: those of the encoder at source positions, all
    others at target positions. Word vectors are looked up, not multiplied.
    """
    assert batch.target_lengths is not None
    source_positions = int(batch.source_lengths.sum())
    target_positions = int((batch.target_lengths - 1).sum())
    sizes = {
        name: weight.numel()
        for name, weight in model.named_parameters()
        if weight.dim() == 2 and "word_lut" not in name
    }
    encoder = sum(size for name, size in sizes.items() if name.startswith("encoder"))
    others = sum(sizes.values()) - encoder
    attended = int((batch.source_lengths * (batch.target_lengths - 1)).sum())
    attention = 2 * attended * model.decoder.hidden_size  # scores and context vectors
    pairs = encoder * source_positions + others * target_positions + attention
    return PASSES * OPERATIONS * pairs


def product_speed(clock: Callable[[], float]) -> float:
    """Return the operations per second of large float32 products."""
    x, weight = torch.randn(ROWS, WIDTH), torch.randn(OUT, WIDTH)
    times = []
    for _ in range(REPEATS):
        start = clock()
        product(x, weight)
        times.append(clock() - start)
    return OPERATIONS * ROWS * WIDTH * OUT / statistics.median(times)
