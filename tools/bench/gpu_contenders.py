"""Training steps that `gpu.py` times: OpenNMT-py's, and this project's in three ways.

A step copies its batch to the device. Nothing in it reads a value back, so that a GPU never waits
for Python; `StaticStep.measured` does so afterwards.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from onmt_entmax.config import OptimizerConfig, TrainingConfig
from onmt_entmax.data.batch import Batch
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.opennmt import NMTModel
from onmt_entmax.train.update import Update
from tools.bench.contenders import MAX_GRAD_NORM, OurContender, StockContender

LEARNING_RATE = 1e-3


class Step(Protocol):
    """Takes training steps of a model."""

    def take(self, batch: Batch) -> None:
        """Take a step on a batch that is on the CPU."""


class PackedStep(OurContender):
    """Steps of this project without padding.

    Args:
        model: on the device; is trained.
        pad: id of padding in the target.
        device: of the model.
    """

    def __init__(self, model: SparseNMTModel, pad: int, device: torch.device) -> None:
        super().__init__(model, pad, LEARNING_RATE)
        self._device = device

    def take(self, batch: Batch) -> None:
        """Take a step on a batch that is on the CPU."""
        self.optimizer.zero_grad()
        result = self.loss_of(batch.to(self._device))
        (result.loss / len(batch)).backward()
        self.update()


class StockStep(StockContender):
    """Steps of OpenNMT-py's model and loss.

    Args:
        model: on the device; is trained.
        pad: id of padding in the target.
        device: of the model.
    """

    def __init__(self, model: NMTModel, pad: int, device: torch.device) -> None:
        super().__init__(model, pad, LEARNING_RATE)
        self._device = device

    def take(self, batch: Batch) -> None:
        """Take a step on a batch that is on the CPU."""
        self.optimizer.zero_grad()
        # OpenNMT-py needs the source's lengths on the device, too, but not the target's.
        moved = replace(batch.to(self._device), target_lengths=batch.target_lengths)
        self.loss_of(moved, normalization=len(batch)).backward()
        self.update()


class StaticStep:
    """Steps of this project on padded batches, with CUDA graphs or without.

    Args:
        model: on the device; is trained.
        vocabularies: of the model.
        shapes: to which batches are padded.
        graphs: as the option `cuda_graphs`: "on", "off" or "check".

    Attributes:
        updates: takes the steps.
        report: sums of the last step, on the device; None before the first.
    """

    def __init__(
        self, model: SparseNMTModel, vocabularies: Vocabularies, shapes: Shapes, graphs: str
    ) -> None:
        optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE, fused=True)
        pads = vocabularies.source.pad, vocabularies.target.pad
        clipped = OptimizerConfig(max_grad_norm=MAX_GRAD_NORM)
        config = TrainingConfig(clipped, cuda_graphs=graphs)
        self.updates = Update(model, optimizer, config, pads, shapes)
        self.report: Tensor | None = None

    def take(self, batch: Batch) -> None:
        """Take a step on a batch that is on the CPU."""
        self.updates.add(batch, len(batch))
        self.report = self.updates.step((LEARNING_RATE,))

    def measured(self) -> tuple[float, float]:
        """Return the last step's loss and support per token; waits for the device."""
        assert self.report is not None
        loss, tokens, _, support, *_ = self.report.tolist()
        return loss / tokens, support / tokens
