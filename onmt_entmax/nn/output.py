"""The output layer: from decoder states to scores, log-probabilities, the support, or the loss.

`OutputLayer` is the module; `PreparedOutput` computes the same in a search. Of a sparse output, the
scores of one group of rows at a time are in memory.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from onmt_entmax.errors import counted
from onmt_entmax.nn.bf16_filter import Bf16Filter, is_worthwhile
from onmt_entmax.nn.linear_loss import LinearLoss
from onmt_entmax.nn.products import PreparedWeight
from onmt_entmax.nn.support import (
    Distribution,
    Support,
    as_support,
    find_support,
    join_supports,
    sent_support,
)
from onmt_entmax.sparse.arguments import valid_alpha
from onmt_entmax.sparse.candidates import Candidates
from onmt_entmax.sparse.conjugate import row_groups
from onmt_entmax.sparse.functional import log_entmax
from onmt_entmax.sparse.solvers import checked_softmax

# Scores in a group of a search's rows: below 32 MB, the allocator reuses the memory.
_SEARCH_GROUP_SCORES = 1 << 22
# Groups of a search that skip the bfloat16 filter after it found too many candidates.
_FILTER_PAUSE = 32


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
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise weight and bias as ``torch.nn.Linear`` does."""
        bound = 1 / math.sqrt(max(self.weight.shape[1], 1))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def scores(self, hidden: Tensor) -> Tensor:
        """Return scores ``(..., vocab)``, in the weights' type, of hidden ``(..., hidden)``."""
        with torch.autocast(hidden.device.type, enabled=False):
            return functional.linear(hidden.to(self.weight.dtype), self.weight, self.bias)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Return log-probabilities ``(..., vocab)``, -inf outside the support."""
        return log_entmax(self.scores(hidden), self.alpha)

    def spread(self, label_smoothing: float) -> Tensor | None:
        """Return what smoothing adds to the target probability of each token ``(vocab,)``."""
        if label_smoothing == 0:
            return None
        vocab = len(self.weight)
        even = self.weight.new_full((vocab,), 1 / vocab) if self.prior is None else self.prior
        return label_smoothing * even

    @torch._disable_dynamo
    def loss(
        self, hidden: Tensor, target: Tensor, ignore_index: int, label_smoothing: float = 0.0
    ) -> OutputLoss:
        """Return the summed loss of ``target`` ``(N,)`` int64 given ``hidden`` ``(N, hidden)``.

        Equals ``entmax_loss`` of :meth:`scores` with reduction "sum", but never holds the scores of
        all rows, and has no gradients of gradients (RuntimeError). It depends on the data, so
        `torch.compile` leaves it out of its graphs (and refuses it with ``fullgraph=True``).

        Raises:
            ValueError: if the shapes do not fit, a target is not in the vocabulary,
                label_smoothing is not in [0, 1], a row of scores is -inf everywhere, or the
                weights have 16 bits.
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
                f"a target is not in the vocabulary of {counted(vocab, 'token')}: smallest "
                f"{int(target.min())}, largest {int(target.max())}"
            )
        with torch.autocast(hidden.device.type, enabled=False):
            loss, correct, support = LinearLoss.apply(
                hidden.to(self.weight.dtype),
                self.weight,
                self.bias,
                target,
                self.alpha,
                float(label_smoothing),
                self.spread(label_smoothing),
            )
        tokens = torch.tensor(len(target), device=hidden.device)
        return OutputLoss(loss, tokens, correct, support)

    def extra_repr(self) -> str:
        """Return sizes and alpha, for printing."""
        vocab_size, hidden_size = self.weight.shape
        return f"hidden_size={hidden_size}, vocab_size={vocab_size}, alpha={self.alpha}"


class PreparedOutput:
    """An output layer prepared for the steps of a search; later changes of the weights are ignored.

    A trained model leaves a few tokens of a large vocabulary in the support, and a search needs no
    others: their logarithms are never computed.

    Args:
        weight: ``(vocabulary, hidden)``.
        bias: ``(vocabulary,)``.
        alpha: a number >= 1.
    """

    @torch.inference_mode()
    def __init__(self, weight: Tensor, bias: Tensor, alpha: float) -> None:
        self._vocabulary, self._alpha = len(weight), alpha
        self._scores = PreparedWeight(weight, bias)
        self._finds_support = weight.device.type == "cpu" and alpha > 1
        self._filter = Bf16Filter(weight, bias, alpha) if is_worthwhile(weight, alpha) else None
        self._pause = 0

    def begin(self) -> None:
        """Reset, so that results do not depend on earlier batches.

        Filtered and unfiltered scores differ in their last digits.
        """
        self._pause = 0

    @torch.inference_mode()
    def __call__(self, hidden: Tensor) -> Distribution:
        """Return log-probabilities of the next token given hidden ``(rows, hidden)``.

        The result is a `Support`, on the CPU, where that is quicker to find, else a tensor.
        """
        groups = list(row_groups(0, len(hidden), self._vocabulary, _SEARCH_GROUP_SCORES))
        if self._alpha == 1 and len(groups) > 1:
            whole = hidden.new_empty(len(hidden), self._vocabulary)
            for begin, end in groups:
                scores = self._scores(hidden[begin:end])
                checked_softmax(torch.log_softmax(scores, -1, out=whole[begin:end]), scores)
            return whole
        if not self._finds_support:
            log_probs = log_entmax(self._scores(hidden), self._alpha)
            return log_probs if self._alpha == 1 else sent_support(log_probs)
        if not groups:
            return as_support(self._scores(hidden))
        parts = [self._group(hidden[begin:end]) for begin, end in groups]
        supports = [part for part in parts if isinstance(part, Support)]
        if len(supports) == len(parts):
            return join_supports(supports)
        rows = [part.dense() if isinstance(part, Support) else part for part in parts]
        return rows[0] if len(rows) == 1 else torch.cat(rows)

    def _group(self, hidden: Tensor) -> Distribution:
        """Return the log-probabilities of one group of rows."""
        if self._filter is not None and self._pause == 0:
            candidates = self._filter.candidates(hidden)
            if candidates is not None:
                return _among_candidates(candidates, self._alpha, self._vocabulary)
            self._pause = _FILTER_PAUSE
        self._pause = max(self._pause - 1, 0)
        scores = self._scores(hidden)
        found = find_support(scores, self._alpha)
        return log_entmax(scores, self._alpha) if found is None else found


def _among_candidates(found: Candidates, alpha: float, vocabulary: int) -> Support:
    """Return the support, given the scores of all tokens that may be in it."""
    values = log_entmax(found.scores, alpha).view(-1)[found.slot]
    inside = (values != -torch.inf).nonzero().squeeze(1)
    position, row, values = (x[inside] for x in (found.position, found.row, values))
    return Support(len(found.scores), vocabulary, row, position - row * vocabulary, values)
