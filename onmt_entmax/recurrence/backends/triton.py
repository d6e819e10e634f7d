# mypy: allow-untyped-defs
"""The steps as Triton kernels, one each, for GPUs."""

from __future__ import annotations

import warnings
from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from onmt_entmax.recurrence.backends.contract import StepBackend
from onmt_entmax.recurrence.source_memory import RowSources
from onmt_entmax.sparse.backends.triton_curves import (
    beta_of,
    jacobian_weights,
    least_threshold,
    probabilities_at,
    solve_tile,
)
from onmt_entmax.sparse.backends.triton_launch import alpha_of, form_of

_CELLS = 512  # hidden units of a program
_TILE = 8192  # elements of source vectors in a tile of attention
LONGEST = 512  # source positions in a program of attention


@triton.jit
def _tanh(x):
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def _cell_forward_kernel(
    gates, summand, cell_before, factors, output, hidden_after, cell_after,
    summand_step, summand_row, cell_step, size,
    hidden: tl.constexpr, scaled: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Take one LSTM step for all rows; the second axis of the grid is the direction."""
    direction = tl.program_id(1).to(tl.int64)
    offset = tl.program_id(0) * width + tl.arange(0, width)
    inside = offset < size
    row = offset // hidden
    column = offset % hidden
    gates += direction * (4 * size) + row * (4 * hidden) + column
    summand += direction * summand_step + row * summand_row + column
    input_gate = tl.load(gates, mask=inside, other=0.0)
    input_gate = tl.sigmoid(input_gate + tl.load(summand, mask=inside, other=0.0))
    forget_gate = tl.load(gates + hidden, mask=inside, other=0.0)
    forget_gate = tl.sigmoid(forget_gate + tl.load(summand + hidden, mask=inside, other=0.0))
    candidate = tl.load(gates + 2 * hidden, mask=inside, other=0.0)
    candidate = _tanh(candidate + tl.load(summand + 2 * hidden, mask=inside, other=0.0))
    output_gate = tl.load(gates + 3 * hidden, mask=inside, other=0.0)
    output_gate = tl.sigmoid(output_gate + tl.load(summand + 3 * hidden, mask=inside, other=0.0))
    before = tl.load(cell_before + direction * cell_step + offset, mask=inside, other=0.0)
    cell = forget_gate * before + input_gate * candidate
    state = output_gate * _tanh(cell)
    tl.store(gates, input_gate, mask=inside)
    tl.store(gates + hidden, forget_gate, mask=inside)
    tl.store(gates + 2 * hidden, candidate, mask=inside)
    tl.store(gates + 3 * hidden, output_gate, mask=inside)
    tl.store(cell_after + direction * size + offset, cell, mask=inside)
    tl.store(hidden_after + direction * size + offset, state, mask=inside)
    if scaled:
        state *= tl.load(factors + offset, mask=inside, other=0.0)
    tl.store(output + direction * size + offset, state, mask=inside)


@triton.jit
def _cell_backward_kernel(
    gates, cell_before, cell_after, factors, grad_output, grad_hidden, grad_cell,
    grad_gates, grad_before,
    cell_step, output_step, output_row, hidden_step, hidden_row, grad_cell_step, gates_step, size,
    hidden: tl.constexpr, scaled: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Compute the gradient of `_cell_forward_kernel`."""
    direction = tl.program_id(1).to(tl.int64)
    offset = tl.program_id(0) * width + tl.arange(0, width)
    inside = offset < size
    row = offset // hidden
    column = offset % hidden
    gates += direction * (4 * size) + row * (4 * hidden) + column
    input_gate = tl.load(gates, mask=inside, other=0.0)
    forget_gate = tl.load(gates + hidden, mask=inside, other=0.0)
    candidate = tl.load(gates + 2 * hidden, mask=inside, other=0.0)
    output_gate = tl.load(gates + 3 * hidden, mask=inside, other=0.0)
    before = tl.load(cell_before + direction * cell_step + offset, mask=inside, other=0.0)
    after = tl.load(cell_after + direction * size + offset, mask=inside, other=0.0)
    output_address = grad_output + direction * output_step + row * output_row + column
    grad_of_output = tl.load(output_address, mask=inside, other=0.0)
    if scaled:
        grad_of_output *= tl.load(factors + offset, mask=inside, other=0.0)
    hidden_address = grad_hidden + direction * hidden_step + row * hidden_row + column
    grad_state = tl.load(hidden_address, mask=inside, other=0.0) + grad_of_output
    grad_after = tl.load(grad_cell + direction * grad_cell_step + offset, mask=inside, other=0.0)
    squashed = _tanh(after)
    grad_inside = grad_after + grad_state * output_gate * (1.0 - squashed * squashed)
    grad_gates += direction * gates_step + row * (4 * hidden) + column
    grad_input_gate = grad_inside * candidate * input_gate * (1.0 - input_gate)
    tl.store(grad_gates, grad_input_gate, mask=inside)
    tl.store(
        grad_gates + hidden, grad_inside * before * forget_gate * (1.0 - forget_gate), mask=inside
    )
    grad_candidate = grad_inside * input_gate * (1.0 - candidate * candidate)
    tl.store(grad_gates + 2 * hidden, grad_candidate, mask=inside)
    grad_output_gate = grad_state * squashed * output_gate * (1.0 - output_gate)
    tl.store(grad_gates + 3 * hidden, grad_output_gate, mask=inside)
    tl.store(grad_before + direction * size + offset, grad_inside * forget_gate, mask=inside)


@triton.jit(do_not_specialize=["source"])
def _attend_kernel(
    queries, keys, values, from_query, factors, lengths, weights, outputs, alpha,
    source, hidden: tl.constexpr, scaled: tl.constexpr,
    log_form: tl.constexpr, power: tl.constexpr, work: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Take one step of attention: scores, entmax, context vector, tanh and dropout.

    A program computes one row. It writes weights (rows, source) and outputs (rows, hidden).
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
        offset = (row * source + position[:, None]) * hidden + column[None, :]
        key = tl.load(keys + offset, mask=real[:, None] & inside[None, :], other=0.0)
        scores += tl.sum(key * query[None, :], 1)
    tile = tl.where(real, scores, -float("inf")).to(work)
    tile = tl.reshape(tile, (1, height))
    beta = beta_of(alpha, tl.full((1, 1), 0, tl.int64), 1, 1, False, work)
    below = tile - tl.max(tile, 1, keep_dims=True)
    start = least_threshold(beta, log_form, power)
    threshold, probability, total = solve_tile(below, start, beta, log_form, power)
    probability = probabilities_at(
        below, threshold, probability, beta, total, log_form, power, in_float64=False
    )
    weight = tl.reshape(probability, (height,)).to(keys.dtype.element_ty)
    tl.store(weights + row * source + position, weight, mask=position < source)
    for begin in range(0, hidden, width):
        column = begin + tl.arange(0, width)
        inside = column < hidden
        offset = (row * source + position[:, None]) * hidden + column[None, :]
        value = tl.load(values + offset, mask=real[:, None] & inside[None, :], other=0.0)
        output = tl.sum(value * weight[:, None], 0)
        output += tl.load(from_query + row * hidden + column, mask=inside, other=0.0)
        output = _tanh(output)
        if scaled:
            output *= tl.load(factors + row * hidden + column, mask=inside, other=0.0)
        tl.store(outputs + row * hidden + column, output, mask=inside)


@triton.jit(do_not_specialize=["source"])
def _attend_backward_kernel(
    grad_outputs, outputs, factors, weights, keys, values, lengths,
    grad_plain, grad_scores, grad_queries, alpha,
    output_row, source, hidden: tl.constexpr, scaled: tl.constexpr,
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
        grad = tl.load(grad_outputs + row * output_row + column, mask=inside, other=0.0)
        output = tl.load(outputs + row * hidden + column, mask=inside, other=0.0)
        if scaled:
            factor = tl.load(factors + row * hidden + column, mask=inside, other=0.0)
            output = tl.where(factor == 0, 0.0, output / tl.where(factor == 0, 1.0, factor))
            grad *= factor
        grad *= 1.0 - output * output
        tl.store(grad_plain + row * hidden + column, grad, mask=inside)
        offset = (row * source + position[:, None]) * hidden + column[None, :]
        value = tl.load(values + offset, mask=real[:, None] & inside[None, :], other=0.0)
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
        offset = (row * source + position[:, None]) * hidden + column[None, :]
        key = tl.load(keys + offset, mask=real[:, None] & inside[None, :], other=0.0)
        grad = tl.sum(key * grad_score[:, None], 0)
        tl.store(grad_queries + row * hidden + column, grad, mask=inside)


class TritonBackend(StepBackend):
    """The steps as one kernel each, for float32 and float64 on a GPU.

    Attention is for alphas up to 2, and at most `LONGEST` source positions.
    """

    @staticmethod
    def cell_forward(
        gates: Tensor, summand: Tensor, cell: Tensor, factors: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        output, hidden, after = (cell.new_empty(cell.shape) for _ in range(3))
        gates = gates.to(cell.dtype)
        grid, size = _grid(cell)
        _cell_forward_kernel[grid](
            gates, summand, cell, gates if factors is None else factors, output, hidden, after,
            _step(summand), summand.stride(-2), _step(cell), size,
            cell.size(-1), scaled=factors is not None, width=_CELLS, num_warps=4,
        )  # fmt: skip
        return gates, output, hidden, after

    @staticmethod
    def cell_backward(
        activations: Tensor,
        cell: Tensor,
        cell_after: Tensor,
        factors: Tensor | None,
        grads: tuple[Tensor, Tensor, Tensor],
        grad_gates: Tensor,
    ) -> Tensor:
        before = cell.new_empty(cell.shape)
        grid, size = _grid(cell)
        output, hidden, after = (g if g.stride(-1) == 1 else g.contiguous() for g in grads)
        _cell_backward_kernel[grid](
            activations, cell, cell_after, activations if factors is None else factors,
            output, hidden, after, grad_gates, before,
            _step(cell), _step(output), output.stride(-2), _step(hidden), hidden.stride(-2),
            _step(after), _step(grad_gates), size,
            cell.size(-1), scaled=factors is not None, width=_CELLS, num_warps=4,
        )  # fmt: skip
        return before

    @staticmethod
    def attend(
        sources: RowSources,
        query: Tensor,
        projected: Tensor,
        factors: Tensor | None,
        weights: Tensor,
    ) -> Tensor:
        output = torch.empty_like(query)
        keys, values, lengths = sources.by_row(len(query))
        _attend_kernel[(len(query),)](
            query, keys, values, projected, query if factors is None else factors, lengths,
            weights, output, alpha_of(sources.alpha, keys.shape).given, scaled=factors is not None,
            **form_of(sources.alpha, keys.dtype).constants, **_sizes(keys),
        )  # fmt: skip
        return output

    @staticmethod
    def attend_backward(
        sources: RowSources,
        query: Tensor,
        factors: Tensor | None,
        weights: Tensor,
        output: Tensor,
        grad_output: Tensor,
        grad_projected: Tensor,
        grad_scores: Tensor,
    ) -> Tensor:
        if grad_output.stride(1) != 1:
            grad_output = grad_output.contiguous()
        keys, values, lengths = sources.by_row(len(query))
        grad_query = torch.empty_like(query)
        _attend_backward_kernel[(len(query),)](
            grad_output, output, output if factors is None else factors, weights,
            keys, values, lengths, grad_projected, grad_scores, grad_query,
            alpha_of(sources.alpha, keys.shape).given, grad_output.stride(0),
            scaled=factors is not None, power=max(form_of(sources.alpha, keys.dtype).power, 0),
            **_sizes(keys),
        )  # fmt: skip
        return grad_query


def _step(tensor: Tensor) -> int:
    """Return the stride of directions."""
    return tensor.stride(0) if tensor.dim() == 3 else 0


def _grid(cell: Tensor) -> tuple[tuple[int, int], int]:
    """Return the grid of a kernel of cells, and the cells of a direction."""
    size = cell.size(-2) * cell.size(-1)
    return (-(-size // _CELLS), cell.numel() // size), size


def _sizes(keys: Tensor) -> dict[str, int]:
    _, source, hidden = keys.shape
    height = max(triton.next_power_of_2(source), 16)
    width = min(_TILE // height, triton.next_power_of_2(hidden))
    return {
        "source": source, "hidden": hidden, "height": height, "width": width, "num_warps": 8,
    }  # fmt: skip


@cache
def start(device: torch.device) -> bool:
    """Return whether kernels start on a device; a failure is a warning."""
    cell = torch.zeros(1, 1, device=device)
    gates = torch.zeros(1, 4, device=device)
    try:
        TritonBackend.cell_forward(gates, gates, cell, None)
    except Exception as error:
        warnings.warn(f"PyTorch runs the steps of LSTMs, slower: {error}", RuntimeWarning, 2)
        return False
    return True
