"""Who takes training steps in the benchmark of `gpu.py`: OpenNMT-py, and this project."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

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
from tools.bench.gpu_device import Device


class PackedStep(OurContender):
    """Steps of this project without padding."""

    def __init__(self, model: SparseNMTModel, pad: int, rate: float, device: Device) -> None:
        super().__init__(model, pad, rate)
        self._device = device.device

    def take(self, batch: Batch) -> None:
        """Take a step."""
        self.optimizer.zero_grad()
        batch = batch.to(self._device)
        result = self.loss_of(batch)
        (result.loss / len(batch)).backward()
        self.update()


class StockStep(StockContender):
    """Steps of OpenNMT-py's model and loss."""

    def __init__(self, model: NMTModel, pad: int, rate: float, device: Device) -> None:
        super().__init__(model, pad, rate, stock_optimizer=False)
        self._device = device.device

    def take(self, batch: Batch) -> None:
        """Take a step; OpenNMT-py needs lengths on the device, too."""
        self.optimizer.zero_grad()
        moved = batch.to(self._device)
        moved = replace(moved, target_lengths=batch.target_lengths)
        self.backward_of(moved)
        self.update()

    def backward_of(self, batch: Batch) -> None:
        """Run forward and backward pass, without reading the loss."""
        outputs, attentions = self.model(batch.source, batch.target, batch.source_lengths)
        stock_batch = SimpleNamespace(tgt=batch.target)  # what NMTLossCompute reads of a batch
        loss, _ = self.loss_compute(stock_batch, outputs, attentions, normalization=len(batch))
        loss.backward()


class StaticStep:
    """Steps of this project on padded batches, with CUDA graphs or without.

    Args:
        model: is trained.
        vocabularies: of the model.
        shapes: to which batches are padded.
        rate: learning rate.
        graphs: as the option `cuda_graphs`: "on", "off" or "check".
    """

    def __init__(
        self,
        model: SparseNMTModel,
        vocabularies: Vocabularies,
        shapes: Shapes,
        rate: float,
        graphs: str,
    ) -> None:
        optimizer = torch.optim.Adam(model.parameters(), rate, fused=True)
        pads = vocabularies.source.pad, vocabularies.target.pad
        clipped = OptimizerConfig(max_grad_norm=MAX_GRAD_NORM)
        config = TrainingConfig(clipped, cuda_graphs=graphs)
        self.updates = Update(model, optimizer, config, pads, shapes)
        self.shapes = shapes
        self.rate = rate
        self.report: Tensor | None = None

    def take(self, batch: Batch) -> None:
        """Take a step."""
        self.updates.add(batch, len(batch))
        self.report = self.updates.step((self.rate,))

    def measured(self) -> tuple[float, float]:
        """Return the last step's loss and support per token."""
        assert self.report is not None
        loss, tokens, _, support, *_ = self.report.tolist()
        return loss / tokens, support / tokens
