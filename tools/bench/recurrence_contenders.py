"""The contenders of `recurrence.py`: stock softmax, and our model with alphas.

The cost of entmax depends on the support, and this on the weights. So each alpha trains first, and
its contenders begin with the trained weights, which they keep.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from onmt_entmax.data.batch import Batch
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.opennmt import NMTModel
from tools.bench.bisection import scale_for_support
from tools.bench.contenders import Contender, OurContender, StockContender
from tools.bench.recurrent_models import copy_weights, our_model

LEARNING_RATE = 2e-3  # before the timing
KEPT = 0.0  # learning rate of steps that are timed
BF16 = ":bf16"  # ends the names of variants with products in bfloat16


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
        if name == "stock":
            return cls(stock=True, alpha=1.0, bf16=False)
        alpha = float(name.removesuffix(BF16))
        if not 1 <= alpha < 100:
            raise ValueError(name)
        return cls(stock=False, alpha=alpha, bf16=name.endswith(BF16))


@dataclass(frozen=True)
class Warmup:
    """What comes before the timing.

    Attributes:
        updates: number of updates of each alpha.
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
) -> dict[str, Contender]:
    """Return the contenders by name, with the weights that they keep.

    Args:
        names: see `Variant.named`.
        stock: begins every training.
        stream: of batches to train on.
        warmup: of each alpha.
        stock_optimizer: see `StockContender`.
    """
    pad = stock.decoder.embeddings.word_padding_idx
    variants = {name: Variant.named(name) for name in names}
    trained = _trained_weights(variants, stock, stream, warmup)
    # Softmax, which was not trained, has the weights of the first alpha.
    of_softmax = next(iter(trained.values()), stock)
    running: dict[str, Contender] = {}
    for name, variant in variants.items():
        weights = trained.get(variant.alpha, of_softmax)
        if variant.stock:
            running[name] = StockContender(
                copy.deepcopy(weights), pad, KEPT, stock_optimizer=stock_optimizer
            )
        else:
            products_type = torch.bfloat16 if variant.bf16 else None
            model = our_model(weights, variant.alpha, products_type)
            running[name] = OurContender(model, pad, KEPT)
    return running


def _trained_weights(
    variants: Mapping[str, Variant], stock: NMTModel, stream: Iterator[Batch], warmup: Warmup
) -> dict[float, NMTModel]:
    """Return a copy of `stock` for each sparse alpha of the variants, trained with it."""
    alphas = dict.fromkeys(variant.alpha for variant in variants.values() if variant.alpha > 1)
    return {alpha: train(stock, alpha, stream, warmup) for alpha in alphas}


def train(stock: NMTModel, alpha: float, stream: Iterator[Batch], warmup: Warmup) -> NMTModel:
    """Return a copy of a model whose weights were trained with an alpha."""
    pad = stock.decoder.embeddings.word_padding_idx
    model = our_model(stock, alpha)
    learner = OurContender(model, pad, LEARNING_RATE)
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

    scale(scale_for_support(support_of, support, smallest=1, largest=2**10, halvings=9))
