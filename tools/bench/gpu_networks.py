"""The networks that `gpu.py` checks and times, LSTMs and Transformers, each ours and OpenNMT-py's.

Alphas are texts here, as tables show them: a number such as "1.5", or "learned".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch

from onmt_entmax.model import SparseNMTModel
from onmt_entmax.opennmt import NMTModel
from tools.bench import recurrent_models, transformer_models
from tools.bench.batches import Corpus
from tools.bench.texts import Text


@dataclass(frozen=True)
class Network(ABC):
    """A network, with the text that it trains on.

    Attributes:
        name: name in the tables.
        text: pairs of sentences.
        dropout: probability in training steps that are timed.
        other_alpha: a third alpha to check and time, beside 1.5 and 1.
    """

    name: str
    text: Text
    dropout: ClassVar[float]
    other_alpha: ClassVar[str]

    @cached_property
    def corpus(self) -> Corpus:
        """Pairs and vocabularies, without downloads: samples or random words, see `Text`."""
        return Corpus.read(self.text, data=None)

    @property
    @abstractmethod
    def hidden(self) -> int:
        """Size of each layer's output."""

    @abstractmethod
    def our_model(self, alpha: str, dropout: float) -> SparseNMTModel:
        """Return this project's model, whose first weights are the same for all alphas.

        Args:
            alpha: alpha of the mappings that the class names.
            dropout: probability.
        """

    @abstractmethod
    def stock_model(self, dropout: float) -> NMTModel:
        """Return OpenNMT-py's model, with softmax.

        Args:
            dropout: probability.
        """


@dataclass(frozen=True)
class Lstm(Network):
    """Encoder and decoder of two LSTM layers; alpha is that of attention and output, a number.

    Attributes:
        units: size of each layer.
    """

    units: int
    dropout: ClassVar[float] = 0.3
    other_alpha: ClassVar[str] = "1.33"

    @property
    def hidden(self) -> int:
        """Size of each layer's output."""
        return self.units

    def our_model(self, alpha: str, dropout: float) -> SparseNMTModel:
        """Return this project's model, with the weights of `stock_model`."""
        return recurrent_models.our_model(self.stock_model(dropout), float(alpha))

    def stock_model(self, dropout: float) -> NMTModel:
        """Return OpenNMT-py's model, with softmax."""
        torch.manual_seed(1)
        return recurrent_models.stock_model(self.hidden, self.corpus.vocabularies, dropout)


@dataclass(frozen=True)
class Transformer(Network):
    """A Transformer; alpha is that of attention, a number or "learned". Its output is softmax.

    Attributes:
        size: number and sizes of its layers.
    """

    size: transformer_models.Size
    dropout: ClassVar[float] = 0.1
    other_alpha: ClassVar[str] = "learned"

    @property
    def hidden(self) -> int:
        """Size of each layer's output."""
        return self.size.hidden

    def our_model(self, alpha: str, dropout: float) -> SparseNMTModel:
        """Return this project's model."""
        return transformer_models.model_of(
            alpha, self.corpus.vocabularies, self.size, output_alpha=1.0, dropout=dropout
        )

    def stock_model(self, dropout: float) -> NMTModel:
        """Return OpenNMT-py's model, with softmax and the weights of ours."""
        return transformer_models.stock_model(self.corpus.vocabularies, self.size, dropout)
