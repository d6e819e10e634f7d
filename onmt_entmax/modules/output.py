"""The output layer: from hidden states to scores, log-probabilities, or the loss."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from onmt_entmax.losses import entmax_loss
from onmt_entmax.mappings import entmax, log_entmax


class OutputLoss(NamedTuple):
    """What the loss of a batch has to say; all 0-dim tensors, only ``loss`` with a graph.

    Attributes:
        loss: sum of the losses of the targets that are not ignored (cross-entropy's unit, nats).
        tokens: how many targets are not ignored.
        correct: for how many of them the target has the largest score.
        support: how many probabilities are not zero, all their rows together.
    """

    loss: Tensor
    tokens: Tensor
    correct: Tensor
    support: Tensor


class OutputLayer(nn.Module):
    """A linear layer onto the vocabulary, and entmax or its loss on top.

    Args:
        hidden_size: size of the states that come in.
        vocab_size: how many tokens there are.
        alpha: of the entmax; a number >= 1, 1 is softmax.

    To tie the weights: ``output.weight = embedding.weight``.
    """

    def __init__(self, hidden_size: int, vocab_size: int, alpha: float = 1.5) -> None:
        super().__init__()
        if not alpha >= 1:
            raise ValueError(f"alpha must be at least 1 (1 is softmax), got {alpha}")
        self.alpha = float(alpha)
        self.weight = nn.Parameter(torch.empty(vocab_size, hidden_size))
        self.bias = nn.Parameter(torch.empty(vocab_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias as ``torch.nn.Linear`` does."""
        bound = 1 / math.sqrt(max(self.weight.shape[1], 1))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def scores(self, hidden: Tensor) -> Tensor:
        """Scores (..., vocab) in float32 (float64 for float64 weights) of hidden (..., hidden)."""
        with torch.autocast(hidden.device.type, enabled=False):
            return functional.linear(hidden.to(self.weight.dtype), self.weight, self.bias)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Log-probabilities (..., vocab), -inf outside the support, of hidden (..., hidden)."""
        return log_entmax(self.scores(hidden), self.alpha)

    def loss(
        self, hidden: Tensor, target: Tensor, ignore_index: int, label_smoothing: float = 0.0
    ) -> OutputLoss:
        """Sum of the losses of ``target`` (N,) int64 given ``hidden`` (N, hidden).

        Raises:
            ValueError: if a target is not in the vocabulary, or label_smoothing not in [0, 1].
        """
        scores = self.scores(hidden)
        loss = entmax_loss(scores, target, self.alpha, None, ignore_index, "sum", label_smoothing)
        with torch.no_grad():
            kept = target != ignore_index
            own = scores.gather(1, torch.where(kept, target, 0).unsqueeze(1)).squeeze(1)
            correct = ((own == scores.amax(1)) & kept).sum()
            support = ((entmax(scores, self.alpha) > 0) & kept.unsqueeze(1)).sum()
        return OutputLoss(loss, kept.sum(), correct, support)

    def extra_repr(self) -> str:
        """Sizes and alpha, for printing."""
        vocab_size, hidden_size = self.weight.shape
        return f"hidden_size={hidden_size}, vocab_size={vocab_size}, alpha={self.alpha}"
