"""The contenders of `recurrence.py`: OpenNMT-py's softmax model, and ours with several alphas.

The cost of entmax depends on the support, which depends on the weights. So a model is trained with
each alpha before the timing, and the timed steps keep its weights.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from onmt_entmax.data.batch import Batch
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.opennmt import NMTModel
from tools.bench.bisection import scale_for_support
from tools.bench.recurrent_models import copy_weights, our_model
from tools.bench.trainers import OurTrainer, StockTrainer, Trainer

LEARNING_RATE = 2e-3  # before the timing
FROZEN = 0.0  # learning rate of the timed steps, which keep the weights
BF16 = ":bf16"  # ends the names of variants with products in bfloat16


@dataclass(frozen=True)
class Variant:
    """A model to time: OpenNMT-py's with softmax, or ours with an alpha.

    Attributes:
        alpha: alpha of attention and output; 1 is softmax.
        stock: whether it is OpenNMT-py's model.
        bf16: whether products are in bfloat16.
    """

    alpha: float
    stock: bool = False
    bf16: bool = False

    @classmethod
    def named(cls, name: str) -> Variant:
        """Return the variant of a name: `stock`, or an alpha with or without `:bf16`.

        Raises:
            ValueError: the name is neither.
        """
        if name == "stock":
            return cls(alpha=1.0, stock=True)
        alpha = float(name.removesuffix(BF16))
        if not 1 <= alpha < 100:
            raise ValueError(name)
        return cls(alpha, bf16=name.endswith(BF16))


@dataclass(frozen=True)
class Warmup:
    """The training of each alpha before the timing.

    Attributes:
        updates: number of updates.
        support: nonzero probabilities per token, to which the output weights are then scaled; None
            leaves them as they are.
    """

    updates: int
    support: float | None


def contenders_of(
    names: Sequence[str],
    stock: NMTModel,
    stream: Iterator[Batch],
    warmup: Warmup,
    *,
    stock_optimizer: bool,
) -> dict[str, Trainer]:
    """Return trainers by name, whose steps keep the weights of a training with their alpha.

    Softmax is not trained, since its cost does not depend on the weights; it has those of the first
    alpha.

    Args:
        names: see `Variant.named`.
        stock: has the weights with which every training begins.
        stream: batches to train on.
        warmup: the training of each alpha.
        stock_optimizer: see `StockTrainer`.
    """
    variants = {name: Variant.named(name) for name in names}
    alphas = dict.fromkeys(variant.alpha for variant in variants.values() if variant.alpha > 1)
    trained = {alpha: train(stock, alpha, stream, warmup) for alpha in alphas}
    softmax_weights = next(iter(trained.values()), stock)
    return {
        name: _frozen_trainer(
            variant, trained.get(variant.alpha, softmax_weights), stock_optimizer=stock_optimizer
        )
        for name, variant in variants.items()
    }


def _frozen_trainer(variant: Variant, weights: NMTModel, *, stock_optimizer: bool) -> Trainer:
    """Return a trainer of a variant that keeps a copy of these weights."""
    pad = weights.decoder.embeddings.word_padding_idx
    if variant.stock:
        model = copy.deepcopy(weights)
        return StockTrainer(model, pad, FROZEN, stock_optimizer=stock_optimizer)
    products_type = torch.bfloat16 if variant.bf16 else None
    return OurTrainer(our_model(weights, variant.alpha, products_type), pad, FROZEN)


def train(stock: NMTModel, alpha: float, stream: Iterator[Batch], warmup: Warmup) -> NMTModel:
    """Return a copy of a model whose weights were trained with an alpha."""
    pad = stock.decoder.embeddings.word_padding_idx
    model = our_model(stock, alpha)
    learner = OurTrainer(model, pad, LEARNING_RATE)
    for _ in range(warmup.updates):
        learner.step(next(stream), clock=time.perf_counter)
    if warmup.support is not None:
        scale_output(model, next(stream), warmup.support)
    trained = copy.deepcopy(stock)
    copy_weights(model, trained)
    return trained


@torch.no_grad()
def scale_output(model: SparseNMTModel, batch: Batch, support: float) -> None:
    """Scale the output weights to about `support` nonzero probabilities per token of a batch."""
    hidden, target = model.hidden_states(batch)
    layer = model.generator
    parameters = [(parameter, parameter.clone()) for parameter in (layer.weight, layer.bias)]

    def scale(factor: float) -> None:
        for parameter, original in parameters:
            parameter.copy_(original * factor)

    def support_of(factor: float) -> float:
        scale(factor)
        nothing_ignored = -1
        return float(layer.loss(hidden, target, nothing_ignored).support) / len(target)

    # Nine halvings leave 1.4 % between the bounds: 1024 ** (1 / 512).
    scale(scale_for_support(support_of, support, smallest=1, largest=2**10, halvings=9))
