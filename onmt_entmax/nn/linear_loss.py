"""The training loss of the output layer: scores exist for one group of rows at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from onmt_entmax.nn.bf16_filter import Bf16Filter, is_worthwhile, scores_at
from onmt_entmax.nn.products import product, weight_gradient
from onmt_entmax.sparse.autograd import all_probabilities
from onmt_entmax.sparse.backends import backend_for
from onmt_entmax.sparse.candidates import Candidates, nonzero
from onmt_entmax.sparse.conjugate import Conjugate, row_groups

# Scores in a group of rows. It has at least so many rows, since each group reads all weights once.
_GROUP_SCORES = 1 << 21
_GROUP_ROWS = 128
# The loss filters the next group if this one's supports are at most so large on average, and if
# enough rows are left to pay for preparing the filter.
_MOST_FILTERED_SUPPORT = 24
_LEAST_FILTERED_ROWS = 640
# Mean share of the vocabulary in a group's supports below which sparse products beat dense ones.
_SPARSE_BELOW = 1 / 12


class LinearLoss(Function):
    """Summed loss of a linear layer's scores as one autograd node; see :meth:`OutputLayer.loss`.

    ``apply(hidden, weight, bias, target, alpha, smoothing, spread)``, without ignored targets;
    ``spread`` ``(vocab,)`` is what smoothing adds to each token's target probability, or None.
    Returns the loss, the number of targets with the largest score, and the number of nonzero
    probabilities.

    Scores are computed for one group of rows at a time; only the support is kept of them. The
    gradient in the scores is zero outside the support (and the target), so the gradients of states
    and weights are sparse products. Rows with large supports take dense products at once, while
    their scores exist.
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
        spread: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        needs = any(ctx.needs_input_grad[:3])
        gathered = _Gathered(hidden, weight, bias, needs)
        terms = _Terms(alpha, smoothing, spread)
        loss = hidden.new_zeros(())
        correct, support = (torch.zeros((), dtype=torch.int64, device=hidden.device),) * 2
        may_filter, bf16_filter = is_worthwhile(weight, alpha), None
        groups = list(row_groups(0, len(hidden), len(weight), _GROUP_SCORES, _GROUP_ROWS))
        for begin, end in groups:
            chunk, found = slice(begin, end), None
            # Groups of one size only: oneDNN compiles a program for each size.
            if bf16_filter is not None and end - begin == groups[0][1]:
                found = bf16_filter.candidates(hidden[chunk])
                may_filter = found is not None
            if found is None:
                more, right, members = _group_loss(gathered, target[chunk], terms, begin)
            else:
                more, right, members = _filtered_loss(gathered, target[chunk], terms, begin, found)
            loss, correct, support = loss + more, correct + right, support + members
            if not may_filter or int(members) > _MOST_FILTERED_SUPPORT * (end - begin):
                bf16_filter = None
            elif bf16_filter is None and len(hidden) - end >= _LEAST_FILTERED_ROWS:
                bf16_filter = Bf16Filter(weight, bias, alpha)
        ctx.smoothing = smoothing
        if needs:
            dense = gathered.hidden_grad, gathered.weight_grad, gathered.bias_grad
            ctx.save_for_backward(hidden, weight, target, spread, *dense, *gathered.sparse())
        ctx.mark_non_differentiable(correct, support)
        return loss, correct, support

    @staticmethod
    def backward(
        ctx: Any, gradient: Tensor, *unused: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, None, None, None, None]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "OutputLayer.loss has no gradients of gradients (create_graph=True): "
                "use entmax_loss(layer.scores(hidden), target) instead"
            )
        hidden, weight, target, spread, of_hidden, of_weight, of_bias, *entries = ctx.saved_tensors
        rows, vocab = len(hidden), len(weight)
        sparse = _Sparse(*entries)
        sparse = sparse._replace(value=sparse.value * gradient)
        own = gradient * (ctx.smoothing - 1)
        hidden_grad = _rows_times(sparse, weight, rows).addcmul_(weight[target], own)
        columns = _Sparse(
            torch.cat([sparse.column, target]),
            torch.cat([sparse.row, torch.arange(rows, device=target.device)]),
            torch.cat([sparse.value, own.expand(rows)]),
        )
        bias_grad = (of_bias * gradient).index_add_(0, columns.row, columns.value)
        order = columns.row.argsort()
        weight_grad = _rows_times(_Sparse(*(part[order] for part in columns)), hidden, vocab)
        if of_weight is not None:
            hidden_grad.addcmul_(of_hidden, gradient)
            weight_grad.addcmul_(of_weight, gradient)
        if spread is not None:
            spread = spread * gradient
            hidden_grad -= spread @ weight
            weight_grad.addr_(spread, hidden.sum(0), alpha=-1)
            bias_grad -= spread * rows
        return hidden_grad, weight_grad, bias_grad, *[None] * 4


class _Sparse(NamedTuple):
    """Entries ``(k,)`` of a sparse matrix, ordered by row; row and column are int64."""

    row: Tensor
    column: Tensor
    value: Tensor


class _Terms(NamedTuple):
    """The loss's parameters, see `LinearLoss`."""

    alpha: float
    smoothing: float
    spread: Tensor | None


def _group_loss(
    gathered: _Gathered, target: Tensor, terms: _Terms, begin: int
) -> tuple[Tensor, Tensor, int | Tensor]:
    """Return loss, correct targets and support size of the group of rows from ``begin`` on.

    ``gathered`` receives what their gradient needs.
    """
    hidden = gathered.hidden[begin : begin + len(target)]
    scores = product(hidden, gathered.weight, gathered.bias)
    own = scores.gather(1, target.unsqueeze(1))
    backend = backend_for(scores, terms.alpha)
    solved = backend.conjugate(scores, terms.alpha, sparse_part=_SPARSE_BELOW)
    correct = (own == solved.maxima).sum()
    loss = _sum_of_losses(solved, own, terms.smoothing)
    if terms.spread is not None:
        loss -= scores.sum(0) @ terms.spread
    return loss, correct, gathered.add(scores, solved, terms.alpha, begin)


def _filtered_loss(
    gathered: _Gathered, target: Tensor, terms: _Terms, begin: int, found: Candidates
) -> tuple[Tensor, Tensor, int]:
    """Return the same as `_group_loss`, given only the candidates' scores."""
    hidden = gathered.hidden[begin : begin + len(target)]
    weight, bias = gathered.weight, gathered.bias
    own = scores_at(hidden, weight, bias, torch.arange(len(target)), target)
    # `sparse_part` 0 hints that no entries are needed.
    solved = backend_for(found.scores, terms.alpha).conjugate(
        found.scores, terms.alpha, sparse_part=0.0
    )
    probability = all_probabilities(found.scores, terms.alpha, solved)
    loss = _sum_of_losses(solved, own.unsqueeze(1), terms.smoothing)
    if terms.spread is not None:
        loss -= hidden.sum(0) @ (terms.spread @ weight) + len(target) * (bias @ terms.spread)
    value = probability.view(-1)[found.slot]
    inside = value.nonzero().squeeze(1)
    row = found.row[inside]
    gathered.add_entries(row, found.position[inside] - row * len(weight), value[inside], begin)
    return loss, (own == solved.maxima.squeeze(1)).sum(), len(inside)


def _sum_of_losses(solved: Conjugate, own: Tensor, smoothing: float) -> Tensor:
    """Return the summed loss without the ``spread`` term; ``own`` ``(rows, 1)``: target scores."""
    logit_margins = solved.maxima - own  # small differences first: they keep their digits
    loss = (solved.shifted + (1 - smoothing) * logit_margins.squeeze(1)).sum()
    return loss + smoothing * solved.maxima.sum() if smoothing else loss


class _Gathered:
    """Collects the parts of the gradient of `LinearLoss` over groups of rows.

    Attributes:
        hidden: states ``(rows, hidden)``.
        weight: ``(vocab, hidden)``.
        bias: ``(vocab,)``.
        hidden_grad: from the dense rows, without the targets' part; None until a row is dense.
        weight_grad: likewise.
        bias_grad: likewise, but zeros.
    """

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor, needed: bool) -> None:
        self.hidden, self.weight, self.bias, self._needed = hidden, weight, bias, needed
        self._sparse: list[_Sparse] = []
        self.hidden_grad: Tensor | None = None
        self.weight_grad: Tensor | None = None
        self.bias_grad = hidden.new_zeros(len(weight))

    def sparse(self) -> _Sparse:
        """Return the entries of all sparse rows, ordered by row."""
        nowhere = torch.empty(0, dtype=torch.int64, device=self.hidden.device)
        none = _Sparse(nowhere, nowhere, self.hidden.new_empty(0))
        whole = _Sparse(*(torch.cat(p) for p in zip(none, *self._sparse, strict=True)))
        if bool((whole.row.diff() < 0).any()):
            # `add` appends the sparse rows of a group before its other rows with few entries.
            order = whole.row.argsort(stable=True)
            whole = _Sparse(*(part[order] for part in whole))
        return whole

    def add(self, scores: Tensor, solved: Conjugate, alpha: float, begin: int) -> int | Tensor:
        """Add solved rows, the first of which is ``begin``; overwrites scores ``(rows, vocab)``.

        Returns:
            The number of their nonzero probabilities.
        """
        vocab = scores.shape[1]
        position, row, value = solved.entries
        support: int | Tensor = len(row)
        self.add_entries(row, position - row * vocab, value, begin)
        for first, last in solved.dense:
            rows = slice(first, last)
            if alpha == 1 and not self._needed:
                support += (last - first) * vocab
                continue
            given = (scores[rows], alpha, solved.maxima[rows], solved.threshold[rows], scores[rows])
            backend_for(*given).write_probabilities(*given)
            count = (last - first) * vocab if alpha == 1 else int(scores[rows].count_nonzero())
            support += count
            if self._needed:
                self._add_rows(scores[rows], count, begin + first)
        return support

    def add_entries(self, row: Tensor, column: Tensor, value: Tensor, begin: int) -> None:
        """Add probabilities ``(k,)``; ``row`` counts from ``begin``."""
        if self._needed and len(row):
            self._sparse.append(_Sparse(row + begin, column, value))

    def _add_rows(self, probability: Tensor, count: int, begin: int) -> None:
        """Add probabilities ``(rows, vocab)`` with ``count`` nonzeros, from row ``begin`` on."""
        vocab = probability.shape[1]
        if count <= _SPARSE_BELOW * probability.numel():
            position = nonzero(probability.to(torch.bool))
            row = position // vocab
            value = probability.flatten()[position]
            self.add_entries(row, position - row * vocab, value, begin)
            return
        rows = slice(begin, begin + len(probability))
        gradient = weight_gradient(probability, self.hidden[rows])
        if self.hidden_grad is None or self.weight_grad is None:
            self.hidden_grad, self.weight_grad = torch.zeros_like(self.hidden), gradient
        else:
            self.weight_grad += gradient
        self.hidden_grad[rows] = product(probability, self.weight.t())
        self.bias_grad += probability.sum(0)


def _rows_times(sparse: _Sparse, matrix: Tensor, rows: int) -> Tensor:
    """Return a sparse matrix ``(rows, n)``, ordered by row, times ``(n, d)``: ``(rows, d)``."""
    counts = torch.bincount(sparse.row, minlength=rows)
    return functional.embedding_bag(
        sparse.column,
        matrix,
        counts.cumsum(0) - counts,
        mode="sum",
        per_sample_weights=sparse.value,
    )
