"""The Triton kernel that solves long rows of scores, one a program; triton_rows.py starts it.

Most of the time goes to memory traffic. A row is read in tiles, mostly twice:

1. The first reading finds the maximum of each lane; a lane is a column of the tiles. The threshold
   of the lanes alone is a lower bound of the row's, since leaving scores out lowers a threshold.
   This bound is almost exact.
2. The second reading, mostly from the cache, lists the scores above the bound. These candidates
   contain the support, so Newton's method runs on the list.

If there are more candidates than a list has room for, as with nearly uniform scores, every step of
Newton's method reads the row again. The result is written once; only the candidates' places are
written twice, first with zeros.

triton_row_parts.py explains the arguments. This kernel alone has

    listed_columns                          (rows, room), memory for the columns of each row's
                                            candidates
    room                                    the size of a row's list

In the kernel, ``slot`` is an offset into a list, and the mask ``is_candidate`` marks candidates
among scores or slots. ``all_listed`` says whether a list has room for all candidates of its row; if
not, the list is incomplete and nothing reads it.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_curves import (
    INFINITY,
    STEPS,
    beta_of,
    curve,
    least_threshold,
    newton_step,
    solve_tile,
)
from onmt_entmax.sparse.backends.triton_results import bases, shifted_conjugate
from onmt_entmax.sparse.backends.triton_row_parts import (
    NOT_SPECIALIZED,
    TILES_IN_FLIGHT,
    lower_bound,
    result_of,
)

# The most lanes for which the bound is solved; in wider tiles, a lane has several columns.
_LANES = tl.constexpr(1024)


@triton.jit
def _lane_maxima(scores, n, work: tl.constexpr, width: tl.constexpr):
    """Return the maximum of each column, (1, width), of the tiles in which a row is read."""
    lanes = tl.full((1, width), -INFINITY, work)
    for begin in tl.range(0, n, width, num_stages=TILES_IN_FLIGHT):
        column = begin + tl.arange(0, width)[None, :]
        tile = tl.load(scores + column, mask=column < n, other=-INFINITY).to(work)
        lanes = tl.maximum(lanes, tile)
    return lanes


@triton.jit
def _list_candidates(
    scores, listed_columns, n, maximum, bound, beta,
    log_form: tl.constexpr, power: tl.constexpr, width: tl.constexpr, room: tl.constexpr,
):  # fmt: skip
    """List the columns of scores above the bound while there is room; return how many there are."""
    candidate_count = 0
    for begin in tl.range(0, n, width, num_stages=TILES_IN_FLIGHT):
        column = begin + tl.arange(0, width)
        tile = tl.load(scores + column[None, :], mask=column[None, :] < n, other=-INFINITY)
        _, _, base = curve(tile.to(maximum.dtype) - maximum, bound, beta, log_form, power)
        # Not `base > 0`: nan is a candidate too, so that it reaches the result.
        is_candidate = tl.reshape((base <= 0) == 0, (width,))
        new_candidates = tl.sum(is_candidate.to(tl.int32), 0)
        if (new_candidates > 0) & (candidate_count < room):
            slot = candidate_count + tl.cumsum(is_candidate.to(tl.int32), 0) - 1
            tl.store(listed_columns + slot, column, mask=is_candidate & (slot < room))
        candidate_count += new_candidates
    return candidate_count


@triton.jit
def _load_candidates(scores, listed_columns, candidate_count, maximum, room: tl.constexpr):
    """Return the columns in a list, which of its slots have one, and their scores, each (1, room).

    The maximum is subtracted from the scores; empty slots have -inf.
    """
    slot = tl.arange(0, room)[None, :]
    is_candidate = slot < candidate_count
    column = tl.load(listed_columns + slot, mask=is_candidate, other=0)
    scores = tl.load(scores + column, mask=is_candidate, other=-INFINITY).to(maximum.dtype)
    return column, is_candidate, tl.where(is_candidate, scores - maximum, -INFINITY)


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
    """Return three sums (1, 1) over a long row: of probabilities, of Jacobian weights, the energy.

    The energy is the sum of ``p b``, see `shifted_conjugate`.
    """
    total, weights, energy = threshold * 0.0, threshold * 0.0, threshold * 0.0
    for begin in tl.range(0, n, width, num_stages=TILES_IN_FLIGHT):
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
    """Return the results of :func:`_solve_candidates` from all scores, which every step reads."""
    # In Triton, a loop can only assign to variables that exist before it. Sum and energy belong to
    # the threshold before a step; after the loop they belong to the result, since the last step
    # does not move it.
    threshold, total, energy = bound, bound * 0.0, bound * 0.0
    moves = 1
    steps = 0
    while (moves > 0) & (steps < STEPS):
        total, weights, energy = _row_sums(
            scores, n, maximum, threshold, beta, log_form, power, width
        )
        threshold, better = newton_step(total, weights, threshold, beta, log_form, power)
        moves = tl.max(tl.max(better.to(tl.int32), 1), 0)
        steps += 1
    return threshold, total, energy


@triton.jit
def _write_row(
    scores, out, n, all_listed, maximum, threshold, beta, total,
    result: tl.constexpr, log_form: tl.constexpr, power: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Write the result of a long row from its scores.

    With ``all_listed``, no score is read: all places get the result of a score outside the support,
    and the caller then overwrites the places of the candidates.
    """
    in_float64: tl.constexpr = out.dtype.element_ty == tl.float64
    for begin in range(0, n, width):
        column = begin + tl.arange(0, width)[None, :]
        if all_listed:
            nothing = -INFINITY if result == "logs" else 0.0
            finished = tl.full((1, width), nothing, maximum.dtype)
        else:
            tile = tl.load(scores + column, mask=column < n, other=-INFINITY)
            below = tile.to(maximum.dtype) - maximum
            probability, _, _ = curve(below, threshold, beta, log_form, power)
            finished = result_of(
                below, threshold, probability, beta, total, result, log_form, power, in_float64
            )
        tl.store(out + column, finished, mask=column < n)


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def solve_long(
    scores, out, shifted, maxima, alpha, inner, count, listed_columns, n,
    each_row: tl.constexpr, result: tl.constexpr, conjugate: tl.constexpr, log_form: tl.constexpr,
    power: tl.constexpr, work: tl.constexpr, width: tl.constexpr, room: tl.constexpr,
):  # fmt: skip
    """Solve a long row in each program, reading it in tiles of ``width`` scores."""
    row = tl.program_id(0).to(tl.int64)
    scores += row * n
    out += row * n
    listed_columns += row * room
    row_tile = row + tl.full((1, 1), 0, tl.int64)
    beta = beta_of(alpha, row_tile, inner, count, each_row, work)
    least = least_threshold(beta, log_form, power)

    # The first reading: the maximum, and a lower bound of the threshold.
    lanes = _lane_maxima(scores, n, work, width)
    if width > _LANES:
        lanes = tl.max(tl.reshape(lanes, (width // _LANES, _LANES)), 0, keep_dims=True)
    maximum = tl.max(lanes, 1, keep_dims=True)
    bound = lower_bound(lanes - maximum, least, beta, log_form, power, STEPS)

    # The second one: the candidates.
    candidate_count = _list_candidates(
        scores, listed_columns, n, maximum, bound, beta, log_form, power, width, room
    )
    all_listed = candidate_count <= room
    tl.debug_barrier()  # the threads that read the list are not those that wrote it
    column, is_candidate, candidates = _load_candidates(
        scores, listed_columns, tl.where(all_listed, candidate_count, 0), maximum, room
    )

    if all_listed:
        threshold, total, energy = _solve_candidates(candidates, bound, beta, log_form, power)
    else:
        threshold, total, energy = _solve_again(
            scores, n, maximum, bound, beta, log_form, power, width
        )
    if conjugate:
        tl.store(shifted + row_tile, shifted_conjugate(threshold, least, energy, beta))
        tl.store(maxima + row_tile, maximum)

    _write_row(
        scores, out, n, all_listed, maximum, threshold, beta, total, result, log_form, power, width
    )
    if all_listed:
        tl.debug_barrier()  # the zeros must come first
        in_float64: tl.constexpr = out.dtype.element_ty == tl.float64
        probability, _, _ = curve(candidates, threshold, beta, log_form, power)
        finished = result_of(
            candidates, threshold, probability, beta, total, result, log_form, power, in_float64
        )
        tl.store(out + column, finished, mask=is_candidate)
