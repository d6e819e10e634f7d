r"""The gradients of `LinearLoss`.

The symbols are those of `linear_loss`:

    H, h_r      the states (rows, hidden), and the state of row r; 0 in rows that do not count
    W           the weight, (vocab, hidden)
    c           (rows,), 1 in rows that count, and 0 in others
    p_r         the probabilities of row r, (vocab,)
    t_r, e_t    the target of row r, and the one-hot vector of a target t, (vocab,)
    q, epsilon  the probabilities (vocab,) that label smoothing adds to each target, and their sum

In a row that counts, the gradient with respect to the scores is :math:`p_r - y_r = G_r - q`, with
the target distribution :math:`y_r = (1 - \epsilon) e_{t_r} + q`, and
:math:`G_r = p_r - (1 - \epsilon) e_{t_r}`. So the gradients with respect to states, weight and bias
are

.. math::
    G W - c \, (W^\top q)^\top , \quad
    G^\top H - q \, (\textstyle\sum_r h_r)^\top , \quad
    G^\top c - q \textstyle\sum_r c_r .

(In rows that do not count, the first one has no meaning.) `LossGradients` computes the products
with G chunk by chunk, while G is in memory. If G has few nonzero entries, the products are sparse.
Then the entries of all chunks are kept, and the backward pass computes the gradient of the weight,
the largest one, from them: see `SavedGradients.scaled_weight_gradient`. The terms with q need no
scores, see `SpreadTerms`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.nn.products import product, weight_gradient
from onmt_entmax.nn.sparse_entries import SparseEntries


class LossGradients:
    """The gradients of `LinearLoss`, summed over chunks: call `add` for each, then `finish`.

    Args:
        hidden: H, ``(rows, hidden)``.
        weight: W, ``(vocab, hidden)``.
        bias: ``(vocab,)``.
        factors: c, ``(rows,)``.
    """

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor, factors: Tensor) -> None:
        self._hidden, self._weight, self._factors = hidden, weight, factors
        self._hidden_gradient = torch.empty_like(hidden)
        self._bias_gradient = torch.zeros_like(bias)
        # The part of the weight's gradient from chunks with dense products, (vocab, hidden).
        self._dense_weight_gradient: Tensor | None = None
        # The entries of G of chunks with sparse products. The first element, without entries, is
        # there because `cat` takes no empty list.
        none = hidden.new_zeros(0, dtype=torch.int64)
        self._entries = [SparseEntries(none, none, hidden.new_zeros(0))]

    def add(self, rows: slice, gradient: Tensor, entries: SparseEntries | None) -> None:
        """Add a chunk to the gradients; with sparse products, only to that of the states.

        Args:
            rows: the rows of the chunk.
            gradient: G, ``(rows, vocab)``.
            entries: the nonzero entries of G if they are few; None for dense products.
        """
        if entries is None:
            self._hidden_gradient[rows] = product(gradient, self._weight.t())
            part = weight_gradient(gradient, self._hidden[rows])
            dense = self._dense_weight_gradient
            self._dense_weight_gradient = part if dense is None else dense.add_(part)
            self._bias_gradient += self._factors[rows] @ gradient
        else:
            self._hidden_gradient[rows] = entries.times(self._weight, len(gradient))
            self._entries.append(entries._replace(row=entries.row + rows.start))

    def finish(self, terms: SpreadTerms | None) -> SavedGradients:
        """Complete the gradients of states and bias, and return what the backward pass needs.

        Args:
            terms: the terms with q; None without smoothing.
        """
        entries = SparseEntries(*map(torch.cat, zip(*self._entries, strict=True)))
        counted = entries.value * self._factors.index_select(0, entries.row)
        self._bias_gradient.index_add_(0, entries.column, counted)  # G^T c
        if terms is not None:
            self._hidden_gradient -= terms.weight_sum
            self._bias_gradient -= terms.row_count * terms.spread
        return SavedGradients(
            hidden_gradient=self._hidden_gradient,
            bias_gradient=self._bias_gradient,
            dense_weight_gradient=self._dense_weight_gradient,
            row=entries.row,
            column=entries.column,
            value=entries.value,
            hidden=self._hidden,
            state_sum=None if terms is None else terms.state_sum,
            spread=None if terms is None else terms.spread,
        )


class SpreadTerms(NamedTuple):
    """The terms with q in loss and gradients.

    The loss is linear in q and the scores, so the sum of the states is enough to compute them.
    """

    spread: Tensor
    """q, ``(vocab,)``."""
    state_sum: Tensor
    """The sum of the states of rows that count, ``(hidden,)``."""
    row_count: Tensor
    """The number of rows that count, ``()``, in the type of the states."""
    weight_sum: Tensor
    """``W.T @ q``, ``(hidden,)``."""
    loss: Tensor
    """``sum_r c_r q . z_r``, which is subtracted from the loss."""

    @classmethod
    def of(
        cls, spread: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor, factors: Tensor
    ) -> SpreadTerms:
        """Return the terms; see `LossGradients` for the other arguments."""
        state_sum = factors @ hidden
        weight_sum = spread @ weight
        row_count = factors.sum()
        loss = state_sum @ weight_sum + row_count * (spread @ bias)
        return cls(spread, state_sum, row_count, weight_sum, loss)


class SavedGradients(NamedTuple):
    """The gradients of states and bias, and what the gradient of the weight is computed from.

    All fields are tensors or None, since autograd saves nothing else for the backward pass.
    """

    hidden_gradient: Tensor
    """``(rows, hidden)``."""
    bias_gradient: Tensor
    """``(vocab,)``."""
    dense_weight_gradient: Tensor | None
    """The part of the weight's gradient from chunks with dense products, ``(vocab, hidden)``."""
    row: Tensor
    """Rows of the entries of G of all chunks with sparse products, ``(entries,)`` int64."""
    column: Tensor
    """Columns of these entries, likewise."""
    value: Tensor
    """Values of these entries, ``(entries,)``."""
    hidden: Tensor
    """The states, ``(rows, hidden)``."""
    state_sum: Tensor | None
    """The sum of the states, see `SpreadTerms`; None without smoothing."""
    spread: Tensor | None
    """q, ``(vocab,)``; None without smoothing."""

    def scaled_weight_gradient(self, factor: Tensor) -> Tensor:
        """Return the gradient with respect to the weight times a number, ``(vocab, hidden)``.

        Args:
            factor: the number, ``()``: the upstream gradient with respect to the loss. It is known
                in the backward pass only. Scaling the few entries here is cheaper than scaling the
                matrix.
        """
        entries = SparseEntries(self.row, self.column, self.value)
        dense = self.dense_weight_gradient
        if dense is not None and not len(entries.row):
            result = dense * factor
        else:
            transposed = entries.transposed()  # (vocab, rows)
            scaled = transposed._replace(value=transposed.value * factor)
            result = scaled.times(self.hidden, len(self.bias_gradient))
            if dense is not None:
                result.addcmul_(dense, factor)
        if self.spread is not None:
            assert self.state_sum is not None, "both are terms with q"
            result.addr_(self.spread, self.state_sum * factor, alpha=-1)
        return result
