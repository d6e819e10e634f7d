"""The cells of one LSTM layer at all steps of a batch, forth and back.

What a step multiplies lies in one packed matrix, a row for each position: the hidden state goes
straight to where the next step, and the layer above, will multiply it. So each weight's gradient
is one product over all steps in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from onmt_entmax.modules.recurrence.cell import (
    CellTrace,
    double_candidate_,
    lstm_cell,
    lstm_cell_backward,
)
from onmt_entmax.modules.recurrence.products import PreparedWeight, rounded_empty, weight_gradient
from onmt_entmax.modules.recurrence.steps import Steps


@dataclass(frozen=True)
class Above:
    """Where the hidden states of a layer enter the next one.

    Attributes:
        inputs: ``(rows, hidden)``, rows packed; a part of what the layer above multiplies.
        factors: of the dropout between, ``(total, hidden)``, or None.
    """

    inputs: Tensor
    factors: Tensor | None


class Cells:
    """One layer, step by step and back, in PyTorch operations.

    Args:
        steps: active rows.
        order: of the steps; the sizes of the steps rise or fall in this order, never both.
        multiply: by the weights ``(4 * hidden, size)``, whose last columns are the states'.
        entering: what is added to the product, packed ``(total, 4 * hidden)``; None adds the bias
            of `multiply`.
        outputs: receives the hidden states, ``(total, hidden)``.
        last: receive the last hidden and cell states of each row, ``(batch, hidden)`` each.
        above: receives the hidden states too, or None.

    Attributes:
        inputs: what `multiply` multiplies, ``(rows, size)``; rows packed, zeros at first and after
            the last. Whoever made this writes what comes first and what comes from elsewhere.
    """

    def __init__(
        self,
        steps: Steps,
        order: Sequence[int],
        multiply: PreparedWeight,
        entering: Tensor | None,
        outputs: Tensor,
        last: tuple[Tensor, Tensor],
        above: Above | None = None,
    ) -> None:
        self._steps, self._order, self._multiply = steps, order, multiply
        self._entering, self._above, self._hidden = entering, above, outputs.size(1)
        self._outputs: Tensor | None = outputs
        self._last: tuple[Tensor, Tensor] | None = last
        self.inputs = rounded_empty(steps.total, multiply.size, outputs, multiply.dtype).zero_()
        self._states = self.inputs[:, -self._hidden :]
        self._cell = outputs.new_zeros(0, self._hidden)
        self._traces: dict[int, CellTrace] = {}

    def begin(self, hidden: Tensor, cell: Tensor) -> None:
        """Set the states ``(batch, hidden)`` before the first step; they are zeros otherwise."""
        if self._order:
            rows = self._steps.rows(self._order[0])
            self._states[rows] = hidden[: rows.stop - rows.start]
        self._cell = cell

    def forward(self, at: int) -> None:
        """Run the step at a place of the order."""
        assert self._outputs is not None
        assert self._last is not None
        step, rows, size = self._at(at)
        entering = None if self._entering is None else self._entering[rows]
        gates = self._multiply(self.inputs[rows], entering)
        hidden, self._cell, self._traces[step] = lstm_cell(gates, self._cells_before(size))
        self._outputs[rows] = hidden
        if self._above is not None:
            factors = self._above.factors
            self._above.inputs[rows] = hidden if factors is None else hidden * factors[rows]
        start, going_on = self._next(at)
        self._states[start : start + going_on] = hidden[:going_on]
        if going_on < size:
            for last, now in zip(self._last, (hidden, self._cell), strict=True):
                last[going_on:size] = now[going_on:]

    def end(self) -> None:
        """Let go of `outputs` and `last`, which may hold this, and of what went in."""
        self._outputs = self._last = self._entering = None

    def start_backward(self, multiply: PreparedWeight, hidden: Tensor, cell: Tensor) -> None:
        """Prepare the way back.

        Args:
            multiply: by the transposed weights.
            hidden: gradients of each row's last hidden state, ``(batch, hidden)``; in the end
                those of the states that were given to `begin`.
            cell: of the cell states, likewise.
        """
        self._back, self._grad_hidden, self._grad_cell = multiply, hidden, cell
        total, size = self._steps.total, 4 * self._hidden
        self._grad_gates = rounded_empty(total, size, hidden)
        self._grad_factors = self._grad_gates
        if multiply.dtype != hidden.dtype:
            self._grad_factors = rounded_empty(total, size, hidden, multiply.dtype)

    def backward(self, at: int, grad: Tensor | None, above: Tensor | None) -> Tensor:
        """Run the step at a place of the order back; places come from last to first.

        Args:
            at: the place.
            grad: of the hidden states, ``(rows, hidden)``, or None.
            above: of what the layer above took in, ``(rows, hidden)``, or None.

        Returns:
            Gradient of `inputs`, ``(rows, size)``.
        """
        step, rows, size = self._at(at)
        hidden = self._grad_hidden[:size]
        if grad is not None:
            hidden += grad
        if above is not None:
            factors = self._above.factors if self._above is not None else None
            hidden += above if factors is None else above * factors[rows]
        lstm_cell_backward(
            hidden, self._grad_cell[:size], self._traces[step], self._grad_gates[rows]
        )
        if self._grad_factors is not self._grad_gates:
            self._grad_factors[rows] = self._grad_gates[rows]
        result = self._back(self._grad_factors[rows])
        hidden.copy_(result[:, -self._hidden :])
        return result

    def finish_backward(self) -> tuple[Tensor, Tensor]:
        """Gradients of the weights ``(4 * hidden, size)`` and of the bias ``(4 * hidden,)``."""
        weight = weight_gradient(self._grad_factors, self.inputs, None, self._grad_cell.dtype)
        return double_candidate_(weight), double_candidate_(self._bias_gradient())

    def gates_gradient(self, exact: bool) -> Tensor:
        """Gradient of what enters, packed ``(rows, 4 * hidden)``, zeros after the last.

        Args:
            exact: in the type of the states, else in that of the products.
        """
        return self._grad_gates if exact else self._grad_factors

    def _bias_gradient(self) -> Tensor:
        return self._grad_gates.sum(dim=0)

    def _at(self, at: int) -> tuple[int, slice, int]:
        """The step at a place, its packed rows, and how many."""
        step = self._order[at]
        return step, self._steps.rows(step), self._steps.sizes[step]

    def _next(self, at: int) -> tuple[int, int]:
        """Where the rows of the next step begin, and how many of this step's go on."""
        if at + 1 == len(self._order):
            return 0, 0
        step, following = self._order[at], self._order[at + 1]
        sizes = self._steps.sizes
        return self._steps.starts[following], min(sizes[step], sizes[following])

    def _cells_before(self, size: int) -> Tensor:
        """Cell states ``(size, hidden)`` before a step."""
        missing = size - self._cell.size(0)
        if missing <= 0:
            return self._cell[:size]
        return torch.cat([self._cell, self._cell.new_zeros(missing, self._hidden)])
