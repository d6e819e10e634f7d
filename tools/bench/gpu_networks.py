"""Networks of the benchmark of `gpu.py`: LSTMs and Transformers, ours and OpenNMT-py's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import nn

from onmt_entmax.model import SparseNMTModel
from onmt_entmax.opennmt import NMTModel, TransformerEncoder
from tools.bench import transformer_models
from tools.bench.batches import Corpus
from tools.bench.recurrent_models import our_model, stock_model
from tools.bench.texts import Text


@dataclass(frozen=True)
class Network(ABC):
    """A network and the text that it learns. An alpha is a text here, such as "1.5".

    Attributes:
        name: in the tables.
        hidden: size of each layer.
        text: pairs to train on.
        dropout: probability in steps that are timed.
        other_alpha: is timed and recorded beside 1.5 and 1.
    """

    name: str
    hidden: int
    text: Text
    dropout: ClassVar[float]
    other_alpha: ClassVar[str]

    @cached_property
    def corpus(self) -> Corpus:
        """The text without a folder of real ones, with its vocabularies."""
        return Corpus.read(self.text, data=None)

    @abstractmethod
    def model(self, alpha: str, dropout: float) -> SparseNMTModel:
        """Return our model; those of all alphas have the same weights.

        Args:
            alpha: which mapping.
            dropout: probability.
        """

    @abstractmethod
    def stock(self, dropout: float) -> NMTModel:
        """Return OpenNMT-py's model, with softmax."""


@dataclass(frozen=True)
class Lstm(Network):
    """An encoder and a decoder of two layers; alpha is that of attention and output, a number."""

    dropout: ClassVar[float] = 0.3
    other_alpha: ClassVar[str] = "1.33"

    def model(self, alpha: str, dropout: float) -> SparseNMTModel:
        """Return our model; see `Network.model`."""
        return our_model(self.stock(dropout), float(alpha))

    def stock(self, dropout: float) -> NMTModel:
        """Return OpenNMT-py's model, with softmax."""
        torch.manual_seed(1)
        return stock_model(self.hidden, self.corpus.vocabularies, dropout)


@dataclass(frozen=True)
class Transformer(Network):
    """A Transformer; alpha is that of its attention: a number, "learned", or "stock".

    Its output is softmax.

    Attributes:
        size: further sizes, of which `hidden` is one.
    """

    size: transformer_models.Size
    dropout: ClassVar[float] = 0.1
    other_alpha: ClassVar[str] = "learned"

    def model(self, alpha: str, dropout: float) -> SparseNMTModel:
        """Return our model; see `Network.model`."""
        return transformer_models.model_of(
            alpha, self.corpus.vocabularies, self.size, output_alpha=1.0, dropout=dropout
        )

    def stock(self, dropout: float) -> NMTModel:
        """Return OpenNMT-py's model, with softmax: our classes give place to those they extend."""
        model: Any = self.model("stock", dropout)
        model.encoder.__class__ = TransformerEncoder
        linear = nn.Linear(self.hidden, self.text.vocabulary)
        linear.weight, linear.bias = model.generator.weight, model.generator.bias
        model.generator = nn.Sequential(linear, nn.LogSoftmax(dim=-1))
        return model
