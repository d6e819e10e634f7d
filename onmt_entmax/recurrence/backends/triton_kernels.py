"""The Triton kernels of a step, LSTM cells and attention, and their gradients.

triton.py starts them; contract.py says what a step computes.

Tensors are contiguous in their last dimension, ``hidden``. Arguments of the LSTM cells' kernels:

    gates, grad_gates                       (directions, rows, 4 * hidden), in the order input,
                                            forget, candidate, output; ``gates`` are products, and
                                            after the step activations
    summand                                 (directions, rows, 4 * hidden)
    factors                                 of dropout, (rows, hidden); unread unless ``scaled``
    all other tensors                       (directions, rows, hidden)
    ..._direction_stride, ..._row_stride    in elements; tensors without such arguments are
                                            contiguous
    size                                    rows * hidden
    width                                   hidden units that a program computes

Arguments of the attention's kernels:

    queries, projected, outputs, factors    (rows, hidden); ``projected`` are the projected queries
    grad_outputs, grad_queries              (rows, hidden)
    grad_projected                          (rows, hidden), the gradient with respect to the
                                            argument of the tanh
    keys, values                            (rows, source, hidden)
    weights, grad_scores                    (rows, source)
    lengths                                 (rows,), of the sources
    alpha                                   `beta_bits` of alpha, see sparse/backends
    log_form, power, work                   see `Form` there
    height, width                           positions and columns of a tile of source vectors

The mask ``inside`` says which columns or cells of a tile exist. The mask ``real`` says which source
positions are not padding.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_curves import (
    INFINITY,
    beta_of,
    least_threshold,
    solve_tile,
)
from onmt_entmax.sparse.backends.triton_jacobian import jacobian_weights
from onmt_entmax.sparse.backends.triton_results import probabilities_at


@triton.jit
def _tanh(x):
    """Return tanh by the logistic function: Triton has no tanh for all devices."""
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def _load_sum(product, summand, inside):
    """Return the input of a gate: its product plus its summand."""
    return tl.load(product, mask=inside, other=0.0) + tl.load(summand, mask=inside, other=0.0)


@triton.jit
def cell_forward_kernel(
    gates, summand, cell, factors, output, hidden_after, cell_after,
    summand_direction_stride, summand_row_stride, cell_direction_stride, size,
    hidden: tl.constexpr, scaled: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Take one LSTM step for all rows, and overwrite the gates with their activations.

    The second axis of the grid is the direction.
    """
    direction = tl.program_id(1).to(tl.int64)
    offset = tl.program_id(0) * width + tl.arange(0, width)
    inside = offset < size
    row = offset // hidden
    column = offset % hidden
    gates += direction * (4 * size) + row * (4 * hidden) + column
    summand += direction * summand_direction_stride + row * summand_row_stride + column
    input_gate = tl.sigmoid(_load_sum(gates, summand, inside))
    forget_gate = tl.sigmoid(_load_sum(gates + hidden, summand + hidden, inside))
    candidate = _tanh(_load_sum(gates + 2 * hidden, summand + 2 * hidden, inside))
    output_gate = tl.sigmoid(_load_sum(gates + 3 * hidden, summand + 3 * hidden, inside))
    before = tl.load(cell + direction * cell_direction_stride + offset, mask=inside, other=0.0)
    after = forget_gate * before + input_gate * candidate
    state = output_gate * _tanh(after)
    tl.store(gates, input_gate, mask=inside)
    tl.store(gates + hidden, forget_gate, mask=inside)
    tl.store(gates + 2 * hidden, candidate, mask=inside)
    tl.store(gates + 3 * hidden, output_gate, mask=inside)
    tl.store(cell_after + direction * size + offset, after, mask=inside)
    tl.store(hidden_after + direction * size + offset, state, mask=inside)
    if scaled:
        state *= tl.load(factors + offset, mask=inside, other=0.0)
    tl.store(output + direction * size + offset, state, mask=inside)


@triton.jit
def cell_backward_kernel(
    activations, cell, cell_after, factors, grad_output, grad_hidden_after, grad_cell_after,
    grad_gates, grad_cell,
    cell_direction_stride, grad_output_direction_stride, grad_output_row_stride,
    grad_hidden_after_direction_stride, grad_hidden_after_row_stride,
    grad_cell_after_direction_stride, grad_cell_after_row_stride, grad_gates_direction_stride,
    size, hidden: tl.constexpr, scaled: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of `cell_forward_kernel` with respect to gates and cell.

    ``activations``, ``(directions, rows, 4 * hidden)``, are those that the forward kernel left in
    the gates. The second axis of the grid is the direction.
    """
    direction = tl.program_id(1).to(tl.int64)
    offset = tl.program_id(0) * width + tl.arange(0, width)
    inside = offset < size
    row = offset // hidden
    column = offset % hidden
    activations += direction * (4 * size) + row * (4 * hidden) + column
    input_gate = tl.load(activations, mask=inside, other=0.0)
    forget_gate = tl.load(activations + hidden, mask=inside, other=0.0)
    candidate = tl.load(activations + 2 * hidden, mask=inside, other=0.0)
    output_gate = tl.load(activations + 3 * hidden, mask=inside, other=0.0)
    before = tl.load(cell + direction * cell_direction_stride + offset, mask=inside, other=0.0)
    after = tl.load(cell_after + direction * size + offset, mask=inside, other=0.0)

    # The upstream gradients, with respect to the output, the hidden state and the new cell state.
    grad_output += direction * grad_output_direction_stride + row * grad_output_row_stride + column
    arriving = tl.load(grad_output, mask=inside, other=0.0)
    if scaled:
        arriving *= tl.load(factors + offset, mask=inside, other=0.0)
    grad_hidden_after += (
        direction * grad_hidden_after_direction_stride + row * grad_hidden_after_row_stride + column
    )
    grad_state = tl.load(grad_hidden_after, mask=inside, other=0.0) + arriving
    grad_cell_after += (
        direction * grad_cell_after_direction_stride + row * grad_cell_after_row_stride + column
    )
    squashed = _tanh(after)
    # The gradient with respect to the new cell state comes directly, and through the hidden state.
    grad_after = tl.load(grad_cell_after, mask=inside, other=0.0)
    grad_after += grad_state * output_gate * (1.0 - squashed * squashed)

    # The gradients with respect to the arguments of the activations.
    grad_gates += direction * grad_gates_direction_stride + row * (4 * hidden) + column
    grad_input_gate = grad_after * candidate * input_gate * (1.0 - input_gate)
    tl.store(grad_gates, grad_input_gate, mask=inside)
    grad_forget_gate = grad_after * before * forget_gate * (1.0 - forget_gate)
    tl.store(grad_gates + hidden, grad_forget_gate, mask=inside)
    grad_candidate = grad_after * input_gate * (1.0 - candidate * candidate)
    tl.store(grad_gates + 2 * hidden, grad_candidate, mask=inside)
    grad_output_gate = grad_state * squashed * output_gate * (1.0 - output_gate)
    tl.store(grad_gates + 3 * hidden, grad_output_gate, mask=inside)
    tl.store(grad_cell + direction * size + offset, grad_after * forget_gate, mask=inside)


@triton.jit
def _load_vectors(vectors, row, position, column, real, inside, source, hidden: tl.constexpr):
    """Return a tile (height, width) of the source vectors of a row, 0 at padding.

    ``vectors`` are (rows, source, hidden); ``position`` and ``real`` have the tile's height,
    ``column`` and ``inside`` its width.
    """
    offset = (row * source + position[:, None]) * hidden + column[None, :]
    return tl.load(vectors + offset, mask=real[:, None] & inside[None, :], other=0.0)


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
        key = _load_vectors(keys, row, position, column, real, inside, source, hidden)
        scores += tl.sum(key * query[None, :], 1)

    # Entmax. Its functions take tiles; this one has a single row, (1, height).
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

    # The context vector, plus the projected query.
    for begin in range(0, hidden, width):
        column = begin + tl.arange(0, width)
        inside = column < hidden
        value = _load_vectors(values, row, position, column, real, inside, source, hidden)
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
    grad_outputs_row_stride, source, hidden: tl.constexpr, scaled: tl.constexpr,
    power: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Compute three gradients: with respect to the argument of the tanh, the scores, the queries.

    A program computes one row of each. With the gradient g with respect to the weights p,
    ``s = p ** (2 - alpha)``, and ``m = sum s g / sum s``, the gradient with respect to the scores
    is ``s (g - m)``.
    """
    row = tl.program_id(0).to(tl.int64)
    position = tl.arange(0, height)
    real = position < tl.load(lengths + row)
    grad_weights = tl.zeros((height,), keys.dtype.element_ty)
    for begin in range(0, hidden, width):
        column = begin + tl.arange(0, width)
        inside = column < hidden
        address = grad_outputs + row * grad_outputs_row_stride + column
        grad = tl.load(address, mask=inside, other=0.0)
        output = tl.load(outputs + row * hidden + column, mask=inside, other=0.0)
        if scaled:  # the output of dropped units does not matter: their gradient is 0
            factor = tl.load(factors + row * hidden + column, mask=inside, other=0.0)
            output = tl.where(factor == 0, 0.0, output / tl.where(factor == 0, 1.0, factor))
            grad *= factor
        grad *= 1.0 - output * output
        tl.store(grad_projected + row * hidden + column, grad, mask=inside)
        value = _load_vectors(values, row, position, column, real, inside, source, hidden)
        grad_weights += tl.sum(value * grad[None, :], 1)

    # The gradient of entmax.
    probability = tl.load(weights + row * source + position, mask=position < source, other=0.0)
    beta = beta_of(alpha, row, 1, 1, False, keys.dtype.element_ty)
    jacobian = jacobian_weights(probability, beta, power)
    mean = tl.sum(jacobian * grad_weights, 0) / tl.sum(jacobian, 0)
    grad_score = jacobian * (grad_weights - mean)
    tl.store(grad_scores + row * source + position, grad_score, mask=position < source)

    for begin in range(0, hidden, width):
        column = begin + tl.arange(0, width)
        inside = column < hidden
        key = _load_vectors(keys, row, position, column, real, inside, source, hidden)
        grad = tl.sum(key * grad_score[:, None], 0)
        tl.store(grad_queries + row * hidden + column, grad, mask=inside)
