r"""The gradients of `LinearLoss`, in the symbols of `linear_loss`.

In a row that counts, the gradient in the scores is :math:`p_r - y_r = G_r - q`, where
:math:`G_r = p_r - (1 - \epsilon) e_{t_r}`. In other rows the states :math:`h_r` are 0. So the
gradients are

.. math::
    G W - c \, (W^\top q)^\top & \quad\text{in the states,} \\
    G^\top H - q \, (\textstyle\sum_r h_r)^\top & \quad\text{in the weight,} \\
    G^\top c - q \textstyle\sum_r c_r & \quad\text{in the bias.}

`LossGradients` computes the products with G chunk by chunk, while G is in memory. If few of its
entries are not 0, the products are sparse. Then the entries of all chunks are kept, and the
gradient in the weight, the largest one, is computed from them in the backward pass, see
`SavedGradients.scaled_weight_gradient`. The terms in q need no scores, see `SpreadTerms`.
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
        hidden: ``(rows, hidden)``.
        weight: ``(vocab, hidden)``.
        bias: ``(vocab,)``.
        factors: c, ``(rows,)``.
    """

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor, factors: Tensor) -> None:
        self._hidden, self._weight, self._factors = hidden, weight, factors
        self._hidden_gradient = torch.empty_like(hidden)
        self._bias_gradient = torch.zeros_like(bias)
        # The gradient in the weight of the chunks with dense products, (vocab, hidden).
        self._dense_weight_gradient: Tensor | None = None
        # The entries of G of the chunks with sparse products; the first one is for `cat`, which
        # takes no empty list.
        none = hidden.new_zeros(0, dtype=torch.int64)
        self._entries = [SparseEntries(none, none, hidden.new_zeros(0))]

    def add(self, rows: slice, gradient: Tensor, entries: SparseEntries | None) -> None:
        """Add the gradients of a chunk; with sparse products, only that in the states.

        Args:
            rows: the rows of the chunk.
            gradient: G, ``(rows, vocab)``.
            entries: its nonzero entries if they are few; None for dense products.
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
        """Complete the gradients in states and bias; return what the backward pass needs.

        Args:
            terms: the terms of the spread; None without smoothing.
        """
        entries = SparseEntries(*map(torch.cat, zip(*self._entries, strict=True)))
        # Without factors: products are sparse on a CPU only, where `OutputLayer` has left out the
        # rows that do not count.
        self._bias_gradient.index_add_(0, entries.column, entries.value)
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
    """The parts of the spread q in loss and gradients.

    They are linear in the scores, so sums of states are enough to compute them.
    """

    spread: Tensor
    """q, ``(vocab,)``."""
    state_sum: Tensor
    """The sum of the states h_r, ``(hidden,)``."""
    row_count: Tensor
    """The sum of c_r."""
    weight_sum: Tensor
    """The sum of the tokens' weights, each times its probability in q, ``(hidden,)``."""
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
    """The gradients in states and bias, and what the gradient in the weight is computed from.

    All fields are tensors, since autograd saves nothing else for the backward pass.
    """

    hidden_gradient: Tensor
    """``(rows, hidden)``."""
    bias_gradient: Tensor
    """``(vocab,)``."""
    dense_weight_gradient: Tensor | None
    """The gradient in the weight of the chunks with dense products, ``(vocab, hidden)``."""
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
        """Return the gradient in the weight times a number, ``(vocab, hidden)``.

        Args:
            factor: 0-dim. It is known in the backward pass only, and scales the few entries here
                instead of a whole matrix.
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
            assert self.state_sum is not None, "both are terms of the spread"
            result.addr_(self.spread, self.state_sum * factor, alpha=-1)
        return result
