"""The Triton kernel that solves short rows of scores; triton_rows.py starts it.

A program solves a group of rows. They are read once, stay in registers, and are written once.
triton_row_parts.py explains the arguments.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_curves import (
    INFINITY,
    NO_POWER,
    beta_of,
    least_threshold,
    solve_tile,
)
from onmt_entmax.sparse.backends.triton_results import bases, shifted_conjugate
from onmt_entmax.sparse.backends.triton_row_parts import NOT_SPECIALIZED, lower_bound, result_of

# In tiles of at least this width, a step of Newton's method on all scores is slow if each power
# takes an exponential and a logarithm. So the method starts from a better bound than the least
# threshold: the result of this many steps on this many lanes. A lane is the maximum of several
# scores.
_BOUND_FROM_WIDTH = tl.constexpr(256)
_BOUND_LANES = tl.constexpr(32)
_BOUND_STEPS = tl.constexpr(3)


@triton.jit
def _starting_thresholds(
    below, least, beta, log_form: tl.constexpr, power: tl.constexpr, work: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Return lower bounds ``(height, 1)`` of the thresholds of rows.

    ``below`` are scores minus their maximum, ``(height, width)``; ``least`` are the least possible
    thresholds, ``(height, 1)``.
    """
    start = least
    # The brackets are for Triton 3.2, which refuses `a and b and c`.
    if power == NO_POWER and (work == tl.float32 and width >= _BOUND_FROM_WIDTH):
        lanes = tl.max(tl.reshape(below, (height, width // _BOUND_LANES, _BOUND_LANES)), 1)
        start = lower_bound(lanes, least, beta, log_form, power, _BOUND_STEPS)
    return start


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def solve_short(
    scores, out, shifted, maxima, alpha, inner, count, rows, n,
    each_row: tl.constexpr, result: tl.constexpr, conjugate: tl.constexpr, log_form: tl.constexpr,
    power: tl.constexpr, work: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Solve rows that fit in registers, ``height`` rows a program.

    In the code, tensors with a number for each score are ``(height, width)``, tensors with a number
    for each row ``(height, 1)``.
    """
    row = (tl.program_id(0) * height + tl.arange(0, height))[:, None]
    column = tl.arange(0, width)[None, :]
    offset = row.to(tl.int64) * n + column
    row_exists = row < rows
    exists = row_exists & (column < n)
    row = tl.minimum(row, rows - 1)  # rows beyond the last have no alpha to load
    beta = beta_of(alpha, row, inner, count, each_row, work)
    tile = tl.load(scores + offset, mask=exists, other=-INFINITY).to(work)
    maximum = tl.max(tile, 1, keep_dims=True)
    below = tile - maximum

    least = least_threshold(beta, log_form, power)
    start = _starting_thresholds(below, least, beta, log_form, power, work, height, width)
    threshold, probability, total = solve_tile(below, start, beta, log_form, power)

    if conjugate:
        base = bases(below, threshold, probability, beta, log_form, power)
        energy = tl.sum(probability * base, 1, keep_dims=True)
        dual = shifted_conjugate(threshold, least, energy, beta)
        tl.store(shifted + row, dual, mask=row_exists)
        tl.store(maxima + row, maximum, mask=row_exists)
    in_float64: tl.constexpr = out.dtype.element_ty == tl.float64
    finished = result_of(
        below, threshold, probability, beta, total, result, log_form, power, in_float64
    )
    tl.store(out + offset, finished, mask=exists)
