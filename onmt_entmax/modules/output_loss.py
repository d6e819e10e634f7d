"""The loss of an output layer as one autograd function with the linear layer.

Scores are made for some rows at a time, in memory that is used again; what stays of them is the
support. Since the gradient in the scores is 0 outside it (but for the target), the gradients of
states and weights are sparse products. Rows whose support is large take the dense products at once,
while their scores are still there.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from onmt_entmax.mappings.conjugate import (
    WHOLE,
    Conjugate,
    conjugate,
    row_groups,
    write_probabilities,
)
from onmt_entmax.mappings.selection import Candidates, nonzero
from onmt_entmax.modules.output_screen import Screen, pays, scores_at
from onmt_entmax.modules.recurrence.products import product, weight_gradient

# Scores that are held at once, but at least so many rows, for which the weights are read once; and
# the part of the vocabulary in the support (on average over these rows) below which sparse products
# are faster than dense ones.
_SCORES = 1 << 21
_ROWS = 128
_SPARSE_BELOW = 1 / 12
# Most members of a support, on average over the last group of rows, for the next to be screened;
# rows that must be left for the preparation to pay.
_SCREENED = 24
_SCREENED_ROWS = 640


class _Sparse(NamedTuple):
    """Entries of a sparse matrix (rows, vocab), by row: all three (k,), the first two int64."""

    row: Tensor
    column: Tensor
    value: Tensor


class LinearLoss(Function):
    """Sum of the losses of a linear layer's scores; see :meth:`OutputLayer.loss`.

    ``apply(hidden, weight, bias, target, alpha, smoothing, spread)`` with every target a row that
    counts, and in ``spread`` (vocab,) what smoothing gives to each token. Returns the loss, and how
    many targets have the largest score and how many probabilities are not zero.
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
        may_screen, screen = pays(weight, alpha), None
        groups = list(row_groups(0, len(hidden), len(weight), _SCORES, _ROWS))
        for begin, end in groups:
            chunk, found = slice(begin, end), None
            # Groups of one size only: oneDNN makes a program for each.
            if screen is not None and end - begin == groups[0][1]:
                found = screen.candidates(hidden[chunk])
                may_screen = found is not None
            if found is None:
                more, right, members = _solve(gathered, target[chunk], terms, begin)
            else:
                more, right, members = _solve_found(gathered, target[chunk], terms, begin, found)
            loss, correct, support = loss + more, correct + right, support + members
            if not may_screen or int(members) > _SCREENED * (end - begin):
                screen = None
            elif screen is None and len(hidden) - end >= _SCREENED_ROWS:
                screen = Screen(weight, bias, alpha)
        ctx.smoothing = smoothing
        if needs:
            saved = (hidden, weight, target, spread, *gathered.dense, *gathered.sparse())
            ctx.save_for_backward(*saved)
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
        hidden, weight, target, spread, *dense = ctx.saved_tensors
        of_hidden, of_weight, of_bias, *entries = dense
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
        if of_weight.numel():
            hidden_grad.addcmul_(of_hidden, gradient)
            weight_grad.addcmul_(of_weight, gradient)
        if spread is not None:
            spread = spread * gradient
            hidden_grad -= spread @ weight
            weight_grad.addr_(spread, hidden.sum(0), alpha=-1)
            bias_grad -= spread * rows
        return hidden_grad, weight_grad, bias_grad, *[None] * 4


class _Terms(NamedTuple):
    """What the loss is made of, as the arguments of :class:`LinearLoss`."""

    alpha: float
    smoothing: float
    spread: Tensor | None


def _solve(
    gathered: "_Gathered", target: Tensor, terms: _Terms, begin: int
) -> tuple[Tensor, Tensor, int | Tensor]:
    """Loss, correct targets and support of the rows from ``begin`` on; nothing of their size stays.

    What their gradient needs is taken in by ``gathered``.
    """
    hidden = gathered.hidden[begin : begin + len(target)]
    scores = product(hidden, gathered.weight, gathered.bias)
    own = scores.gather(1, target.unsqueeze(1))
    solved = conjugate(scores, terms.alpha, part=_SPARSE_BELOW)
    correct = (own == solved.maxima).sum()
    loss = _loss_of(solved, own, terms.smoothing)
    if terms.spread is not None:
        loss -= scores.sum(0) @ terms.spread
    return loss, correct, gathered.add(scores, solved, terms.alpha, begin)


def _solve_found(
    gathered: "_Gathered", target: Tensor, terms: _Terms, begin: int, found: Candidates
) -> tuple[Tensor, Tensor, int]:
    """As :func:`_solve`, of rows of which the candidates are known and no other score."""
    hidden, weight, bias = (
        gathered.hidden[begin : begin + len(target)],
        gathered.weight,
        gathered.bias,
    )
    rows = torch.arange(len(target))
    own = scores_at(hidden, weight, bias, rows, target)
    solved = conjugate(found.scores, terms.alpha, part=0.0)  # no entries needed, which is a hint
    probability = found.scores.new_zeros(found.scores.shape)
    entries = solved.entries
    probability.view(-1).scatter_(0, entries.position, entries.probability)
    for first, last in solved.dense:
        part = slice(first, last)
        write_probabilities(
            found.scores[part],
            terms.alpha,
            solved.maxima[part],
            solved.threshold[part],
            probability[part],
        )
    loss = _loss_of(solved, own.unsqueeze(1), terms.smoothing)
    if terms.spread is not None:
        loss -= hidden.sum(0) @ (terms.spread @ weight) + len(target) * (bias @ terms.spread)
    value = probability.view(-1)[found.slot]
    inside = value.nonzero().squeeze(1)
    row = found.row[inside]
    gathered.add_entries(row, found.position[inside] - row * len(weight), value[inside], begin)
    return loss, (own == solved.maxima.squeeze(1)).sum(), len(inside)


def _loss_of(solved: Conjugate, own: Tensor, smoothing: float) -> Tensor:
    """Sum of the losses of rows whose targets have the scores ``own`` (rows, 1), but for what is
    spread over the vocabulary."""
    leads = solved.maxima - own  # small differences first: they keep their digits
    loss = (solved.excess + (1 - smoothing) * leads.squeeze(1)).sum()
    return loss + smoothing * solved.maxima.sum() if smoothing else loss


class _Gathered:
    """What the gradient of :class:`LinearLoss` needs of the rows seen so far.

    Attributes:
        hidden: (rows, hidden) the states.
        weight: (vocab, hidden).
        bias: (vocab,).
        dense: the gradients in hidden, weight and bias from the dense rows, targets left out; the
            first two empty while there are no dense rows.
    """

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor, needed: bool) -> None:
        self.hidden, self.weight, self.bias, self._needed = hidden, weight, bias, needed
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
        position, row, value = solved.entries
        support: int | Tensor = len(row)
        self.add_entries(row, position - row * vocab, value, begin)
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

    def add_entries(self, row: Tensor, column: Tensor, value: Tensor, begin: int) -> None:
        """Take in probabilities (k,) of rows, counted from ``begin`` on."""
        if self._needed and len(row):
            self._sparse.append(_Sparse(row + begin, column, value))

    def _add_rows(self, probability: Tensor, count: int, begin: int) -> None:
        """Take in probabilities (rows, vocab) with so many nonzeros, of rows from ``begin`` on."""
        vocab = probability.shape[1]
        if count <= _SPARSE_BELOW * probability.numel():
            position = nonzero(probability.to(torch.bool))
            row = position // vocab
            value = probability.flatten()[position]
            self.add_entries(row, position - row * vocab, value, begin)
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
