"""Networks of the benchmark of `gpu.py`: LSTMs and Transformers, ours and OpenNMT-py's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch

from onmt_entmax.model import SparseNMTModel
from onmt_entmax.opennmt import NMTModel
from tools.bench import transformer_models
from tools.bench.batches import Corpus
from tools.bench.recurrent_models import our_model, stock_model
from tools.bench.texts import Text


@dataclass(frozen=True)
class Network(ABC):
    """A network and the text that it learns. An alpha is a text here, such as "1.5".

    Attributes:
        name: in the tables.
        text: pairs of sentences to train on.
        dropout: probability in steps that are timed.
        other_alpha: is timed and recorded beside 1.5 and 1.
    """

    name: str
    text: Text
    dropout: ClassVar[float]
    other_alpha: ClassVar[str]

    @cached_property
    def corpus(self) -> Corpus:
        """The text without a folder of real ones, with its vocabularies."""
        return Corpus.read(self.text, data=None)

    @property
    @abstractmethod
    def hidden(self) -> int:
        """Size of the output of each layer."""

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
    """An encoder and a decoder of two layers; alpha is that of attention and output, a number.

    Attributes:
        units: of each layer.
    """

    units: int
    dropout: ClassVar[float] = 0.3
    other_alpha: ClassVar[str] = "1.33"

    @property
    def hidden(self) -> int:
        """See `Network.hidden`."""
        return self.units

    def model(self, alpha: str, dropout: float) -> SparseNMTModel:
        """Return our model; see `Network.model`."""
        return our_model(self.stock(dropout), float(alpha))

    def stock(self, dropout: float) -> NMTModel:
        """Return OpenNMT-py's model, with softmax."""
        torch.manual_seed(1)
        return stock_model(self.hidden, self.corpus.vocabularies, dropout)


@dataclass(frozen=True)
class Transformer(Network):
    """A Transformer; alpha is that of its attention: a number, or "learned". Its output is softmax.

    Attributes:
        size: of its layers.
    """

    size: transformer_models.Size
    dropout: ClassVar[float] = 0.1
    other_alpha: ClassVar[str] = "learned"

    @property
    def hidden(self) -> int:
        """See `Network.hidden`."""
        return self.size.hidden

    def model(self, alpha: str, dropout: float) -> SparseNMTModel:
        """Return our model; see `Network.model`."""
        return transformer_models.model_of(
            alpha, self.corpus.vocabularies, self.size, output_alpha=1.0, dropout=dropout
        )

    def stock(self, dropout: float) -> NMTModel:
        """Return OpenNMT-py's model, with softmax."""
        return transformer_models.stock_model(self.corpus.vocabularies, self.size, dropout)
