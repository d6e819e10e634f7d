# mypy: allow-untyped-defs
"""Triton kernels of the static output loss, and the function that starts them.

One kernel computes losses, statistics and gradients of rows of scores. Importing this module
imports Triton.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from onmt_entmax.sparse.backends import triton as entmax
from onmt_entmax.sparse.backends.triton_kernels import (
    bases,
    beta_of,
    curve,
    extreme_thresholds,
    shifted_conjugate,
    solve_row,
    solve_tile,
)

_INFINITY = tl.constexpr(float("inf"))


@triton.jit
def _short_rows_kernel(
    scores, gradient, targets, weights, excesses, margins, maxima, supports, alpha, rows, n,
    log_form: tl.constexpr, power: tl.constexpr, work: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Solve rows that fit in registers, ``height`` of them a program: one read, one write.

    Writes the results of `static_loss.RowLosses`. ``gradient`` may be the memory of ``scores``.
    """
    row = (tl.program_id(0) * height + tl.arange(0, height))[:, None]
    column = tl.arange(0, width)[None, :]
    place = row.to(tl.int64) * n + column
    real = row < rows
    there = real & (column < n)
    row = tl.minimum(row, rows - 1)
    target = tl.load(targets + row)
    weight = tl.load(weights + row).to(work)
    beta = beta_of(alpha, row, 1, 1, False, work)
    # Ignored rows are not read.
    counted = there & (weight != 0)
    tile = tl.load(scores + place, mask=counted, other=-_INFINITY).to(work)
    tile = tl.where(weight != 0, tile, tl.where(column == target, 0.0, -_INFINITY))
    maximum = tl.max(tile, 1, keep_dims=True)
    below = tile - maximum
    start, ceiling = extreme_thresholds(beta, n, log_form, power)
    threshold, probability, _ = solve_tile(below, start, ceiling, beta, log_form, power)
    base = bases(below, threshold, probability, beta, log_form, power)
    energy = tl.sum(probability * base, 1, keep_dims=True)
    excess = shifted_conjugate(threshold, start, energy, beta)
    own = tl.sum(tl.where(column == target, tile, 0.0), 1, keep_dims=True)
    support = tl.sum((base > 0).to(tl.int32), 1, keep_dims=True)
    tl.store(excesses + row, tl.where(weight != 0, excess, 0.0), mask=real)
    tl.store(margins + row, tl.where(weight != 0, maximum - own, 0.0), mask=real)
    tl.store(maxima + row, tl.where(weight != 0, maximum, 0.0), mask=real)
    tl.store(supports + row, tl.where(weight != 0, support, 0), mask=real)
    slope = weight * (probability - tl.where(column == target, 1.0, 0.0))
    # 0 times the nan of an ignored row would be nan.
    slope = tl.where(weight != 0, slope, 0.0)
    tl.store(gradient + place, slope, mask=there)


@triton.jit
def _long_rows_kernel(
    scores, gradient, targets, weights, excesses, margins, maxima, supports, alpha, columns, n,
    log_form: tl.constexpr, power: tl.constexpr, work: tl.constexpr,
    width: tl.constexpr, room: tl.constexpr,
):  # fmt: skip
    """As `_short_rows_kernel`, one long row a program; ``columns`` (rows, room) int32: scratch."""
    row = tl.program_id(0).to(tl.int64)
    scores += row * n
    gradient += row * n
    columns += row * room
    single = tl.full((1, 1), 0, tl.int64)
    target = tl.load(targets + row)
    weight = tl.load(weights + row).to(work)
    if weight == 0:
        for begin in range(0, n, width):
            column = begin + tl.arange(0, width)
            nothing = tl.full((width,), 0.0, work)
            tl.store(gradient + column, nothing, mask=column < n)
        tl.store(excesses + row, 0.0)
        tl.store(margins + row, 0.0)
        tl.store(maxima + row, 0.0)
        tl.store(supports + row, 0)
    else:
        beta = beta_of(alpha, single, 1, 1, False, work)
        own = tl.load(scores + target + single).to(work)
        maximum, threshold, _total, energy, few, place, listed, found = solve_row(
            scores, columns, n, beta, log_form, power, work, width, room
        )
        least, _ceiling = extreme_thresholds(beta, n, log_form, power)
        support = tl.full((1, 1), 0, tl.int32)
        tl.store(excesses + row + single, shifted_conjugate(threshold, least, energy, beta))
        tl.store(margins + row + single, maximum - own)
        tl.store(maxima + row + single, maximum)
        tl.debug_barrier()  # all threads must have read the scores before one overwrites them
        for begin in range(0, n, width):
            column = begin + tl.arange(0, width)[None, :]
            if found <= room:
                slopes = tl.full((1, width), 0.0, work)
            else:
                tile = tl.load(scores + column, mask=column < n, other=-_INFINITY).to(work)
                probability, _, base = curve(tile - maximum, threshold, beta, log_form, power)
                support += tl.sum((base > 0).to(tl.int32), 1, keep_dims=True)
                slopes = weight * (probability - tl.where(column == target, 1.0, 0.0))
            tl.store(gradient + column, slopes, mask=column < n)
        if found <= room:
            tl.debug_barrier()  # the zeros must come first
            probability, _, base = curve(few, threshold, beta, log_form, power)
            support = tl.sum((base > 0).to(tl.int32), 1, keep_dims=True)
            tl.store(gradient + place, weight * probability, mask=listed & (probability > 0))
            own_probability, _, _ = curve(own - maximum, threshold, beta, log_form, power)
            tl.debug_barrier()  # the target's must come last
            tl.store(gradient + target + single, weight * (own_probability - 1.0))
        tl.store(supports + row + single, support)


def solve_rows(
    scores: Tensor, target: Tensor, weight: Tensor, alpha: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the fields of `static_loss.RowLosses`; the gradient overwrites the scores."""
    rows, n = scores.shape
    form = entmax.form_of(alpha, scores.dtype)
    excess, margins, maxima = scores.new_empty(3, rows).unbind(0)
    support = scores.new_empty(rows, dtype=torch.int32)
    given = scores, scores, target, weight, excess, margins, maxima, support
    beta = entmax.alpha_of(alpha, scores.shape).given
    short = entmax.short_rows(n, form.work)
    if short is not None:
        grid = (entmax.blocks(rows, short["height"]),)
        _short_rows_kernel[grid](*given, beta, rows, n, **form.constants, **short)
    else:
        long = entmax.long_rows(form.work)
        columns = scores.new_empty(rows, long["room"], dtype=torch.int32)
        _long_rows_kernel[(rows,)](*given, beta, columns, n, **form.constants, **long)
    return excess, margins, maxima, support, scores
