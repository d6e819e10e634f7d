"""Models and training steps that benchmarks compare: ours, and those of stock OpenNMT-py."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.nn.output import OutputLayer, OutputLoss
from onmt_entmax.opennmt import (
    Embeddings,
    InputFeedRNNDecoder,
    NMTLossCompute,
    NMTModel,
    Optimizer,
    RNNEncoder,
)
from onmt_entmax.recurrence.decoder import FastInputFeedRNNDecoder
from onmt_entmax.recurrence.encoder import FastRNNEncoder

MAX_GRAD_NORM = 5.0  # OpenNMT-py's default


def stock_model(hidden: int, vocabularies: Vocabularies, dropout: float) -> NMTModel:
    """Return OpenNMT-py's bidirectional encoder and input-feeding decoder, with softmax."""
    source, target = (Embeddings(hidden, len(side), side.pad) for side in vocabularies)
    encoder = RNNEncoder(
        "LSTM",
        bidirectional=True,
        num_layers=2,
        hidden_size=hidden,
        dropout=dropout,
        embeddings=source,
    )
    decoder = InputFeedRNNDecoder(
        "LSTM",
        bidirectional_encoder=True,
        num_layers=2,
        hidden_size=hidden,
        attn_type="general",
        dropout=dropout,
        embeddings=target,
    )
    model = NMTModel(encoder, decoder)
    classes = len(vocabularies.target)
    model.generator = nn.Sequential(nn.Linear(hidden, classes), nn.LogSoftmax(dim=-1))
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -0.1, 0.1)
    return model


def our_model(stock: NMTModel, alpha: float, matmul_dtype: torch.dtype | None) -> SparseNMTModel:
    """Return our model with the weights of `stock`.

    Args:
        stock: of `stock_model`.
        alpha: of attention and output.
        matmul_dtype: of large products; None: float32.
    """
    encoder = copy.deepcopy(stock.encoder)
    decoder = copy.deepcopy(stock.decoder)
    # The fast classes have the same weights and no state of their own.
    encoder.__class__ = FastRNNEncoder
    decoder.__class__ = FastInputFeedRNNDecoder
    attention = EntmaxGlobalAttention(decoder.hidden_size, "general", alpha)
    attention.load_state_dict(decoder.attn.state_dict())
    decoder.attn = attention
    linear = stock.generator[0]
    model = SparseNMTModel(
        encoder, decoder, OutputLayer(linear.in_features, linear.out_features, alpha)
    )
    model.generator.load_state_dict(linear.state_dict())
    model.matmul_dtype = matmul_dtype
    return model.train()


class Contender(ABC):
    """Training steps of a model.

    Args:
        model: the model.
        pad: id of padding in the target.
        learning_rate: learning rate of Adam.

    Attributes:
        support: nonzero outputs per token in the last step; None if not counted.
        loss: mean loss per token in the last step.
    """

    support: float | None = None
    loss: float = 0.0

    def __init__(self, model: Any, pad: int, learning_rate: float) -> None:
        self.model = model
        self.pad = pad
        self.parameters = list(model.parameters())
        self.optimizer = torch.optim.Adam(self.parameters, learning_rate, fused=True)

    def step(self, batch: Batch, clock: Callable[[], float]) -> tuple[float, float]:
        """Take a step; return the seconds of the whole step, and of clipping and Adam alone."""
        start = clock()
        self.optimizer.zero_grad()
        self.backward(batch)
        before_update = clock()
        self.update()
        end = clock()
        return end - start, end - before_update

    @abstractmethod
    def backward(self, batch: Batch) -> None:
        """Run forward, loss and backward."""

    def update(self) -> None:
        """Clip the gradients and update the weights."""
        nn.utils.clip_grad_norm_(self.parameters, MAX_GRAD_NORM)
        self.optimizer.step()


class OurContender(Contender):
    """Training steps of our model."""

    def loss_of(self, batch: Batch) -> OutputLoss:
        """Return the loss of a batch, as `Trainer.loss`."""
        hidden, target = self.model.hidden_states(batch)
        loss: OutputLoss = self.model.generator.loss(hidden, target, self.pad)
        return loss

    def backward(self, batch: Batch) -> None:
        """Run forward, loss and backward."""
        result = self.loss_of(batch)
        tokens = int(result.tokens)
        (result.loss / tokens).backward()
        self.loss = float(result.loss.detach()) / tokens
        self.support = float(result.support) / tokens


class StockContender(Contender):
    """Training steps of OpenNMT-py's model and loss, as its trainer calls them.

    Args:
        model: the model.
        pad: id of padding in the target.
        learning_rate: learning rate of Adam.
        stock_optimizer: whether to step by OpenNMT-py's wrapper and torch's plain Adam.
    """

    def __init__(self, model: Any, pad: int, learning_rate: float, stock_optimizer: bool) -> None:
        super().__init__(model, pad, learning_rate)
        criterion = nn.NLLLoss(ignore_index=pad, reduction="sum")
        self.loss_compute = NMTLossCompute(criterion, model.generator)
        self.wrapper: Optimizer | None = None
        if stock_optimizer:
            self.optimizer = torch.optim.Adam(self.parameters, learning_rate)
            self.wrapper = Optimizer(self.optimizer, learning_rate, None, MAX_GRAD_NORM)

    def backward(self, batch: Batch) -> None:
        """Run forward, loss and backward."""
        assert batch.target is not None
        assert batch.target_lengths is not None
        outputs, attentions = self.model(batch.source, batch.target, batch.source_lengths)
        tokens = int((batch.target_lengths - 1).sum())
        stock_batch = SimpleNamespace(tgt=batch.target)  # what NMTLossCompute reads of a batch
        loss, _ = self.loss_compute(stock_batch, outputs, attentions, normalization=tokens)
        loss.backward()
        self.loss = loss.item()

    def update(self) -> None:
        """Clip the gradients and update the weights."""
        if self.wrapper is None:
            super().update()
        else:
            self.wrapper.step()


def copy_weights(source: SparseNMTModel, target: NMTModel) -> None:
    """Copy the weights of our model to a stock one."""
    for part in ("encoder", "decoder"):
        getattr(target, part).load_state_dict(getattr(source, part).state_dict())
    target.generator[0].load_state_dict(source.generator.state_dict())
