"""The Triton kernels of a step, LSTM cells and attention, and their gradients.

triton.py starts them.

Tensors are contiguous in their last dimension, ``hidden``. Arguments of the kernels of cells:

    gates, grad_gates                       (directions, rows, 4 * hidden), in the order input,
                                            forget, candidate, output; ``gates`` are products, and
                                            after the step activations
    summand                                 (directions, rows, 4 * hidden), with strides of its own
    factors                                 of dropout, (rows, hidden); unread unless ``scaled``
    all other tensors                       (directions, rows, hidden)
    ..._plane, ..._row                      strides of directions and rows, in elements
    size                                    rows * hidden

Arguments of those of attention:

    queries, projected, outputs, factors    (rows, hidden); ``projected`` are the projected queries
    grad_outputs, grad_queries              (rows, hidden)
    grad_projected                          (rows, hidden), the gradient before the tanh
    keys, values                            (rows, source, hidden)
    weights, grad_scores                    (rows, source)
    lengths                                 (rows,), of the sources
    alpha, log_form, power, work            see `RowAlphas` and `Form` of sparse/backends
    height, width                           positions and columns of a tile of source vectors

Masks are ``inside`` (there is such a column, or a cell) and ``real`` (a position is no padding).
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_curves import (
    INFINITY,
    beta_of,
    jacobian_weights,
    least_threshold,
    probabilities_at,
    solve_tile,
)


@triton.jit
def _tanh(x):
    """Return tanh by the logistic function: Triton has no tanh for all devices."""
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def _load_sum(product, summand, inside):
    """Return the input of a gate, its product plus its summand."""
    return tl.load(product, mask=inside, other=0.0) + tl.load(summand, mask=inside, other=0.0)


@triton.jit
def cell_forward_kernel(
    gates, summand, cell_before, factors, output, hidden_after, cell_after,
    summand_plane, summand_row, cell_plane, size,
    hidden: tl.constexpr, scaled: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Take one LSTM step for all rows; write the activations over the gates.

    The second axis of the grid is the direction.
    """
    direction = tl.program_id(1).to(tl.int64)
    offset = tl.program_id(0) * width + tl.arange(0, width)
    inside = offset < size
    row = offset // hidden
    column = offset % hidden
    gates += direction * (4 * size) + row * (4 * hidden) + column
    summand += direction * summand_plane + row * summand_row + column
    input_gate = tl.sigmoid(_load_sum(gates, summand, inside))
    forget_gate = tl.sigmoid(_load_sum(gates + hidden, summand + hidden, inside))
    candidate = _tanh(_load_sum(gates + 2 * hidden, summand + 2 * hidden, inside))
    output_gate = tl.sigmoid(_load_sum(gates + 3 * hidden, summand + 3 * hidden, inside))
    before = tl.load(cell_before + direction * cell_plane + offset, mask=inside, other=0.0)
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
def cell_backward_kernel(
    gates, cell_before, cell_after, factors, grad_output, grad_hidden, grad_cell,
    grad_gates, grad_before,
    cell_plane, output_plane, output_row, hidden_plane, hidden_row, grad_cell_plane, gates_plane,
    size, hidden: tl.constexpr, scaled: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of `cell_forward_kernel` in gates and cell; ``gates`` are activations.

    The second axis of the grid is the direction.
    """
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
    before = tl.load(cell_before + direction * cell_plane + offset, mask=inside, other=0.0)
    after = tl.load(cell_after + direction * size + offset, mask=inside, other=0.0)
    output_address = grad_output + direction * output_plane + row * output_row + column
    grad_of_output = tl.load(output_address, mask=inside, other=0.0)
    if scaled:
        grad_of_output *= tl.load(factors + offset, mask=inside, other=0.0)
    hidden_address = grad_hidden + direction * hidden_plane + row * hidden_row + column
    grad_state = tl.load(hidden_address, mask=inside, other=0.0) + grad_of_output
    grad_after = tl.load(grad_cell + direction * grad_cell_plane + offset, mask=inside, other=0.0)
    squashed = _tanh(after)
    # The gradient in the new cell state: what arrives in it, and in what the step made of it.
    grad_inside = grad_after + grad_state * output_gate * (1.0 - squashed * squashed)
    grad_gates += direction * gates_plane + row * (4 * hidden) + column
    grad_input_gate = grad_inside * candidate * input_gate * (1.0 - input_gate)
    tl.store(grad_gates, grad_input_gate, mask=inside)
    grad_forget_gate = grad_inside * before * forget_gate * (1.0 - forget_gate)
    tl.store(grad_gates + hidden, grad_forget_gate, mask=inside)
    grad_candidate = grad_inside * input_gate * (1.0 - candidate * candidate)
    tl.store(grad_gates + 2 * hidden, grad_candidate, mask=inside)
    grad_output_gate = grad_state * squashed * output_gate * (1.0 - output_gate)
    tl.store(grad_gates + 3 * hidden, grad_output_gate, mask=inside)
    tl.store(grad_before + direction * size + offset, grad_inside * forget_gate, mask=inside)


@triton.jit(do_not_specialize=["source"])
def attend_kernel(
    queries, keys, values, projected, factors, lengths, weights, outputs, alpha,
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
    tile = tl.where(real, scores, -INFINITY).to(work)
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
        output += tl.load(projected + row * hidden + column, mask=inside, other=0.0)
        output = _tanh(output)
        if scaled:
            output *= tl.load(factors + row * hidden + column, mask=inside, other=0.0)
        tl.store(outputs + row * hidden + column, output, mask=inside)


@triton.jit(do_not_specialize=["source"])
def attend_backward_kernel(
    grad_outputs, outputs, factors, weights, keys, values, lengths,
    grad_projected, grad_scores, grad_queries, alpha,
    output_row, source, hidden: tl.constexpr, scaled: tl.constexpr,
    power: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of `attend_kernel` before the tanh, in the scores, and in the queries.

    A program computes one row. The gradient in the scores is ``s (g - m)``, with the gradient g in
    the weights p, ``s = p ** (2 - alpha)``, and ``m = sum s g / sum s``.
    """
    row = tl.program_id(0).to(tl.int64)
    position = tl.arange(0, height)
    real = position < tl.load(lengths + row)
    grad_weights = tl.zeros((height,), keys.dtype.element_ty)
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
        tl.store(grad_projected + row * hidden + column, grad, mask=inside)
        offset = (row * source + position[:, None]) * hidden + column[None, :]
        value = tl.load(values + offset, mask=real[:, None] & inside[None, :], other=0.0)
        grad_weights += tl.sum(value * grad[None, :], 1)
    probability = tl.load(weights + row * source + position, mask=position < source, other=0.0)
    beta = beta_of(alpha, row, 1, 1, False, keys.dtype.element_ty)
    jacobian = jacobian_weights(probability, beta, power)
    mean = tl.sum(jacobian * grad_weights, 0) / tl.sum(jacobian, 0)
    grad_score = jacobian * (grad_weights - mean)
    tl.store(grad_scores + row * source + position, grad_score, mask=position < source)
    for begin in range(0, hidden, width):
        column = begin + tl.arange(0, width)
        inside = column < hidden
        offset = (row * source + position[:, None]) * hidden + column[None, :]
        key = tl.load(keys + offset, mask=real[:, None] & inside[None, :], other=0.0)
        grad = tl.sum(key * grad_score[:, None], 0)
        tl.store(grad_queries + row * hidden + column, grad, mask=inside)
