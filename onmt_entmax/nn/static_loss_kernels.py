# mypy: disable-error-code="no-untyped-def"
"""Triton kernels of the output loss: losses, measurements and gradient of rows in one launch."""

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_kernels import _beta_of, _curve, _least, _solve, _solve_row

_INFINITY = tl.constexpr(float("inf"))


@triton.jit
def loss_short(
    scores, gradient, targets, weights, losses, leads, maxima, members, alpha, rows, n,
    log_form: tl.constexpr, power: tl.constexpr, work: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Rows that fit in registers, ``height`` of them a program: read once, written once.

    Of each row: the excess of its conjugate over the largest score (``losses``), that score
    (``maxima``), its lead over the target's score (``leads``) and the size of the support
    (``members``); rows of weight 0 have zeros. The gradient ``weight * (p - y)`` goes to
    ``gradient``, which may be the scores.
    """
    row = (tl.program_id(0) * height + tl.arange(0, height))[:, None]
    column = tl.arange(0, width)[None, :]
    place = row.to(tl.int64) * n + column
    real = row < rows
    there = real & (column < n)
    row = tl.minimum(row, rows - 1)
    target = tl.load(targets + row)
    weight = tl.load(weights + row).to(work)
    beta = _beta_of(alpha, row, 1, 1, False, work)
    # Rows that count nothing are not read.
    counted = there & (weight != 0)
    tile = tl.load(scores + place, mask=counted, other=-_INFINITY).to(work)
    tile = tl.where(weight != 0, tile, tl.where(column == target, 0.0, -_INFINITY))
    maximum = tl.max(tile, 1, keep_dims=True)
    below = tile - maximum
    start, ceiling = _least(beta, n, log_form, power)
    threshold = _solve(below, start, ceiling, beta, log_form, power)
    probability, _, base = _curve(below, threshold, beta, log_form, power)
    energy = tl.sum(probability * base, 1, keep_dims=True)
    excess = threshold - start + (energy - 1.0) / (1.0 + beta)
    own = tl.sum(tl.where(column == target, tile, 0.0), 1, keep_dims=True)
    support = tl.sum((probability > 0).to(tl.int32), 1, keep_dims=True)
    tl.store(losses + row, tl.where(weight != 0, excess, 0.0), mask=real)
    tl.store(leads + row, tl.where(weight != 0, maximum - own, 0.0), mask=real)
    tl.store(maxima + row, tl.where(weight != 0, maximum, 0.0), mask=real)
    tl.store(members + row, tl.where(weight != 0, support, 0), mask=real)
    slope = weight * (probability - tl.where(column == target, 1.0, 0.0))
    # A finite weight of 0 is not to make nan of a row that is not counted.
    slope = tl.where(weight != 0, slope, 0.0)
    tl.store(gradient + place, slope, mask=there)


@triton.jit
def loss_long(
    scores, gradient, targets, weights, losses, leads, maxima, members, alpha, columns, n,
    log_form: tl.constexpr, power: tl.constexpr, work: tl.constexpr,
    width: tl.constexpr, room: tl.constexpr,
):  # fmt: skip
    """As :func:`loss_short`, one long row a program; ``columns``: (rows, room) int32, scratch."""
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
        tl.store(losses + row, 0.0)
        tl.store(leads + row, 0.0)
        tl.store(maxima + row, 0.0)
        tl.store(members + row, 0)
    else:
        beta = _beta_of(alpha, single, 1, 1, False, work)
        own = tl.load(scores + target + single).to(work)
        maximum, threshold, _, energy, few, place, listed, found = _solve_row(
            scores, columns, n, beta, log_form, power, work, width, room
        )
        least, _ = _least(beta, n, log_form, power)
        probability, _, _ = _curve(few, threshold, beta, log_form, power)
        support = tl.sum((probability > 0).to(tl.int32), 1, keep_dims=True)
        tl.store(losses + row + single, threshold - least + (energy - 1.0) / (1.0 + beta))
        tl.store(leads + row + single, maximum - own)
        tl.store(maxima + row + single, maximum)
        tl.debug_barrier()  # scores are read before the gradient is written over them
        for begin in range(0, n, width):
            column = begin + tl.arange(0, width)[None, :]
            if found <= room:
                slopes = tl.full((1, width), 0.0, work)
            else:
                tile = tl.load(scores + column, mask=column < n, other=-_INFINITY).to(work)
                probability, _, _ = _curve(tile - maximum, threshold, beta, log_form, power)
                support += tl.sum((probability > 0).to(tl.int32), 1, keep_dims=True)
                slopes = weight * (probability - tl.where(column == target, 1.0, 0.0))
            tl.store(gradient + column, slopes, mask=column < n)
        if found <= room:
            tl.debug_barrier()  # the zeros come first
            probability, _, _ = _curve(few, threshold, beta, log_form, power)
            tl.store(gradient + place, weight * probability, mask=listed & (probability > 0))
            own_probability, _, _ = _curve(own - maximum, threshold, beta, log_form, power)
            tl.debug_barrier()  # the target's comes last
            tl.store(gradient + target + single, weight * (own_probability - 1.0))
        tl.store(members + row + single, support)
