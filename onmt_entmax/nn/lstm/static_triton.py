# mypy: allow-untyped-defs
"""Triton kernels of the static recurrences, and the functions that start them.

The number of kernels limits a recurrence on a GPU. So one kernel does everything between two matrix
products, and writes each result where the next product reads it. Importing this module imports
Triton.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from onmt_entmax.sparse.backends import triton as entmax
from onmt_entmax.sparse.backends.triton_kernels import (
    beta_of,
    extreme_thresholds,
    jacobian_weights,
    result_at,
    solve_tile,
)
from onmt_entmax.sparse.solvers import whole_power

_CELLS = 512  # hidden units of a program
_TILE = 8192  # elements of source vectors in a tile of attention
# Of the attention kernels: most source positions, and the largest alpha that float32 is exact for.
LONGEST = 512
LARGEST_ALPHA = 2.0


@triton.jit
def _tanh(x):
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit(do_not_specialize=["live_step"])
def _cell_forward_kernel(
    gates, cell_before, cell_after, hidden_before, hidden_after, second, live, factors,
    gates_step, cell_before_step, cell_after_step, hidden_before_step, hidden_after_step, live_step,
    after_row, second_row, size, hidden: tl.constexpr,
    masked: tl.constexpr, has_second: tl.constexpr, scaled: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Take one LSTM step for all rows; the second axis of the grid is the direction.

    See `static_steps.cell_forward`. ``masked`` says whether there is ``live``, ``scaled`` whether
    there are ``factors``.
    """
    direction = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * width + tl.arange(0, width)
    there = place < size
    row = place // hidden
    column = place % hidden
    gates += direction * gates_step + row * (4 * hidden) + column
    enter = tl.sigmoid(tl.load(gates, mask=there, other=0.0))
    forget = tl.sigmoid(tl.load(gates + hidden, mask=there, other=0.0))
    candidate = _tanh(tl.load(gates + 2 * hidden, mask=there, other=0.0))
    leave = tl.sigmoid(tl.load(gates + 3 * hidden, mask=there, other=0.0))
    before = tl.load(cell_before + direction * cell_before_step + place, mask=there, other=0.0)
    cell = forget * before + enter * candidate
    state = leave * _tanh(cell)
    tl.store(gates, enter, mask=there)
    tl.store(gates + hidden, forget, mask=there)
    tl.store(gates + 2 * hidden, candidate, mask=there)
    tl.store(gates + 3 * hidden, leave, mask=there)
    if masked:
        going = tl.load(live + direction * live_step + row, mask=there, other=0.0) > 0
        kept = tl.load(
            hidden_before + direction * hidden_before_step + place, mask=there, other=0.0
        )
        cell = tl.where(going, cell, before)
        state = tl.where(going, state, kept)
    tl.store(cell_after + direction * cell_after_step + place, cell, mask=there)
    after = hidden_after + direction * hidden_after_step + row * after_row + column
    tl.store(after, state, mask=there)
    if has_second:
        if scaled:
            state *= tl.load(factors + place, mask=there, other=0.0)
        tl.store(second + row * second_row + column, state, mask=there)


@triton.jit(do_not_specialize=["live_step"])
def _cell_backward_kernel(
    gates, cell_before, cell_after, grad_state, grad_above, grad_cell, live, factors,
    gates_step, cell_before_step, cell_after_step, grad_above_step, live_step,
    state_row, above_row, size, hidden: tl.constexpr,
    masked: tl.constexpr, scaled: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Compute the gradient of `_cell_forward_kernel`; see `static_steps.cell_backward`."""
    direction = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * width + tl.arange(0, width)
    there = place < size
    row = place // hidden
    column = place % hidden
    gates += direction * gates_step + row * (4 * hidden) + column
    enter = tl.load(gates, mask=there, other=0.0)
    forget = tl.load(gates + hidden, mask=there, other=0.0)
    candidate = tl.load(gates + 2 * hidden, mask=there, other=0.0)
    leave = tl.load(gates + 3 * hidden, mask=there, other=0.0)
    before = tl.load(cell_before + direction * cell_before_step + place, mask=there, other=0.0)
    after = tl.load(cell_after + direction * cell_after_step + place, mask=there, other=0.0)
    above = grad_above + direction * grad_above_step + row * above_row + column
    more = tl.load(above, mask=there, other=0.0)
    if scaled:
        more *= tl.load(factors + place, mask=there, other=0.0)
    # Directions follow each other in memory in both gradients of states.
    states = grad_state + direction * size + row * state_row + column
    grad = tl.load(states, mask=there, other=0.0) + more
    cells = grad_cell + direction * size + place
    grad_after = tl.load(cells, mask=there, other=0.0)
    squashed = _tanh(after)
    through = grad_after + grad * leave * (1.0 - squashed * squashed)
    grad_enter = through * candidate * enter * (1.0 - enter)
    grad_forget = through * before * forget * (1.0 - forget)
    grad_candidate = through * enter * (1.0 - candidate * candidate)
    grad_leave = grad * squashed * leave * (1.0 - leave)
    through *= forget
    if masked:
        going = tl.load(live + direction * live_step + row, mask=there, other=0.0) > 0
        grad_enter = tl.where(going, grad_enter, 0.0)
        grad_forget = tl.where(going, grad_forget, 0.0)
        grad_candidate = tl.where(going, grad_candidate, 0.0)
        grad_leave = tl.where(going, grad_leave, 0.0)
        through = tl.where(going, through, grad_after)
        tl.store(states, tl.where(going, 0.0, grad), mask=there)
    tl.store(gates, grad_enter, mask=there)
    tl.store(gates + hidden, grad_forget, mask=there)
    tl.store(gates + 2 * hidden, grad_candidate, mask=there)
    tl.store(gates + 3 * hidden, grad_leave, mask=there)
    tl.store(cells, through, mask=there)


@triton.jit(do_not_specialize=["source"])
def _attend_kernel(
    queries, keys, values, from_query, factors, lengths, weights, outputs, fed, alpha,
    fed_row, source, hidden: tl.constexpr, scaled: tl.constexpr,
    log_form: tl.constexpr, power: tl.constexpr, work: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Take one step of attention: scores, entmax, context vector, tanh and dropout.

    A program computes one sentence. It writes weights (rows, source), and outputs (rows, hidden) to
    ``outputs`` and ``fed``.
    """
    row = tl.program_id(0).to(tl.int64)
    length = tl.load(lengths + row)
    position = tl.arange(0, height)
    real = position < length
    scores = tl.zeros((height,), keys.dtype.element_ty)
    for begin in range(0, hidden, width):
        column = begin + tl.arange(0, width)
        inside = column < hidden
        query = tl.load(queries + row * hidden + column, mask=inside, other=0.0)
        place = (row * source + position[:, None]) * hidden + column[None, :]
        key = tl.load(keys + place, mask=real[:, None] & inside[None, :], other=0.0)
        scores += tl.sum(key * query[None, :], 1)
    tile = tl.where(real, scores, -float("inf")).to(work)
    tile = tl.reshape(tile, (1, height))
    beta = beta_of(alpha, tl.full((1, 1), 0, tl.int64), 1, 1, False, work)
    below = tile - tl.max(tile, 1, keep_dims=True)
    start, ceiling = extreme_thresholds(beta, source, log_form, power)
    threshold, probability, total = solve_tile(below, start, ceiling, beta, log_form, power)
    probability = result_at(
        below, threshold, probability, beta, total, "probabilities", log_form, power, False
    )
    weight = tl.reshape(probability, (height,)).to(keys.dtype.element_ty)
    tl.store(weights + row * source + position, weight, mask=position < source)
    for begin in range(0, hidden, width):
        column = begin + tl.arange(0, width)
        inside = column < hidden
        place = (row * source + position[:, None]) * hidden + column[None, :]
        value = tl.load(values + place, mask=real[:, None] & inside[None, :], other=0.0)
        output = tl.sum(value * weight[:, None], 0)
        output += tl.load(from_query + row * hidden + column, mask=inside, other=0.0)
        output = _tanh(output)
        if scaled:
            output *= tl.load(factors + row * hidden + column, mask=inside, other=0.0)
        tl.store(outputs + row * hidden + column, output, mask=inside)
        tl.store(fed + row * fed_row + column, output, mask=inside)


@triton.jit(do_not_specialize=["source"])
def _attend_backward_kernel(
    grad_outputs, grad_fed, outputs, factors, weights, keys, values, lengths,
    grad_plain, grad_scores, grad_queries, alpha,
    fed_row, source, hidden: tl.constexpr, scaled: tl.constexpr,
    power: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Compute the gradient of `_attend_kernel` before tanh, in the scores, and in the queries."""
    row = tl.program_id(0).to(tl.int64)
    position = tl.arange(0, height)
    real = position < tl.load(lengths + row)
    arriving = tl.zeros((height,), keys.dtype.element_ty)
    for begin in range(0, hidden, width):
        column = begin + tl.arange(0, width)
        inside = column < hidden
        grad = tl.load(grad_outputs + row * hidden + column, mask=inside, other=0.0)
        grad += tl.load(grad_fed + row * fed_row + column, mask=inside, other=0.0)
        output = tl.load(outputs + row * hidden + column, mask=inside, other=0.0)
        if scaled:
            factor = tl.load(factors + row * hidden + column, mask=inside, other=0.0)
            output = tl.where(factor == 0, 0.0, output / tl.where(factor == 0, 1.0, factor))
            grad *= factor
        grad *= 1.0 - output * output
        tl.store(grad_plain + row * hidden + column, grad, mask=inside)
        place = (row * source + position[:, None]) * hidden + column[None, :]
        value = tl.load(values + place, mask=real[:, None] & inside[None, :], other=0.0)
        arriving += tl.sum(value * grad[None, :], 1)
    probability = tl.load(weights + row * source + position, mask=position < source, other=0.0)
    beta = beta_of(alpha, row, 1, 1, False, keys.dtype.element_ty)
    slope = jacobian_weights(probability, beta, power)
    mean = tl.sum(slope * arriving, 0) / tl.sum(slope, 0)
    grad_score = slope * (arriving - mean)
    tl.store(grad_scores + row * source + position, grad_score, mask=position < source)
    for begin in range(0, hidden, width):
        column = begin + tl.arange(0, width)
        inside = column < hidden
        place = (row * source + position[:, None]) * hidden + column[None, :]
        key = tl.load(keys + place, mask=real[:, None] & inside[None, :], other=0.0)
        grad = tl.sum(key * grad_score[:, None], 0)
        tl.store(grad_queries + row * hidden + column, grad, mask=inside)


def cell_forward(
    gates: Tensor,
    cell_before: Tensor,
    cell_after: Tensor,
    hidden_before: Tensor | None,
    hidden_after: Tensor,
    live: Tensor | None,
    second: Tensor | None,
    factors: Tensor | None,
) -> None:
    """Start the kernel of `static_steps.cell_forward`."""
    directions, rows, hidden = cell_before.shape
    size = rows * hidden
    none = gates
    grid = (entmax.blocks(size, _CELLS), directions)
    _cell_forward_kernel[grid](
        gates, cell_before, cell_after,
        none if hidden_before is None else hidden_before, hidden_after,
        none if second is None else second,
        none if live is None else live,
        none if factors is None else factors,
        gates.stride(0), cell_before.stride(0), cell_after.stride(0),
        0 if hidden_before is None else hidden_before.stride(0),
        hidden_after.stride(0),
        0 if live is None else live.stride(0),
        hidden_after.stride(1), 0 if second is None else second.stride(1), size, hidden,
        masked=live is not None, has_second=second is not None, scaled=factors is not None,
        width=_CELLS, num_warps=4,
    )  # fmt: skip


def cell_backward(
    gates: Tensor,
    cell_before: Tensor,
    cell_after: Tensor,
    grad_state: Tensor,
    grad_above: Tensor,
    grad_cell: Tensor,
    live: Tensor | None,
    factors: Tensor | None,
) -> None:
    """Start the kernel of `static_steps.cell_backward`."""
    directions, rows, hidden = cell_before.shape
    size = rows * hidden
    grid = (entmax.blocks(size, _CELLS), directions)
    _cell_backward_kernel[grid](
        gates, cell_before, cell_after, grad_state, grad_above, grad_cell,
        gates if live is None else live, gates if factors is None else factors,
        gates.stride(0), cell_before.stride(0), cell_after.stride(0), grad_above.stride(0),
        0 if live is None else live.stride(0), grad_state.stride(1), grad_above.stride(1),
        size, hidden,
        masked=live is not None, scaled=factors is not None, width=_CELLS, num_warps=4,
    )  # fmt: skip


class Attend:
    """Attention kernels for one batch.

    Args:
        keys: ``(rows, source, hidden)``, contiguous.
        values: likewise.
        lengths: real source positions of each row, ``(rows,)`` int64.
        alpha: in [1, 2].
    """

    def __init__(self, keys: Tensor, values: Tensor, lengths: Tensor, alpha: float) -> None:
        self._keys, self._values, self._lengths = keys, values, lengths
        self._alpha = entmax.alpha_of(alpha, keys.shape).given
        self._form = entmax.form_of(alpha, keys.dtype)
        self._power = 0 if alpha == 1 else whole_power(1 / (alpha - 1))
        _, source, hidden = keys.shape
        height = max(entmax.power_of_two(source), 16)
        width = min(_TILE // height, entmax.power_of_two(hidden))
        self._sizes = {
            "source": source, "hidden": hidden, "height": height, "width": width, "num_warps": 8,
        }  # fmt: skip

    def forward(
        self,
        queries: Tensor,
        from_query: Tensor,
        factors: Tensor | None,
        weights: Tensor,
        outputs: Tensor,
        fed: Tensor,
    ) -> None:
        """Take a step, as `static_steps.DotAttention.forward` does."""
        _attend_kernel[(len(queries),)](
            queries, self._keys, self._values, from_query,
            queries if factors is None else factors, self._lengths,
            weights, outputs, fed, self._alpha, fed.stride(0),
            scaled=factors is not None, **self._form.constants, **self._sizes,
        )  # fmt: skip

    def backward(
        self,
        grad_outputs: Tensor,
        grad_fed: Tensor,
        outputs: Tensor,
        factors: Tensor | None,
        weights: Tensor,
        grad_plain: Tensor,
        grad_scores: Tensor,
        grad_queries: Tensor,
    ) -> None:
        """Compute the gradient of a step, as `static_steps.DotAttention.backward` does."""
        _attend_backward_kernel[(len(outputs),)](
            grad_outputs, grad_fed, outputs, outputs if factors is None else factors, weights,
            self._keys, self._values, self._lengths,
            grad_plain, grad_scores, grad_queries, self._alpha, grad_fed.stride(0),
            scaled=factors is not None, power=self._power, **self._sizes,
        )  # fmt: skip


def covers(keys: Tensor, alpha: float) -> bool:
    """Return whether the attention kernels take such keys and this alpha."""
    fits = keys.shape[1] <= LONGEST and alpha <= LARGEST_ALPHA
    return fits and keys.dtype in (torch.float32, torch.float64)
