"""The output layer: from decoder states to scores, log-probabilities, the support, or the loss.

`OutputLayer` is the module; `PreparedOutput` computes the same in a search, `LinearLoss` the loss.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from onmt_entmax import errors
from onmt_entmax.nn.bf16_filter import find_by_bfloat16
from onmt_entmax.nn.linear_loss import LinearLoss
from onmt_entmax.nn.products import PreparedWeight
from onmt_entmax.nn.support import Distribution, Support, join_supports, short_form
from onmt_entmax.sparse import log_entmax
from onmt_entmax.sparse.arguments import valid_alpha

# Scores in a chunk of a search's rows: below 32 MB, the allocator reuses the memory.
_SEARCH_SCORES = 1 << 22
# When a search filters tokens by bfloat16 products (see `bf16_filter`): a step of at least `_MANY`
# rows has a first group of `_FIRST` rows, which is not filtered, and a group is filtered if the
# supports of the group before have at most `_FEW` tokens on average. So the rows of a step alone
# decide, not earlier steps. With 18,000 tokens and 320 rows, the layer takes 0.69 to 0.74 of the
# time with supports of 2 to 5 tokens, and 0.95 to 1.05 with 20 and more, where filtering all rows
# would take 1.4 to 1.55.
_MANY = 128
_FIRST = 32
_FEW = 6


class OutputLoss(NamedTuple):
    """Loss and counts of a batch: 0-dim tensors, of which only ``loss`` has a graph.

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
        hidden_size: of the decoder's states.
        vocab_size: number of tokens.
        alpha: a number >= 1; 1 is softmax.

    Attributes:
        prior: ``(vocab,)`` distribution that label smoothing mixes in; None is uniform.
    """

    prior: Tensor | None

    def __init__(self, hidden_size: int, vocab_size: int, alpha: float = 1.5) -> None:
        super().__init__()
        self.alpha = float(valid_alpha(alpha))
        self.weight = nn.Parameter(torch.empty(vocab_size, hidden_size))
        self.bias = nn.Parameter(torch.empty(vocab_size))
        self.register_buffer("prior", None, persistent=False)
        # As `torch.nn.Linear` does.
        bound = 1 / math.sqrt(max(hidden_size, 1))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def scores(self, hidden: Tensor) -> Tensor:
        """Return scores ``(..., vocab)``, in the weights' type, of hidden ``(..., hidden)``."""
        with torch.autocast(hidden.device.type, enabled=False):
            return functional.linear(hidden.to(self.weight.dtype), self.weight, self.bias)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Return log-probabilities ``(..., vocab)``, -inf outside the support."""
        return log_entmax(self.scores(hidden), self.alpha)

    @torch._disable_dynamo
    def loss(
        self, hidden: Tensor, target: Tensor, ignore_index: int, label_smoothing: float = 0.0
    ) -> OutputLoss:
        """Return the summed loss of ``target`` ``(N,)`` int64 given ``hidden`` ``(N, hidden)``.

        Equals ``entmax_loss`` of :meth:`scores` with reduction "sum", but never holds the scores of
        all rows, and has no gradients of gradients (RuntimeError). `torch.compile` leaves it out of
        its graphs (and refuses it with ``fullgraph=True``); CUDA graphs can record it.

        Raises:
            ValueError: if the shapes do not fit, label_smoothing is not in [0, 1], the weights have
                16 bits, or, on a CPU only, a target is not in the vocabulary or a row of scores is
                -inf everywhere. A GPU checks no values, to avoid a synchronisation.
        """
        self._refuse_wrong_arguments(hidden, target, label_smoothing)
        counted = target != ignore_index
        if hidden.device.type == "cpu":
            kept = counted.nonzero().squeeze(1)
            if len(kept) < len(target):
                hidden, target, counted = hidden[kept], target[kept], counted[kept]
            self._refuse_unknown_targets(target)
        else:  # ignored rows keep their place, so that no shape depends on a value
            hidden = hidden.masked_fill(~counted.unsqueeze(1), 0)
            target = target.masked_fill(~counted, 0)
        with torch.autocast(hidden.device.type, enabled=False):
            loss, counts = LinearLoss.apply(
                hidden.to(self.weight.dtype),
                self.weight,
                self.bias,
                target,
                counted,
                self.alpha,
                float(label_smoothing),
                self._spread(label_smoothing),
            )
        return OutputLoss(loss, *counts.unbind())

    def _refuse_wrong_arguments(
        self, hidden: Tensor, target: Tensor, label_smoothing: float
    ) -> None:
        """Raise a ValueError for weights, a smoothing or shapes that the loss does not take."""
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
        """Raise a ValueError if a target is not in the vocabulary."""
        vocab = len(self.weight)
        if len(target) and not 0 <= int(target.min()) <= int(target.max()) < vocab:
            raise ValueError(
                f"a target is not in the vocabulary of {errors.counted(vocab, 'token')}: "
                f"smallest {int(target.min())}, largest {int(target.max())}"
            )

    def _spread(self, label_smoothing: float) -> Tensor | None:
        """Return what smoothing adds to the target probabilities, ``(vocab,)``."""
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


class PreparedOutput:
    """An output layer prepared for the steps of a search; later changes of the weights are ignored.

    Args:
        weight: ``(vocabulary, hidden)``.
        bias: ``(vocabulary,)``.
        alpha: a number >= 1.
    """

    @torch.inference_mode()
    def __init__(self, weight: Tensor, bias: Tensor, alpha: float) -> None:
        self._rows, self._alpha = max(_SEARCH_SCORES // max(len(weight), 1), 1), alpha
        self._scores = PreparedWeight(weight, bias)
        self._find = find_by_bfloat16(weight, bias, alpha)

    @torch.inference_mode()
    def __call__(self, hidden: Tensor) -> Distribution:
        """Return log-probabilities of the next token given hidden ``(rows, hidden)``.

        The result is a `Support` if alpha is above 1 and the supports are small, else a tensor.
        """
        parts: list[Distribution] = []
        are_few = False  # whether the supports of the group before are small
        for rows in self._groups(hidden):
            part: Distribution | None = None
            if self._find is not None and are_few:
                part = self._find(rows)
            if part is None:
                part = self._distribution(rows)
            are_few = isinstance(part, Support) and len(part.row) <= _FEW * part.rows
            parts.append(part)
        supports = [part for part in parts if isinstance(part, Support)]
        if len(supports) == len(parts):
            return join_supports(supports)
        return torch.cat([part.dense() if isinstance(part, Support) else part for part in parts])

    def _groups(self, hidden: Tensor) -> list[Tensor]:
        """Return the rows whose scores are computed together."""
        if self._find is not None and len(hidden) >= _MANY:
            return [hidden[:_FIRST], *hidden[_FIRST:].split(self._rows)]
        return list(hidden.split(self._rows))

    def _distribution(self, rows: Tensor) -> Distribution:
        """Return the log-probabilities of rows from all scores."""
        log_probs = log_entmax(self._scores(rows), self._alpha)
        return short_form(log_probs) if self._alpha > 1 else log_probs
