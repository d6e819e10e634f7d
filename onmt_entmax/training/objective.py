"""What training makes small."""

from __future__ import annotations

from torch import nn

from onmt_entmax.model import SparseNMTModel
from onmt_entmax.modules.output import OutputLoss
from onmt_entmax.text.batch import Batch
from onmt_entmax.training.config import TrainingConfig


class Objective(nn.Module):
    """The loss of a batch as a module, which is what DistributedDataParallel wraps.

    Args:
        model: what is trained.
        config: gives ``label_smoothing``.
        pad: the target id that counts nothing.
    """

    def __init__(self, model: SparseNMTModel, config: TrainingConfig, pad: int) -> None:
        super().__init__()
        self.model, self.config, self.pad = model, config, pad

    def forward(self, batch: Batch) -> OutputLoss:
        """Loss of a batch, all its targets together."""
        hidden, target = self.model.hidden_states(batch)
        smoothing = self.config.label_smoothing
        return self.model.generator.loss(hidden, target, self.pad, smoothing)
