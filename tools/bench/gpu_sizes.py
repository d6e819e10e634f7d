"""Models and batches of the benchmark of `gpu.py`, in the sizes in which it times them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.opennmt import NMTModel, TransformerEncoder
from tools.bench import batches as text
from tools.bench import transformer
from tools.bench.contenders import our_model, stock_model


@dataclass(frozen=True)
class Size:
    """A model and its batches.

    Attributes:
        name: name in the tables.
        hidden: size of each layer.
        vocabulary: largest number of tokens.
        batch: sentence pairs of a batch.
        read: reads the pairs.
        joint: whether source and target share their vocabulary.
        transformer: the sizes of a Transformer; None: an LSTM of two layers.
    """

    name: str
    hidden: int
    vocabulary: int
    batch: int
    read: Callable[[Path | None], list[text.Pair]]
    joint: bool
    transformer: transformer.Size | None = None

    def vocabularies(self) -> Vocabularies:
        """Return the vocabularies."""
        return text.vocabularies(self.read(None), self.vocabulary, self.joint)

    def batches(self, count: int) -> list[Batch]:
        """Return so many batches."""
        pairs = self.read(None)
        stream = text.batches(pairs, self.vocabularies(), self.batch, 16 * self.batch)
        return list(islice(stream, count))

    def model(self, alpha: str, dropout: float) -> SparseNMTModel:
        """Return our model; those of all alphas have the same weights.

        Args:
            alpha: a number, of attention and output; of a Transformer's attention alone, where it
                may also be "learned".
            dropout: probability.
        """
        vocabularies = self.vocabularies()
        if self.transformer is not None:
            return transformer.model_of(alpha, vocabularies, self.transformer, 1.0, dropout)
        torch.manual_seed(1)
        return our_model(stock_model(self.hidden, vocabularies, dropout), float(alpha), None)

    def stock(self, dropout: float) -> NMTModel:
        """Return OpenNMT-py's model, with softmax."""
        if self.transformer is None:
            torch.manual_seed(1)
            return stock_model(self.hidden, self.vocabularies(), dropout)
        model: Any = self.model("stock", dropout)  # OpenNMT-py's attention
        model.encoder.__class__ = TransformerEncoder
        linear = nn.Linear(self.hidden, self.vocabulary)
        linear.weight, linear.bias = model.generator.weight, model.generator.bias
        model.generator = nn.Sequential(linear, nn.LogSoftmax(dim=-1))
        return model


SIZES = (
    Size("2x300 V=776", 300, 776, 64, text.inflection, True),
    Size("2x300 V=776", 300, 776, 256, text.inflection, True),
    Size("2x500 V=18,000", 500, 18_000, 256, text.words, False),
    # 4,100 target tokens a step.
    Size("Transformer base", 512, 32_000, 164, text.sentences, True, transformer.SIZES["base"]),
)
SMALL = (
    Size("2x24 V=776", 24, 776, 16, text.inflection, True),
    Size("tiny Transformer", 32, 776, 16, text.inflection, True, transformer.SIZES["tiny"]),
)
