r"""The Triton kernels of rows of scores; triton_rows.py starts them.

triton_curves.py has the mathematics and its symbols. A program solves a group of short rows or one
long row.

The time goes to memory traffic. Short rows are read once and stay in registers. A long row is read
once for its maximum and for the maximum of each lane, a column of the tiles that it is read by: the
threshold of these few is a lower bound for the row, and almost exact. A second pass, mostly from
the cache, lists the scores above the bound, and Newton's method runs on the list. Only a row with
more of them than the list holds (nearly uniform scores) is read again in every step. The result is
written once.

Arguments of the kernels:

    scores, out, probabilities, incoming    contiguous, (rows, n); ``incoming`` are gradients
    shifted, maxima, alpha_out              (rows,)
    alpha, inner, count, each_row           see `RowAlphas`
    log_form, power, work                   see `Form`
    result                                  "probabilities" or "logs", which go to ``out``
    conjugate                               whether to write ``shifted`` and ``maxima``
    of_alpha                                whether to write ``alpha_out``, gradients in alpha
    height, width                           rows and columns of a program's tile
    columns, room                           memory of a row's list of candidates, and its size

Inside, ``place`` is an offset into a tensor, ``column`` one into a row; ``there``, ``row_exists``
and ``is_candidate`` are masks.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_curves import (
    INFINITY,
    NO_POWER,
    STEPS,
    alpha_terms,
    bases,
    beta_of,
    curve,
    jacobian_weights,
    least_threshold,
    logs_at,
    newton_step,
    probabilities_at,
    shifted_conjugate,
    solve_tile,
)

# Tiles of a long row that are loaded at once, and lanes that its bound is solved for.
_AHEAD = tl.constexpr(3)
_LANES = tl.constexpr(1024)
# Short rows from this width on start from a bound too: so many steps on so many lanes.
_BOUND_FROM_WIDTH = tl.constexpr(256)
_BOUND_LANES = tl.constexpr(32)
_BOUND_STEPS = tl.constexpr(3)
# Kernels compile anew for a number that is 1 or divisible by 16; for these it need not.
_VARIOUS = ("inner", "count", "rows")


@triton.jit
def _lower_bound(
    lanes, least, beta, log_form: tl.constexpr, power: tl.constexpr, most: tl.constexpr
):  # fmt: skip
    """Return a lower bound of the threshold: about that of some scores, the lanes (rows, lanes)."""
    bound, _, _ = solve_tile(lanes, least, beta, log_form, power, most)
    # Against rounding, which could raise the bound above the threshold: about 40 units in the last
    # place of the numbers that it is computed from.
    slack = 1e-14 if lanes.dtype == tl.float64 else 4e-6
    return tl.maximum(bound - slack * (1.0 - least + tl.abs(bound)), least)


@triton.jit
def _result(
    below, threshold, probability, beta, total, result: tl.constexpr, log_form: tl.constexpr,
    power: tl.constexpr, in_float64: tl.constexpr,
):  # fmt: skip
    """Return what is to be stored of scores at the threshold of their row."""
    if result == "logs":
        return logs_at(below, threshold, probability, beta, total, log_form, power)
    return probabilities_at(below, threshold, probability, beta, total, log_form, power, in_float64)


@triton.jit(do_not_specialize=_VARIOUS)
def solve_short(
    scores, out, shifted, maxima, alpha, inner, count, rows, n,
    each_row: tl.constexpr, result: tl.constexpr, conjugate: tl.constexpr, log_form: tl.constexpr,
    power: tl.constexpr, work: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Solve rows that fit in registers, ``height`` a program: one read, one write.

    ``out`` may be the scores.
    """
    row = (tl.program_id(0) * height + tl.arange(0, height))[:, None]
    column = tl.arange(0, width)[None, :]
    place = row.to(tl.int64) * n + column
    row_exists = row < rows
    row = tl.minimum(row, rows - 1)
    beta = beta_of(alpha, row, inner, count, each_row, work)
    there = row_exists & (column < n)
    tile = tl.load(scores + place, mask=there, other=-INFINITY).to(work)
    maximum = tl.max(tile, 1, keep_dims=True)
    below = tile - maximum
    least = least_threshold(beta, log_form, power)
    start = least
    # Triton 3.2 refuses `a and b and c`.
    if power == NO_POWER and (work == tl.float32 and width >= _BOUND_FROM_WIDTH):
        # A step on all scores takes longer than these on a few.
        lanes = tl.max(tl.reshape(below, (height, width // _BOUND_LANES, _BOUND_LANES)), 1)
        start = _lower_bound(lanes, least, beta, log_form, power, _BOUND_STEPS)
    threshold, probability, total = solve_tile(below, start, beta, log_form, power)
    if conjugate:
        base = bases(below, threshold, probability, beta, log_form, power)
        energy = tl.sum(probability * base, 1, keep_dims=True)
        dual = shifted_conjugate(threshold, least, energy, beta)
        tl.store(shifted + row, dual, mask=row_exists)
        tl.store(maxima + row, maximum, mask=row_exists)
    in_float64: tl.constexpr = out.dtype.element_ty == tl.float64
    finished = _result(
        below, threshold, probability, beta, total, result, log_form, power, in_float64
    )
    tl.store(out + place, finished, mask=there)


@triton.jit
def _lane_maxima(scores, n, work: tl.constexpr, width: tl.constexpr):
    """Return the maximum of each column of the tiles (1, width) that a row is read by."""
    lanes = tl.full((1, width), -INFINITY, work)
    for begin in tl.range(0, n, width, num_stages=_AHEAD):
        column = begin + tl.arange(0, width)[None, :]
        tile = tl.load(scores + column, mask=column < n, other=-INFINITY).to(work)
        lanes = tl.maximum(lanes, tile)
    return lanes


@triton.jit
def _list_candidates(
    scores, columns, n, maximum, bound, beta,
    log_form: tl.constexpr, power: tl.constexpr, width: tl.constexpr, room: tl.constexpr,
):  # fmt: skip
    """List the columns of scores above the bound while there is room; return how many there are."""
    number = 0
    for begin in tl.range(0, n, width, num_stages=_AHEAD):
        column = begin + tl.arange(0, width)
        tile = tl.load(scores + column[None, :], mask=column[None, :] < n, other=-INFINITY)
        _, _, base = curve(tile.to(maximum.dtype) - maximum, bound, beta, log_form, power)
        # A comparison under which nan is a candidate.
        is_candidate = tl.reshape((base <= 0) == 0, (width,))
        here = tl.sum(is_candidate.to(tl.int32), 0)
        if (here > 0) & (number < room):
            slot = number + tl.cumsum(is_candidate.to(tl.int32), 0) - 1
            tl.store(columns + slot, column, mask=is_candidate & (slot < room))
        number += here
    return number


@triton.jit
def _solve_candidates(candidates, bound, beta, log_form: tl.constexpr, power: tl.constexpr):
    """Return threshold, sum of probabilities and energy (1, 1) of a row, from its candidates."""
    threshold, probability, total = solve_tile(candidates, bound, beta, log_form, power)
    base = bases(candidates, threshold, probability, beta, log_form, power)
    return threshold, total, tl.sum(probability * base, 1, keep_dims=True)


@triton.jit
def _row_sums(
    scores, n, maximum, threshold, beta,
    log_form: tl.constexpr, power: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Return sums (1, 1) over a long row: of probabilities, Jacobian weights, and the energy."""
    total, weights, energy = threshold * 0.0, threshold * 0.0, threshold * 0.0
    for begin in tl.range(0, n, width, num_stages=_AHEAD):
        column = begin + tl.arange(0, width)[None, :]
        tile = tl.load(scores + column, mask=column < n, other=-INFINITY).to(maximum.dtype)
        probability, weight, base = curve(tile - maximum, threshold, beta, log_form, power)
        total += tl.sum(probability, 1, keep_dims=True)
        weights += tl.sum(weight, 1, keep_dims=True)
        energy += tl.sum(probability * base, 1, keep_dims=True)
    return total, weights, energy


@triton.jit
def _solve_again(
    scores, n, maximum, bound, beta,
    log_form: tl.constexpr, power: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Return what :func:`_solve_candidates` does, from all scores, read in every step."""
    # A loop of Triton may change only what exists before it.
    threshold, total, energy = bound, bound * 0.0, bound * 0.0
    going = 1
    steps = 0
    while (going > 0) & (steps < STEPS):
        total, weights, energy = _row_sums(
            scores, n, maximum, threshold, beta, log_form, power, width
        )
        threshold, better = newton_step(total, weights, threshold, beta, log_form, power)
        going = tl.max(tl.max(better.to(tl.int32), 1), 0)
        steps += 1
    return threshold, total, energy


@triton.jit
def _write_row(
    scores, out, n, only_candidates, maximum, threshold, beta, total,
    result: tl.constexpr, log_form: tl.constexpr, power: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Write the result of a long row from its scores.

    With ``only_candidates`` it is that outside the support everywhere; the caller writes the rest.
    """
    in_float64: tl.constexpr = out.dtype.element_ty == tl.float64
    for begin in range(0, n, width):
        column = begin + tl.arange(0, width)[None, :]
        if only_candidates:
            nothing = -INFINITY if result == "logs" else 0.0
            finished = tl.full((1, width), nothing, maximum.dtype)
        else:
            tile = tl.load(scores + column, mask=column < n, other=-INFINITY)
            below = tile.to(maximum.dtype) - maximum
            probability, _, _ = curve(below, threshold, beta, log_form, power)
            finished = _result(
                below, threshold, probability, beta, total, result, log_form, power, in_float64
            )
        tl.store(out + column, finished, mask=column < n)


@triton.jit(do_not_specialize=_VARIOUS)
def solve_long(
    scores, out, shifted, maxima, alpha, inner, count, columns, n,
    each_row: tl.constexpr, result: tl.constexpr, conjugate: tl.constexpr, log_form: tl.constexpr,
    power: tl.constexpr, work: tl.constexpr, width: tl.constexpr, room: tl.constexpr,
):  # fmt: skip
    """Solve long rows, one a program, which is read in tiles of ``width`` scores."""
    row = tl.program_id(0).to(tl.int64)
    scores += row * n
    out += row * n
    columns += row * room
    single = row + tl.full((1, 1), 0, tl.int64)
    beta = beta_of(alpha, single, inner, count, each_row, work)
    least = least_threshold(beta, log_form, power)
    lanes = _lane_maxima(scores, n, work, width)
    if width > _LANES:
        lanes = tl.max(tl.reshape(lanes, (width // _LANES, _LANES)), 0, keep_dims=True)
    maximum = tl.max(lanes, 1, keep_dims=True)
    bound = _lower_bound(lanes - maximum, least, beta, log_form, power, STEPS)
    number = _list_candidates(
        scores, columns, n, maximum, bound, beta, log_form, power, width, room
    )
    fit = number <= room
    tl.debug_barrier()  # other threads read the list than wrote it
    slot = tl.arange(0, room)[None, :]
    is_candidate = slot < tl.where(fit, number, 0)
    column = tl.load(columns + slot, mask=is_candidate, other=0)
    candidates = tl.load(scores + column, mask=is_candidate, other=-INFINITY).to(work) - maximum
    candidates = tl.where(is_candidate, candidates, -INFINITY)
    if fit:
        threshold, total, energy = _solve_candidates(candidates, bound, beta, log_form, power)
    else:
        threshold, total, energy = _solve_again(
            scores, n, maximum, bound, beta, log_form, power, width
        )
    if conjugate:
        tl.store(shifted + single, shifted_conjugate(threshold, least, energy, beta))
        tl.store(maxima + single, maximum)
    _write_row(scores, out, n, fit, maximum, threshold, beta, total, result, log_form, power, width)
    if fit:
        tl.debug_barrier()  # the zeros must come first
        in_float64: tl.constexpr = out.dtype.element_ty == tl.float64
        probability, _, _ = curve(candidates, threshold, beta, log_form, power)
        finished = _result(
            candidates, threshold, probability, beta, total, result, log_form, power, in_float64
        )
        tl.store(out + column, finished, mask=is_candidate)


@triton.jit
def _load_weighted(
    probabilities, incoming, place, there, beta, power: tl.constexpr, work: tl.constexpr
):  # fmt: skip
    """Return probabilities, their Jacobian weights and incoming gradients at some places."""
    probability = tl.load(probabilities + place, mask=there, other=0.0).to(work)
    gradient = tl.load(incoming + place, mask=there, other=0.0).to(work)
    return probability, jacobian_weights(probability, beta, power), gradient


@triton.jit
def _in_alpha(probability, weight, gradient, mean, beta):
    """Return the parts of a gradient in alpha, of which those outside the support are 0.

    They would be nan if ``mean - gradient`` were infinite there.
    """
    terms = alpha_terms(probability, weight, beta) * (mean - gradient)
    return tl.where(probability == 0, 0.0, terms)


@triton.jit(do_not_specialize=_VARIOUS)
def gradient_short(
    probabilities, incoming, out, alpha, inner, count, alpha_out, rows, n,
    each_row: tl.constexpr, power: tl.constexpr, of_alpha: tl.constexpr, work: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Write gradients ``s (g - sum s g / sum s)`` with Jacobian weights s: two reads, one write.

    A program has ``height`` rows.
    """
    row = (tl.program_id(0) * height + tl.arange(0, height))[:, None]
    column = tl.arange(0, width)[None, :]
    place = row.to(tl.int64) * n + column
    there = (row < rows) & (column < n)
    beta = beta_of(alpha, tl.minimum(row, rows - 1), inner, count, each_row, work)
    probability, weight, gradient = _load_weighted(
        probabilities, incoming, place, there, beta, power, work
    )
    mean = tl.sum(weight * gradient, 1, keep_dims=True) / tl.sum(weight, 1, keep_dims=True)
    tl.store(out + place, weight * (gradient - mean), mask=there)
    if of_alpha:
        terms = _in_alpha(probability, weight, gradient, mean, beta)
        tl.store(alpha_out + row, tl.sum(terms, 1, keep_dims=True), mask=row < rows)


@triton.jit(do_not_specialize=_VARIOUS)
def gradient_long(
    probabilities, incoming, out, alpha, inner, count, alpha_out, n,
    each_row: tl.constexpr, power: tl.constexpr, of_alpha: tl.constexpr, work: tl.constexpr,
    width: tl.constexpr,
):  # fmt: skip
    """Write what :func:`gradient_short` does, of one long row a program."""
    row = tl.program_id(0).to(tl.int64)
    probabilities += row * n
    incoming += row * n
    out += row * n
    beta = beta_of(alpha, row, inner, count, each_row, work)
    weights, weighted = tl.zeros((width,), work), tl.zeros((width,), work)
    for begin in tl.range(0, n, width, num_stages=_AHEAD):
        column = begin + tl.arange(0, width)
        _, weight, gradient = _load_weighted(
            probabilities, incoming, column, column < n, beta, power, work
        )
        weights += weight
        weighted += weight * gradient
    mean = tl.sum(weighted, 0) / tl.sum(weights, 0)
    in_alpha = tl.zeros((width,), work)
    for begin in tl.range(0, n, width, num_stages=_AHEAD):
        column = begin + tl.arange(0, width)
        probability, weight, gradient = _load_weighted(
            probabilities, incoming, column, column < n, beta, power, work
        )
        if of_alpha:
            in_alpha += _in_alpha(probability, weight, gradient, mean, beta)
        tl.store(out + column, weight * (gradient - mean), mask=column < n)
    if of_alpha:
        tl.store(alpha_out + row, tl.sum(in_alpha, 0))
