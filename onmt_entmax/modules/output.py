"""The output layer: from hidden states to scores, log-probabilities, or the loss.

The loss is one step with the linear layer. Scores are made for some rows at a time, in a buffer
that is used again; what stays of them is the support. Since the gradient in the scores is 0 outside
it (but for the target), the gradients of states and weights are sparse products. Rows whose support
is large take the dense products at once, while their scores are still there.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional

from onmt_entmax.mappings import log_entmax
from onmt_entmax.mappings.conjugate import (
    WHOLE,
    Conjugate,
    conjugate,
    row_groups,
    write_probabilities,
)
from onmt_entmax.mappings.selection import nonzero
from onmt_entmax.modules.recurrence_products import product, weight_gradient

# Scores that are held at once, but at least so many rows, for which the weights are read once; and
# the part of the vocabulary in the support (on average over these rows) below which sparse products
# are faster than dense ones.
_SCORES = 1 << 21
_ROWS = 128
_SPARSE_BELOW = 1 / 24


class _Sparse(NamedTuple):
    """Entries of a sparse matrix (rows, vocab), by row: all three (k,), the first two int64."""

    row: Tensor
    column: Tensor
    value: Tensor


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

        As ``entmax_loss`` of :meth:`scores` with reduction "sum", without ever holding the scores
        of all rows. Gradients of gradients are refused with a RuntimeError.

        Raises:
            ValueError: if a target is not in the vocabulary, label_smoothing not in [0, 1], or a
                row of scores all -inf.
        """
        if not 0.0 <= label_smoothing <= 1.0:
            raise ValueError(f"label_smoothing must be between 0 and 1, got {label_smoothing}")
        vocab = len(self.weight)
        kept = (target != ignore_index).nonzero().squeeze(1)
        if len(kept) < len(target):
            hidden, target = hidden[kept], target[kept]
        if len(target) and not 0 <= int(target.min()) <= int(target.max()) < vocab:
            raise ValueError(
                f"a target is not in the vocabulary of {vocab} tokens: smallest "
                f"{int(target.min())}, largest {int(target.max())}"
            )
        with torch.autocast(hidden.device.type, enabled=False):
            loss, correct, support = _LinearLoss.apply(
                hidden.to(self.weight.dtype),
                self.weight,
                self.bias,
                target,
                self.alpha,
                float(label_smoothing),
            )
        tokens = torch.tensor(len(target), device=hidden.device)
        return OutputLoss(loss, tokens, correct, support)

    def extra_repr(self) -> str:
        """Sizes and alpha, for printing."""
        vocab_size, hidden_size = self.weight.shape
        return f"hidden_size={hidden_size}, vocab_size={vocab_size}, alpha={self.alpha}"


class _LinearLoss(Function):
    """Sum of the losses of a linear layer's scores; see :meth:`OutputLayer.loss`.

    ``apply(hidden, weight, bias, target, alpha, smoothing)`` with every target a row that counts.
    Returns the loss, and how many targets have the largest score and how many probabilities are
    not zero.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        target: Tensor,
        alpha: float,
        smoothing: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        needs = any(ctx.needs_input_grad[:3])
        gathered = _Gathered(hidden, weight, needs)
        loss = hidden.new_zeros(())
        correct, support = (torch.zeros((), dtype=torch.int64, device=hidden.device),) * 2
        for begin, end in row_groups(0, len(hidden), len(weight), _SCORES, _ROWS):
            more, right, members = _chunk(
                gathered, bias, target[begin:end], alpha, smoothing, begin
            )
            loss, correct, support = loss + more, correct + right, support + members
        ctx.smoothing = smoothing
        if needs:
            ctx.save_for_backward(hidden, weight, target, *gathered.dense, *gathered.sparse())
        ctx.mark_non_differentiable(correct, support)
        return loss, correct, support

    @staticmethod
    def backward(
        ctx: Any, gradient: Tensor, *unused: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "OutputLayer.loss has no gradients of gradients (create_graph=True): "
                "use entmax_loss(layer.scores(hidden), target) instead"
            )
        hidden, weight, target, of_hidden, of_weight, of_bias, *entries = ctx.saved_tensors
        rows, vocab = len(hidden), len(weight)
        sparse = _Sparse(*entries)
        sparse = sparse._replace(value=sparse.value * gradient)
        even, own = gradient * (ctx.smoothing / vocab), gradient * (ctx.smoothing - 1)
        hidden_grad = _rows_times(sparse, weight, rows).addcmul_(weight[target], own)
        columns = _Sparse(
            torch.cat([sparse.column, target]),
            torch.cat([sparse.row, torch.arange(rows, device=target.device)]),
            torch.cat([sparse.value, own.expand(rows)]),
        )
        bias_grad = (of_bias * gradient).index_add_(0, columns.row, columns.value)
        order = columns.row.argsort()
        weight_grad = _rows_times(_Sparse(*(part[order] for part in columns)), hidden, vocab)
        if of_weight.numel():
            hidden_grad.addcmul_(of_hidden, gradient)
            weight_grad.addcmul_(of_weight, gradient)
        if ctx.smoothing:
            hidden_grad -= even * weight.sum(0)
            weight_grad -= even * hidden.sum(0)
            bias_grad -= even * rows
        return hidden_grad, weight_grad, bias_grad, *[None] * 3


def _chunk(
    gathered: "_Gathered", bias: Tensor, target: Tensor, alpha: float, smoothing: float, begin: int
) -> tuple[Tensor, Tensor, int | Tensor]:
    """Loss, correct targets and support of the rows from ``begin`` on; nothing of their size stays.

    What their gradient needs is taken in by ``gathered``.
    """
    scores = product(gathered.hidden[begin : begin + len(target)], gathered.weight, bias)
    own = scores.gather(1, target.unsqueeze(1))
    solved = conjugate(scores, alpha)
    largest = scores.amax(1, True) if alpha == 1 else solved.maxima
    loss = (solved.value - (1 - smoothing) * own.squeeze(1)).sum()
    if smoothing > 0:
        loss -= scores.sum() * (smoothing / scores.shape[1])
    return loss, (own == largest).sum(), gathered.add(scores, solved, alpha, begin)


class _Gathered:
    """What the gradient of :class:`_LinearLoss` needs of the rows seen so far.

    Attributes:
        hidden: (rows, hidden) the states.
        weight: (vocab, hidden).
        dense: the gradients in hidden, weight and bias from the dense rows, targets left out; the
            first two empty while there are no dense rows.
    """

    def __init__(self, hidden: Tensor, weight: Tensor, needed: bool) -> None:
        self.hidden, self.weight, self._needed = hidden, weight, needed
        self._sparse: list[_Sparse] = []
        empty = hidden.new_empty(0)
        self.dense = [empty, empty, hidden.new_zeros(len(weight))]

    def sparse(self) -> _Sparse:
        """The entries of all sparse rows, by row."""
        nowhere = torch.empty(0, dtype=torch.int64, device=self.hidden.device)
        none = _Sparse(nowhere, nowhere, self.hidden.new_empty(0))
        whole = _Sparse(*(torch.cat(p) for p in zip(none, *self._sparse, strict=True)))
        if bool((whole.row.diff() < 0).any()):
            # Rows whose entries were found late, in a group with others, have to go back.
            order = whole.row.argsort(stable=True)
            whole = _Sparse(*(part[order] for part in whole))
        return whole

    def add(self, scores: Tensor, solved: Conjugate, alpha: float, begin: int) -> int | Tensor:
        """Take in solved rows from ``begin`` on; overwrites their scores (rows, vocab).

        Returns:
            How many of their probabilities are not zero.
        """
        vocab = scores.shape[1]
        support: int | Tensor = solved.entries.row.numel()
        if support and self._needed:
            position, row, value = solved.entries
            self._sparse.append(_Sparse(row + begin, position - row * vocab, value))
        for first, last in solved.dense:
            rows = slice(first, last)
            if alpha == 1 and not self._needed:
                support += (last - first) * vocab
                continue
            for a, b in row_groups(first, last, vocab, WHOLE):
                part = slice(a, b)
                write_probabilities(
                    scores[part], alpha, solved.maxima[part], solved.threshold[part], scores[part]
                )
            count = (last - first) * vocab if alpha == 1 else int(scores[rows].count_nonzero())
            support += count
            if self._needed:
                self._add_rows(scores[rows], count, begin + first)
        return support

    def _add_rows(self, probability: Tensor, count: int, begin: int) -> None:
        """Take in probabilities (rows, vocab) with so many nonzeros, of rows from ``begin`` on."""
        vocab = probability.shape[1]
        if count <= _SPARSE_BELOW * probability.numel():
            position = nonzero(probability.to(torch.bool))
            row = position // vocab
            value = probability.flatten()[position]
            self._sparse.append(_Sparse(row + begin, position - row * vocab, value))
            return
        rows = slice(begin, begin + len(probability))
        gradient = weight_gradient(probability, self.hidden[rows])
        if self.dense[0].numel():
            self.dense[1] += gradient
        else:
            self.dense[:2] = torch.zeros_like(self.hidden), gradient
        self.dense[0][rows] = product(probability, self.weight.t())
        self.dense[2] += probability.sum(0)


def _rows_times(sparse: _Sparse, matrix: Tensor, rows: int) -> Tensor:
    """The sparse matrix (rows, n), ordered by row, times a matrix (n, d): (rows, d)."""
    counts = torch.bincount(sparse.row, minlength=rows)
    return functional.embedding_bag(
        sparse.column,
        matrix,
        counts.cumsum(0) - counts,
        mode="sum",
        per_sample_weights=sparse.value,
    )
