"""The output layer: from hidden states to scores, log-probabilities, or the loss.

Only `scores` and `log_probs` build the whole matrix of scores; the loss (`output_loss.py`) and the
support (`output_decoding.py`) work on a few rows at a time.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from onmt_entmax.mappings import log_entmax
from onmt_entmax.mappings.arguments import valid_alpha
from onmt_entmax.mappings.conjugate import row_groups
from onmt_entmax.modules.output_decoding import (
    Support,
    as_support,
    dense_log_probs,
    find_support,
    join,
)
from onmt_entmax.modules.output_loss import LinearLoss
from onmt_entmax.modules.recurrence.products import product

# Scores that are held at once, but at least so many rows, for which the weights are read once.
_SCORES = 1 << 21
_ROWS = 128


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

    Attributes:
        prior: (vocab,) how label smoothing spreads its part of a target, sum 1; None: evenly.
    """

    prior: Tensor | None

    def __init__(self, hidden_size: int, vocab_size: int, alpha: float = 1.5) -> None:
        super().__init__()
        self.alpha = float(valid_alpha(alpha))
        self.weight = nn.Parameter(torch.empty(vocab_size, hidden_size))
        self.bias = nn.Parameter(torch.empty(vocab_size))
        self.register_buffer("prior", None, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias as ``torch.nn.Linear`` does."""
        bound = 1 / math.sqrt(max(self.weight.shape[1], 1))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def scores(self, hidden: Tensor) -> Tensor:
        """Scores (..., vocab), in the weights' type, of hidden (..., hidden)."""
        with torch.autocast(hidden.device.type, enabled=False):
            return functional.linear(hidden.to(self.weight.dtype), self.weight, self.bias)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Log-probabilities (..., vocab), -inf outside the support, of hidden (..., hidden)."""
        return log_entmax(self.scores(hidden), self.alpha)

    @torch.no_grad()
    def support(self, hidden: Tensor) -> Support:
        """The tokens of positive probability of hidden (rows, hidden), and no gradient.

        As :meth:`log_probs`, of which it holds what is not -inf; the scores of some rows at a time.

        Raises:
            ValueError: if alpha is 1, or a row of scores is -inf everywhere.
        """
        if self.alpha == 1:
            raise ValueError("every token is in the support of a softmax: use log_probs")
        if self.weight.dtype not in (torch.float32, torch.float64):
            return as_support(self.log_probs(hidden))
        parts = []
        for begin, end in row_groups(0, len(hidden), len(self.weight), _SCORES, _ROWS):
            rows = hidden[begin:end].to(self.weight.dtype)
            with torch.autocast(hidden.device.type, enabled=False):
                scores = product(rows, self.weight, self.bias)
            found = find_support(scores, self.alpha)
            parts.append(found or as_support(dense_log_probs(scores, self.alpha)))
        return join(parts or [as_support(self.scores(hidden))])

    @torch._disable_dynamo
    def loss(
        self, hidden: Tensor, target: Tensor, ignore_index: int, label_smoothing: float = 0.0
    ) -> OutputLoss:
        """Sum of the losses of ``target`` (N,) int64 given ``hidden`` (N, hidden).

        As ``entmax_loss`` of :meth:`scores` with reduction "sum", without ever holding the scores
        of all rows. Gradients of gradients are refused with a RuntimeError. It looks at its data,
        so `torch.compile` leaves it out of its graphs (and refuses it with ``fullgraph=True``).

        Raises:
            ValueError: if shapes do not fit, a target is not in the vocabulary, label_smoothing
                not in [0, 1], a row of scores all -inf, or the weights of a half type.
        """
        if self.weight.dtype not in (torch.float32, torch.float64):
            raise ValueError(
                f"the loss needs weights of 32 or 64 bits, not {self.weight.dtype}: keep the layer "
                f"in float32 (autocast may do the rest)"
            )
        if not 0.0 <= label_smoothing <= 1.0:
            raise ValueError(f"label_smoothing must be between 0 and 1, got {label_smoothing}")
        if hidden.dim() != 2 or target.shape != hidden.shape[:1]:
            raise ValueError(
                f"expected hidden (N, hidden) and target (N,), got {tuple(hidden.shape)} and "
                f"{tuple(target.shape)}"
            )
        vocab = len(self.weight)
        kept = (target != ignore_index).nonzero().squeeze(1)
        if len(kept) < len(target):
            hidden, target = hidden[kept], target[kept]
        if len(target) and not 0 <= int(target.min()) <= int(target.max()) < vocab:
            raise ValueError(
                f"a target is not in the vocabulary of {vocab} tokens: smallest "
                f"{int(target.min())}, largest {int(target.max())}"
            )
        spread = None
        if label_smoothing > 0:
            even = self.weight.new_full((vocab,), 1 / vocab)
            spread = label_smoothing * (even if self.prior is None else self.prior)
        with torch.autocast(hidden.device.type, enabled=False):
            loss, correct, support = LinearLoss.apply(
                hidden.to(self.weight.dtype),
                self.weight,
                self.bias,
                target,
                self.alpha,
                float(label_smoothing),
                spread,
            )
        tokens = torch.tensor(len(target), device=hidden.device)
        return OutputLoss(loss, tokens, correct, support)

    def extra_repr(self) -> str:
        """Sizes and alpha, for printing."""
        vocab_size, hidden_size = self.weight.shape
        return f"hidden_size={hidden_size}, vocab_size={vocab_size}, alpha={self.alpha}"
