"""One LSTM layer over all steps of a batch, forward and backward, in PyTorch operations.

Also what it is made of: the pointwise cell, packed steps, dropout, and embeddings that are looked
up once for each distinct token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from onmt_entmax.nn.products import PreparedWeight, rounded_empty, weight_gradient

# --- The pointwise cell -------------------------------------------------------------------------
#
# All four gates pass through one sigmoid: the candidate's tanh is ``2 sigmoid(2x) - 1``, so its
# rows of the weights are doubled beforehand. PyTorch's vectorised sigmoid is ten times faster than
# its tanh, and one operator is quicker than four.


class CellTrace(NamedTuple):
    """What the backward pass of one step needs."""

    gates: Tensor  # sigmoids, (rows, 4 * hidden): input, forget, candidate, output
    candidate: Tensor  # (rows, hidden)
    previous: Tensor  # cell state before the step, (rows, hidden)
    squashed: Tensor  # tanh of the cell state after the step, (rows, hidden)


def double_candidate_(weight: Tensor) -> Tensor:
    """Double the candidate's rows of a weight or bias ``(4 * hidden, ...)`` in place.

    Apply it to copies of the weights before the recurrence, and to their gradients after it.
    """
    weight.chunk(4)[2].mul_(2)
    return weight


def tanh(x: Tensor) -> Tensor:
    """Return tanh by way of the faster sigmoid; absolute error about 1e-7."""
    return torch.mul(x, 2).sigmoid_().mul_(2).sub_(1)


def lstm_cell(gates: Tensor, previous: Tensor) -> tuple[Tensor, Tensor, CellTrace]:
    """Compute one step of an LSTM (Hochreiter & Schmidhuber 1997, as `torch.nn.LSTMCell`).

    Args:
        gates: ``(rows, 4 * hidden)`` before the sigmoid, the candidate's doubled; overwritten.
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
    """Compute the gradient of `lstm_cell`.

    Args:
        grad_hidden: of the new hidden state, ``(rows, hidden)``.
        grad_cell: of the new cell state; becomes that of the previous one.
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
    """Return dropout factors: 0 with `probability`, else ``1 / (1 - probability)``.

    Each 64-bit random number of the device's generator gives four factors, which is eleven times
    faster than `bernoulli_`. The probability is rounded to a multiple of 2^-16.

    A probability of 0 returns None; `like` gives type and device.
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


# --- Packed steps -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Steps:
    """The rows that each step of a recurrence computes.

    Rows are sorted by length, longest first; step t computes the first ``sizes[t]``. A packed
    tensor holds the rows of step 0, then those of step 1, and so on.

    Attributes:
        batch: number of rows.
        sizes: active rows of each step, never increasing.
        starts: packed position of each step's first row.
        total: active rows of all steps.
    """

    batch: int
    sizes: tuple[int, ...]
    starts: tuple[int, ...]
    total: int

    @staticmethod
    def of(lengths: list[int]) -> Steps:
        """Return the steps of rows with these lengths, longest first."""
        sizes = [0] * max(lengths, default=0)
        for length in lengths:
            for step in range(length):
                sizes[step] += 1
        *starts, total = accumulate(sizes, initial=0)
        return Steps(len(lengths), tuple(sizes), tuple(starts), total)

    def rows(self, step: int) -> slice:
        """Return where a packed tensor holds `step`."""
        return slice(self.starts[step], self.starts[step] + self.sizes[step])

    def padded(self, packed: Tensor) -> Tensor:
        """Return packed ``(total, size)`` as ``(steps, batch, size)``, padded with zeros."""
        if self.total == len(self.sizes) * self.batch:
            return packed.view(len(self.sizes), self.batch, -1)
        padded = packed.new_zeros(len(self.sizes), self.batch, packed.size(1))
        for step, size in enumerate(self.sizes):
            padded[step, :size] = packed[self.rows(step)]
        return padded

    def index(self, order: Tensor) -> Tensor:
        """Return each packed row's position in a flattened ``(steps, batch)``: ``(total,)`` int64.

        `order` ``(batch,)`` is the column in which the caller holds each sorted row.
        """
        return torch.cat([order[:size] + step * self.batch for step, size in enumerate(self.sizes)])


def on_device(indices: Tensor, device: torch.device) -> Tensor:
    """Return `indices` on `device`, without a synchronisation if that is a GPU."""
    if device.type == "cuda" and indices.device.type == "cpu":
        indices = indices.pin_memory()
    return indices.to(device, non_blocking=True)


# --- Distinct tokens ----------------------------------------------------------------------------
#
# A token's part of the lowest layer's gates depends on nothing else, and a batch repeats its tokens
# (64 words of the pilot: a thousand characters, a hundred of them distinct). So it is computed once
# for each, and the backward pass sums the gradients of a token's positions before multiplying them.


@dataclass(frozen=True)
class Repeats:
    """Maps each packed position to a row of distinct values.

    Attributes:
        rows: number of distinct rows.
        places: row of each position, ``(total,)`` int64; None if every position has its own.
    """

    rows: int
    places: Tensor | None = None

    def spread(self, values: Tensor) -> Tensor:
        """Return the row of each position, ``(rows, size)`` to ``(total, size)``."""
        return values if self.places is None else values.index_select(0, self.places)

    def collect(self, gradient: Tensor) -> Tensor:
        """Sum ``(total, size)`` over each row's positions; what follows the total is ignored."""
        if self.places is None:
            return gradient[: self.rows]
        counts = torch.bincount(self.places, minlength=self.rows)
        starts = counts.cumsum(0) - counts
        return embedding_bag(self.places.argsort(stable=True), gradient, starts, mode="sum")


def embed(embeddings: nn.Module, tokens: Tensor) -> tuple[Tensor, Repeats]:
    """Look up the embeddings of packed tokens, each distinct token once where possible.

    Args:
        embeddings: OpenNMT-py's `Embeddings`.
        tokens: ids ``(total, features)``.

    Returns:
        Embeddings ``(rows, embedding)``, and the row of each position.
    """
    # On a GPU, the number of distinct tokens would cost a synchronisation.
    if tokens.size(1) > 1 or tokens.device.type != "cpu" or embeddings.position_encoding:
        return embeddings(tokens.unsqueeze(0))[0], Repeats(len(tokens))
    distinct, places = tokens[:, 0].unique(return_inverse=True)
    return embeddings(distinct.view(1, -1, 1))[0], Repeats(len(distinct), places)


# --- A layer ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Above:
    """Where the hidden states of a layer enter the layer above.

    Attributes:
        inputs: packed ``(rows, hidden)``; columns of what the layer above multiplies.
        factors: dropout between the layers, ``(total, hidden)``, or None.
    """

    inputs: Tensor
    factors: Tensor | None


class Cells:
    """One layer, one step at a time, forward and backward.

    What the steps multiply lies in one packed matrix, `inputs`. A step writes its hidden states
    where the next step and the layer above will multiply them, so the gradient of the weights is
    one product over all steps.

    Args:
        steps: active rows.
        order: of the steps. In this order their sizes only fall, or only rise.
        multiply: by the weights ``(4 * hidden, size)``, whose last columns are the states'.
        entering: added to the product, packed ``(total, 4 * hidden)``; None adds the bias of
            `multiply`.
        outputs: receives the hidden states, ``(total, hidden)``.
        last: receive the last hidden and cell states of each row, ``(batch, hidden)`` each.
        above: receives the hidden states too, or None.

    Attributes:
        inputs: packed ``(rows, size)``, with rows of zeros after the last. Starts as zeros; the
            caller writes what does not come from this layer.
    """

    def __init__(
        self,
        steps: Steps,
        order: Sequence[int],
        multiply: PreparedWeight,
        entering: Tensor | None,
        outputs: Tensor,
        last: tuple[Tensor, Tensor],
        above: Above | None,
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
        """Set the states ``(batch, hidden)`` before the first step; zeros by default."""
        if self._order:
            rows = self._steps.rows(self._order[0])
            self._states[rows] = hidden[: rows.stop - rows.start]
        self._cell = cell

    def forward(self, at: int) -> None:
        """Run the step at place `at` of the order."""
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
        """Drop references to the inputs, and to `outputs` and `last`, whose graph may hold this."""
        self._outputs = self._last = self._entering = None

    def start_backward(self, multiply: PreparedWeight, hidden: Tensor, cell: Tensor) -> None:
        """Prepare the backward pass.

        Args:
            multiply: by the transposed weights.
            hidden: gradient of each row's last hidden state, ``(batch, hidden)``; becomes that of
                the states given to `begin`.
            cell: likewise of the cell states.
        """
        self._back, self._grad_hidden, self._grad_cell = multiply, hidden, cell
        total, size = self._steps.total, 4 * self._hidden
        self._grad_gates = rounded_empty(total, size, hidden)
        self._cast_grad_gates = self._grad_gates
        if multiply.dtype != hidden.dtype:
            self._cast_grad_gates = rounded_empty(total, size, hidden, multiply.dtype)

    def backward(self, at: int, grad: Tensor | None, above: Tensor | None) -> Tensor:
        """Go back through the step at place `at` of the order; places come from last to first.

        Args:
            at: the place.
            grad: of the hidden states, ``(rows, hidden)``, or None.
            above: of the states as they entered the layer above, ``(rows, hidden)``, or None.

        Returns:
            Gradient of the step's `inputs`, ``(rows, size)``.
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
        if self._cast_grad_gates is not self._grad_gates:
            self._cast_grad_gates[rows] = self._grad_gates[rows]
        result = self._back(self._cast_grad_gates[rows])
        hidden.copy_(result[:, -self._hidden :])
        return result

    def finish_backward(self) -> tuple[Tensor, Tensor]:
        """Return gradients of weights ``(4 * hidden, size)`` and bias ``(4 * hidden,)``."""
        dtype = self._grad_cell.dtype
        weight = weight_gradient(self._cast_grad_gates, self.inputs, result=dtype)
        return double_candidate_(weight), double_candidate_(self._bias_gradient())

    def gates_gradient(self, exact: bool) -> Tensor:
        """Return the gradient of `entering`, ``(rows, 4 * hidden)``, zeros after the last row.

        It is in the type of the products or, if `exact`, of the states.
        """
        return self._grad_gates if exact else self._cast_grad_gates

    def _bias_gradient(self) -> Tensor:
        return self._grad_gates.sum(dim=0)

    def _at(self, at: int) -> tuple[int, slice, int]:
        """Return the step at a place, its packed rows, and their number."""
        step = self._order[at]
        return step, self._steps.rows(step), self._steps.sizes[step]

    def _next(self, at: int) -> tuple[int, int]:
        """Return where the next step's rows begin, and how many of this step's continue."""
        if at + 1 == len(self._order):
            return 0, 0
        step, following = self._order[at], self._order[at + 1]
        sizes = self._steps.sizes
        return self._steps.starts[following], min(sizes[step], sizes[following])

    def _cells_before(self, size: int) -> Tensor:
        """Return the cell states ``(size, hidden)`` before a step; new rows start from zeros."""
        missing = size - self._cell.size(0)
        if missing <= 0:
            return self._cell[:size]
        return torch.cat([self._cell, self._cell.new_zeros(missing, self._hidden)])
