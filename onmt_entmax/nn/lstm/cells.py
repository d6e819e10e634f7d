"""The cells of one LSTM layer at all steps of a batch, forth and back.

What a step multiplies lies in one packed matrix, a row for each position: the hidden state goes
straight to where the next step, and the layer above, will multiply it. So each weight's gradient
is one product over all steps in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from onmt_entmax.nn.products import PreparedWeight, rounded_empty, weight_gradient

# The pointwise half of an LSTM cell and of its gradient, and the dropout of a recurrence.
#
# The four gates of a cell come out of one product and pass through ONE sigmoid: the candidate's
# tanh is ``2 sigmoid(2x) - 1``, so its rows of the weights are doubled beforehand. PyTorch's
# vectorised sigmoid is ten times faster than its tanh, and one operator is quicker than four.


class CellTrace(NamedTuple):
    """What the backward pass of one cell step needs; everything is ``(rows, ...)``."""

    gates: Tensor  # sigmoids, (rows, 4 * hidden): input, forget, candidate, output
    candidate: Tensor  # (rows, hidden)
    previous: Tensor  # cell state before the step, (rows, hidden)
    squashed: Tensor  # tanh of the cell state after the step, (rows, hidden)


def double_candidate_(weight: Tensor) -> Tensor:
    """Double the candidate's rows of a weight or bias ``(4 * hidden, ...)``, in place.

    Applied to copies of the weights before the recurrence, and to their gradients after it.
    """
    weight.chunk(4)[2].mul_(2)
    return weight


def tanh(x: Tensor) -> Tensor:
    """Hyperbolic tangent through the sigmoid (module docstring), absolute error about 1e-7."""
    return torch.mul(x, 2).sigmoid_().mul_(2).sub_(1)


def lstm_cell(gates: Tensor, previous: Tensor) -> tuple[Tensor, Tensor, CellTrace]:
    """One step of an LSTM (Hochreiter & Schmidhuber 1997, as `torch.nn.LSTMCell`).

    Args:
        gates: ``(rows, 4 * hidden)`` before the sigmoid, the candidate's part doubled;
            overwritten.
        previous: cell state ``(rows, hidden)``.

    Returns:
        New hidden state, new cell state, and the trace for `lstm_cell_backward`.
    """
    enter, forget, candidate, leave = gates.sigmoid_().chunk(4, dim=1)
    candidate = torch.mul(candidate, 2).sub_(1)
    cell = torch.mul(forget, previous).addcmul_(enter, candidate)
    squashed = tanh(cell)
    return torch.mul(leave, squashed), cell, CellTrace(gates, candidate, previous, squashed)


def lstm_cell_backward(
    grad_hidden: Tensor, grad_cell: Tensor, trace: CellTrace, grad_gates: Tensor
) -> None:
    """Gradient of `lstm_cell`.

    Args:
        grad_hidden: of the new hidden state, ``(rows, hidden)``.
        grad_cell: of the new cell state; becomes the gradient of the previous one.
        trace: from the forward pass.
        grad_gates: receives the gradient before the sigmoid, ``(rows, 4 * hidden)``.
    """
    enter, forget, _, leave = trace.gates.chunk(4, dim=1)
    d_enter, d_forget, d_candidate, d_leave = grad_gates.chunk(4, dim=1)
    grad_cell.add_(torch.ops.aten.tanh_backward(grad_hidden * leave, trace.squashed))
    torch.mul(grad_cell, trace.candidate, out=d_enter)
    torch.mul(grad_cell, trace.previous, out=d_forget)
    torch.mul(grad_cell, enter, out=d_candidate).mul_(2)
    torch.mul(grad_hidden, trace.squashed, out=d_leave)
    torch.ops.aten.sigmoid_backward.grad_input(grad_gates, trace.gates, grad_input=grad_gates)
    grad_cell.mul_(forget)


def dropout_mask(shape: tuple[int, ...], probability: float, like: Tensor) -> Tensor | None:
    """Random factors of dropout: zero with `probability`, else one over the rest.

    Drawn from torch's generator of the device, 16 bits for each factor (so the probability is
    rounded to a multiple of 2^-16, and the factor with it): four from one 64-bit draw, eleven
    times faster than `bernoulli_`.

    Args:
        shape: of the mask.
        probability: in [0, 1]; 0 gives None, 1 drops everything.
        like: gives type and device.
    """
    if probability == 0:
        return None
    levels = round(probability * 2**16)
    if levels >= 2**16:
        return like.new_zeros(shape)
    count = torch.Size(shape).numel()
    draws = torch.empty((count + 3) // 4, dtype=torch.int64, device=like.device)
    draws.random_(-(2**63), None)
    kept = draws.view(torch.int16)[:count] >= levels - 2**15
    return kept.to(like.dtype).mul_(2**16 / (2**16 - levels)).view(shape)


# Which rows of a batch each step of a recurrence computes.


@dataclass(frozen=True)
class Steps:
    """Which rows a recurrence computes: step t the first ``sizes[t]`` of a sorted batch.

    Packed tensors hold the rows of step 0, then those of step 1, and so on.

    Attributes:
        batch: rows of the batch.
        sizes: active rows of each step, never increasing.
        starts: packed position of each step's first row.
        total: rows of all steps.
    """

    batch: int
    sizes: tuple[int, ...]
    starts: tuple[int, ...]
    total: int

    @staticmethod
    def of(lengths: list[int]) -> Steps:
        """The steps of rows with these lengths, longest first."""
        sizes = [0] * (lengths[0] if lengths else 0)
        for length in lengths:
            for step in range(length):
                sizes[step] += 1
        starts = [0]
        for size in sizes:
            starts.append(starts[-1] + size)
        return Steps(len(lengths), tuple(sizes), tuple(starts[:-1]), starts[-1])

    def rows(self, step: int) -> slice:
        """Where a packed tensor holds `step`."""
        return slice(self.starts[step], self.starts[step] + self.sizes[step])

    def padded(self, packed: Tensor) -> Tensor:
        """A packed ``(total, size)`` as ``(steps, batch, size)`` with zeros between."""
        if self.total == len(self.sizes) * self.batch:
            return packed.view(len(self.sizes), self.batch, -1)
        padded = packed.new_zeros(len(self.sizes), self.batch, packed.size(1))
        for step, size in enumerate(self.sizes):
            padded[step, :size] = packed[self.rows(step)]
        return padded

    def index(self, order: Tensor) -> Tensor:
        """Positions ``step * batch + order[row]`` of all packed rows, ``(total,)`` int64.

        Args:
            order: which column of the caller's padded tensors each sorted row is, ``(batch,)``.
        """
        return torch.cat([order[:size] + step * self.batch for step, size in enumerate(self.sizes)])


def on_device(indices: Tensor, device: torch.device) -> Tensor:
    """`indices` on `device`; from here to a GPU without waiting for it."""
    if device.type == "cuda" and indices.device.type == "cpu":
        indices = indices.pin_memory()
    return indices.to(device, non_blocking=True)


# The embeddings that enter a recurrence, each distinct token of a batch once.
#
# What a token adds to the gates of the lowest layer depends on nothing else, and a batch has the same
# tokens many times (64 sentences of the pilot: a thousand positions, a hundred characters). So it
# is computed once for each, and in the way back the gradients of a token's positions are summed
# before they are multiplied.


@dataclass(frozen=True)
class Repeats:
    """Which row each packed position takes.

    Attributes:
        rows: how many there are.
        places: row of each position, ``(total,)`` int64; None where every position has its own.
    """

    rows: int
    places: Tensor | None = None

    def spread(self, values: Tensor) -> Tensor:
        """``(rows, size)`` to ``(total, size)``."""
        return values if self.places is None else values.index_select(0, self.places)

    def collect(self, gradient: Tensor) -> Tensor:
        """``(total, size)`` to its sums ``(rows, size)``; rows after the total do not count."""
        if self.places is None:
            return gradient[: self.rows]
        counts = torch.bincount(self.places, minlength=self.rows)
        starts = counts.cumsum(0) - counts
        return embedding_bag(self.places.argsort(stable=True), gradient, starts, mode="sum")


def embed(embeddings: nn.Module, tokens: Tensor) -> tuple[Tensor, Repeats]:
    """Embeddings of packed tokens.

    Args:
        embeddings: OpenNMT-py's `Embeddings`.
        tokens: ids ``(total, features)``.

    Returns:
        Embeddings ``(rows, embedding)``, and which of them each position takes.
    """
    # A GPU would have to be waited for, to learn how many there are.
    if tokens.size(1) > 1 or tokens.device.type != "cpu" or embeddings.position_encoding:
        return embeddings(tokens.unsqueeze(0))[0], Repeats(len(tokens))
    distinct, places = tokens[:, 0].unique(return_inverse=True)
    return embeddings(distinct.view(1, -1, 1))[0], Repeats(len(distinct), places)


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
