"""Training steps that benchmarks time: those of our models, and OpenNMT-py's.

A trainer keeps its model and optimiser, so several of them can take turns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from onmt_entmax.data.batch import Batch
from onmt_entmax.nn.output import OutputLoss
from onmt_entmax.opennmt import NMTLossCompute, NMTModel, Optimizer

MAX_GRAD_NORM = 5.0  # OpenNMT-py's default


class StepTime(NamedTuple):
    """Seconds of a step.

    Attributes:
        whole: seconds of the whole step.
        update: seconds of clipping and Adam alone.
    """

    whole: float
    update: float


class Trainer(ABC):
    """Trains a model with Adam, step by step.

    Args:
        model: the model to train.
        pad: id of padding in the target.
        learning_rate: Adam's learning rate; 0 keeps the weights.

    Attributes:
        support: nonzero outputs per token in the last step; None if not counted.
        loss: mean loss per token in the last step.
    """

    support: float | None = None
    loss: float = 0.0

    def __init__(self, model: NMTModel, pad: int, learning_rate: float) -> None:
        self.model = model
        self.pad = pad
        self.parameters = list(model.parameters())
        self.optimizer = torch.optim.Adam(self.parameters, learning_rate, fused=True)

    def step(self, batch: Batch, clock: Callable[[], float]) -> StepTime:
        """Take a training step: `backward`, then `update`.

        Args:
            batch: sentence pairs.
            clock: returns seconds.
        """
        start = clock()
        self.optimizer.zero_grad()
        self.backward(batch)
        before_update = clock()
        self.update()
        end = clock()
        return StepTime(whole=end - start, update=end - before_update)

    @abstractmethod
    def backward(self, batch: Batch) -> None:
        """Run forward, loss and backward; set `loss` and `support`."""

    def update(self) -> None:
        """Clip the gradients and update the weights."""
        nn.utils.clip_grad_norm_(self.parameters, MAX_GRAD_NORM)
        self.optimizer.step()


class OurTrainer(Trainer):
    """Trains a model of this project."""

    def loss_of(self, batch: Batch) -> OutputLoss:
        """Return the loss of a batch, summed over its tokens, as training computes it."""
        hidden, target = self.model.hidden_states(batch)
        loss: OutputLoss = self.model.generator.loss(hidden, target, self.pad)
        return loss

    def backward(self, batch: Batch) -> None:
        """Run forward, loss and backward; set `loss` and `support`."""
        result = self.loss_of(batch)
        tokens = int(result.tokens)
        (result.loss / tokens).backward()
        self.loss = float(result.loss.detach()) / tokens
        self.support = float(result.support) / tokens


class StockTrainer(Trainer):
    """Trains a model of OpenNMT-py with its loss, as its own trainer does.

    Args:
        model: see `Trainer`.
        pad: see `Trainer`.
        learning_rate: see `Trainer`.
        stock_optimizer: whether OpenNMT-py's wrapper of torch's plain Adam updates the weights, in
            the place of the fused Adam.
    """

    def __init__(
        self, model: NMTModel, pad: int, learning_rate: float, *, stock_optimizer: bool = False
    ) -> None:
        super().__init__(model, pad, learning_rate)
        criterion = nn.NLLLoss(ignore_index=pad, reduction="sum")
        self.loss_compute = NMTLossCompute(criterion, model.generator)
        self.wrapper: Optimizer | None = None
        if stock_optimizer:
            self.optimizer = torch.optim.Adam(self.parameters, learning_rate)
            self.wrapper = Optimizer(self.optimizer, learning_rate, None, MAX_GRAD_NORM)

    def loss_of(self, batch: Batch, normalization: int) -> Tensor:
        """Return the loss of a batch, summed over its tokens, divided by `normalization`."""
        outputs, attentions = self.model(batch.source, batch.target, batch.source_lengths)
        stock_batch = SimpleNamespace(tgt=batch.target)  # what NMTLossCompute reads of a batch
        loss: Tensor
        loss, _ = self.loss_compute(stock_batch, outputs, attentions, normalization=normalization)
        return loss

    def backward(self, batch: Batch) -> None:
        """Run forward, loss and backward; set `loss`."""
        assert batch.target_lengths is not None
        loss = self.loss_of(batch, normalization=int((batch.target_lengths - 1).sum()))
        loss.backward()
        self.loss = loss.item()

    def update(self) -> None:
        """Clip the gradients and update the weights."""
        if self.wrapper is None:
            super().update()
        else:
            self.wrapper.step()
