# mypy: disable-error-code="no-untyped-def"
"""Triton kernels of the static recurrences: cells of an LSTM, and one step of attention.

A step of a recurrence on a GPU is bound by the number of its kernels. So everything between two
matrix products is one kernel here, which writes each result where the next product reads it.
"""

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_kernels import (
    _beta_of,
    _curve,
    _finished,
    _least,
    _solve,
    _weights,
)


@triton.jit
def _tanh(x):
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit(do_not_specialize=["live_step"])
def cell_forward(
    gates, cell_before, cell_after, hidden_before, hidden_after, second, live, factors,
    gates_step, cell_before_step, cell_after_step, hidden_before_step, hidden_after_step, live_step,
    after_row, second_row, size, hidden: tl.constexpr,
    masked: tl.constexpr, has_second: tl.constexpr, scaled: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """One step of an LSTM for all rows, a direction in each second place of the grid.

    ``gates`` (rows, 4 * hidden) become their activations. Where ``masked``, rows that are not live
    keep their states. The hidden states also go to ``second``, times ``factors`` if ``scaled``.
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
def cell_backward(
    gates, cell_before, cell_after, grad_state, grad_above, grad_cell, live, factors,
    gates_step, cell_before_step, cell_after_step, grad_above_step, live_step,
    state_row, above_row, size, hidden: tl.constexpr,
    masked: tl.constexpr, scaled: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Gradient of `cell_forward`.

    Activations ``gates`` become the gradients before them, and ``grad_cell`` that of the cell state
    before the step. Where ``masked``, ``grad_state`` becomes what rows that are not live pass on.
    """
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
    # Both states have a direction after the other, as the gradient of the cell states has.
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
def attend(
    queries, keys, values, from_query, factors, lengths, weights, outputs, fed, alpha,
    fed_row, source, hidden: tl.constexpr, scaled: tl.constexpr,
    log_form: tl.constexpr, power: tl.constexpr, work: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """One step of attention, a sentence a program: scores, entmax, mixture, tanh and dropout.

    Weights (rows, source) and outputs (rows, hidden) are kept; the outputs also go to ``fed``.
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
    beta = _beta_of(alpha, tl.full((1, 1), 0, tl.int64), 1, 1, False, work)
    below = tile - tl.max(tile, 1, keep_dims=True)
    start, ceiling = _least(beta, source, log_form, power)
    threshold = _solve(below, start, ceiling, beta, log_form, power)
    probability, _, _ = _curve(below, threshold, beta, log_form, power)
    total = tl.sum(probability, 1, keep_dims=True)
    probability = _finished(below, threshold, beta, total, "probabilities", log_form, power)
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
def attend_backward(
    grad_outputs, grad_fed, outputs, factors, weights, keys, values, lengths,
    grad_plain, grad_scores, grad_queries, alpha,
    fed_row, source, hidden: tl.constexpr, scaled: tl.constexpr,
    power: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Gradient of `attend`: before the tanh, of the scores, and of the queries through these."""
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
    beta = _beta_of(alpha, row, 1, 1, False, keys.dtype.element_ty)
    slope = _weights(probability, beta, power)
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
