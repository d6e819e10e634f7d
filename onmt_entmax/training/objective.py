"""What training makes small."""

from __future__ import annotations

from torch import nn

from onmt_entmax.model import SparseNMTModel
from onmt_entmax.modules.output import OutputLoss
from onmt_entmax.text.batch import Batch
from onmt_entmax.training.config import TrainingConfig


class Objective(nn.Module):
    """The loss of a batch as a module, which is what DistributedDataParallel wraps.

    With ``rdrop`` above 0 every sentence is read twice under two draws of dropout (Liang et al.
    2021, R-Drop): to the mean of the two losses comes a quarter of ``rdrop`` times the symmetric
    divergence of the two predictions, which is half of their equation 4 for alpha = 1.

    Args:
        model: what is trained.
        config: gives ``label_smoothing`` and ``rdrop``.
        pad: the target id that counts nothing.
    """

    def __init__(self, model: SparseNMTModel, config: TrainingConfig, pad: int) -> None:
        super().__init__()
        self.model, self.config, self.pad = model, config, pad

    def forward(self, batch: Batch) -> OutputLoss:
        """Loss of a batch, all its targets together."""
        config, output = self.config, self.model.generator
        if config.rdrop == 0:
            hidden, target = self.model.hidden_states(batch)
            return output.loss(hidden, target, self.pad, config.label_smoothing)
        hidden, target = self.model.hidden_states(batch.twice())
        kept = (target != self.pad).nonzero().squeeze(1)
        hidden, target = hidden[kept], target[kept]
        loss, *counts = output.loss(hidden, target, self.pad, config.label_smoothing)
        between = output.divergence(hidden[::2], hidden[1::2])
        total = loss / 2 + config.rdrop / 4 * between
        return OutputLoss(total, *(count.float() / 2 for count in counts))
