"""The output layer: from decoder states to scores, log-probabilities, or the loss.

`build_model` makes one for each model. `LinearLoss` computes the loss without ever holding all
scores; in a search, `PreparedOutput` of `prepared_output.py` computes the log-probabilities.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from onmt_entmax import errors
from onmt_entmax.nn.linear_loss import LinearLoss, LossTargets
from onmt_entmax.sparse import log_entmax
from onmt_entmax.sparse.arguments import check_alpha_number


class OutputLoss(NamedTuple):
    """Loss and counts of a batch: 0-dim tensors. Only ``loss`` has a graph.

    Attributes:
        loss: sum over the targets that are not ignored, in nats.
        tokens: number of targets that are not ignored.
        correct: how many of them have the largest score.
        support: number of nonzero probabilities, summed over their rows.
    """

    loss: Tensor
    tokens: Tensor
    correct: Tensor
    support: Tensor


class OutputLayer(nn.Module):
    """A linear layer onto the vocabulary, followed by entmax or its loss.

    To tie the weights: ``output.weight = embedding.weight``.

    Args:
        hidden_size: size of the decoder's states.
        vocab_size: number of tokens.
        alpha: a number >= 1; 1 is softmax.

    Attributes:
        prior: ``(vocab,)`` distribution that label smoothing mixes in; None is uniform.
    """

    prior: Tensor | None

    def __init__(self, hidden_size: int, vocab_size: int, alpha: float = 1.5) -> None:
        super().__init__()
        check_alpha_number(alpha)
        self.alpha = float(alpha)
        self.weight = nn.Parameter(torch.empty(vocab_size, hidden_size))
        self.bias = nn.Parameter(torch.empty(vocab_size))
        self.register_buffer("prior", None, persistent=False)
        # As `torch.nn.Linear` does.
        bound = 1 / math.sqrt(max(hidden_size, 1))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def scores(self, hidden: Tensor) -> Tensor:
        """Return the scores of states ``(..., hidden)``: ``(..., vocab)``, in the weights' type."""
        with torch.autocast(hidden.device.type, enabled=False):
            return functional.linear(hidden.to(self.weight.dtype), self.weight, self.bias)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Return log-probabilities ``(..., vocab)`` given states ``(..., hidden)``.

        They are -inf outside the support.
        """
        return log_entmax(self.scores(hidden), self.alpha)

    # The public `torch.compiler.disable` does the same, but imports the compiler: seconds.
    @torch._disable_dynamo
    def loss(
        self, hidden: Tensor, target: Tensor, ignore_index: int, label_smoothing: float = 0.0
    ) -> OutputLoss:
        """Return the summed loss of the targets given the decoder's states.

        It equals ``entmax_loss`` of :meth:`scores` with reduction "sum", but never holds the scores
        of all rows, and has no second derivatives (RuntimeError). `torch.compile` leaves it out of
        its graphs, and refuses it with ``fullgraph=True``; CUDA graphs can record it.

        Args:
            hidden: ``(N, hidden)``.
            target: ``(N,)`` int64.
            ignore_index: rows with this target add nothing to the loss and the counts.
            label_smoothing: the part of each target, from 0 to 1, that is spread over the
                vocabulary in proportion to `prior`.

        Raises:
            ValueError: if the shapes do not fit, label_smoothing is not in [0, 1], the weights have
                16 bits, or, on a CPU only, a target is not in the vocabulary or a row of scores is
                -inf everywhere. A GPU checks no values, to avoid a synchronisation.
        """
        self._refuse_wrong_arguments(hidden, target, label_smoothing)
        is_counted = target != ignore_index
        if hidden.device.type == "cpu":
            rows = is_counted.nonzero().squeeze(1)
            if len(rows) < len(target):
                hidden, target, is_counted = hidden[rows], target[rows], is_counted[rows]
            self._refuse_unknown_targets(target)
        else:  # ignored rows keep their place, so that no shape depends on a value
            hidden = hidden.masked_fill(~is_counted.unsqueeze(1), 0)
            target = target.masked_fill(~is_counted, 0)
        targets = LossTargets(
            target, is_counted, float(label_smoothing), self._spread(label_smoothing)
        )
        with torch.autocast(hidden.device.type, enabled=False):
            loss, counts = LinearLoss.apply(
                hidden.to(self.weight.dtype), self.weight, self.bias, targets, self.alpha
            )
        return OutputLoss(loss, *counts.unbind())

    def _refuse_wrong_arguments(
        self, hidden: Tensor, target: Tensor, label_smoothing: float
    ) -> None:
        """Check the weights and the arguments of :meth:`loss` by their types and shapes.

        Raises:
            ValueError: if the loss does not take them.
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

    def _refuse_unknown_targets(self, target: Tensor) -> None:
        """Check that targets ``(N,)`` are in the vocabulary.

        Raises:
            ValueError: if one is not.
        """
        vocab = len(self.weight)
        if len(target) and not 0 <= int(target.min()) <= int(target.max()) < vocab:
            raise ValueError(
                f"a target is not in the vocabulary of {errors.counted(vocab, 'token')}: "
                f"smallest {int(target.min())}, largest {int(target.max())}"
            )

    def _spread(self, label_smoothing: float) -> Tensor | None:
        """Return the probabilities that smoothing adds to each target, ``(vocab,)``, or None."""
        if not label_smoothing:
            return None
        if self.prior is not None:
            return label_smoothing * self.prior
        vocab = len(self.weight)
        return label_smoothing * self.weight.new_full((vocab,), 1 / vocab)

    def extra_repr(self) -> str:
        """Return sizes and alpha, for printing."""
        vocab_size, hidden_size = self.weight.shape
        return f"hidden_size={hidden_size}, vocab_size={vocab_size}, alpha={self.alpha}"
