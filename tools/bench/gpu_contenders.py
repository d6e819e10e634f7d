"""Training steps that `gpu.py` times: OpenNMT-py's, ours without padding, and ours with padding.

A step copies its batch to the device, and reads no value back, so that a GPU never waits for
Python. `report` reads values back afterwards.
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
from tools.bench.gpu_device import Result
from tools.bench.trainers import MAX_GRAD_NORM, OurTrainer, StockTrainer

LEARNING_RATE = 1e-3


class Step(Protocol):
    """Takes training steps of a model on a device."""

    def take(self, batch: Batch) -> None:
        """Start a step on a batch that is on the CPU; the device may finish it later."""

    def report(self) -> Result:
        """Wait for the device, and return measures of the last step; empty if there are none."""


class PackedStep:
    """Steps of this project on batches without padding.

    Args:
        model: the model to train, on the device.
        pad: id of padding in the target.
        device: device of the model.
    """

    def __init__(self, model: SparseNMTModel, pad: int, device: torch.device) -> None:
        self._trainer = OurTrainer(model, pad, LEARNING_RATE)
        self._device = device

    def take(self, batch: Batch) -> None:
        """See `Step.take`."""
        self._trainer.optimizer.zero_grad()
        result = self._trainer.loss_of(batch.to(self._device))
        (result.loss / len(batch)).backward()
        self._trainer.update()

    def report(self) -> Result:
        """See `Step.report`."""
        return {}


class StockStep:
    """Steps of OpenNMT-py's model and loss.

    Args:
        model: the model to train, on the device.
        pad: id of padding in the target.
        device: device of the model.
    """

    def __init__(self, model: NMTModel, pad: int, device: torch.device) -> None:
        self._trainer = StockTrainer(model, pad, LEARNING_RATE)
        self._device = device

    def take(self, batch: Batch) -> None:
        """See `Step.take`."""
        self._trainer.optimizer.zero_grad()
        # OpenNMT-py needs the source's lengths on the device, too, but not the target's.
        moved = replace(batch.to(self._device), target_lengths=batch.target_lengths)
        self._trainer.loss_of(moved, normalization=len(batch)).backward()
        self._trainer.update()

    def report(self) -> Result:
        """See `Step.report`."""
        return {}


class StaticStep:
    """Steps of this project on padded batches, with CUDA graphs or without.

    Args:
        model: the model to train, on the device.
        vocabularies: vocabularies of the model.
        shapes: shapes to which batches are padded.
        graphs: value of the option `cuda_graphs`: "on", "off" or "check".
    """

    def __init__(
        self, model: SparseNMTModel, vocabularies: Vocabularies, shapes: Shapes, graphs: str
    ) -> None:
        optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE, fused=True)
        clipped = OptimizerConfig(max_grad_norm=MAX_GRAD_NORM)
        config = TrainingConfig(clipped, cuda_graphs=graphs)
        self._update = Update(model, optimizer, config, vocabularies, shapes)
        self._sums: Tensor | None = None  # of the last step, on the device

    def take(self, batch: Batch) -> None:
        """See `Step.take`."""
        self._update.add(batch, len(batch))
        self._sums = self._update.step((LEARNING_RATE,))

    def report(self) -> Result:
        """Return loss and support per token in the last step, and the number of CUDA graphs."""
        assert self._sums is not None
        loss, tokens, _, support, *_ = self._sums.tolist()
        return {
            "loss": round(loss / tokens, 3),
            "support": round(support / tokens, 1),
            "graphs": self.graphs,
        }

    @property
    def graphs(self) -> int:
        """Number of captured CUDA graphs."""
        return self._update.recorder.captured

    @property
    def is_finite(self) -> bool:
        """Whether a step was taken, and the sums of the last one are finite."""
        return self._sums is not None and bool(self._sums.isfinite().all())
