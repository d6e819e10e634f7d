"""Gradients of entmax as Triton kernels, for GPUs: of the mapping, and of its conjugate."""

# Types are Triton's own here.
# mypy: disable-error-code="no-untyped-def"

import triton
import triton.language as tl

from onmt_entmax.mappings.kernels import _beta_of, _curve


@triton.jit
def write_probabilities(
    scores, out, maxima, thresholds, betas, factors, n,
    each_row: tl.constexpr, scaled: tl.constexpr, log_form: tl.constexpr, power: tl.constexpr,
    work: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Probabilities of solved rows, times a factor for each row if ``scaled``: one read, one write.

    A program for each row and tile of ``width`` scores.
    """
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * width + tl.arange(0, width)
    place = row * n + column
    beta = _beta_of(betas, row, each_row, work)
    maximum, threshold = tl.load(maxima + row), tl.load(thresholds + row)
    tile = tl.load(scores + place, mask=column < n, other=0.0).to(work)
    probability, _, _ = _curve(tile - maximum.to(work), threshold.to(work), beta, log_form, power)
    if scaled:
        probability *= tl.load(factors + row).to(work)
    if out.dtype.element_ty != tl.float64:
        probability = probability.to(tl.float32)  # not from float64 to a half type at once
    tl.store(out + place, probability, mask=column < n)


@triton.jit
def _slopes(probability, beta, power: tl.constexpr):
    """``p ** (2 - alpha)`` on the support, 0 outside; ``power`` is 1 / beta where whole, or 0."""
    if power == 1:
        return tl.where(probability == 0, 0.0, 1.0).to(probability.dtype)
    if power == 2:
        return tl.sqrt(probability)
    inside = tl.where(probability == 0, 1.0, probability)
    return tl.where(probability == 0, 0.0, tl.exp((1.0 - beta) * tl.log(inside)))


@triton.jit
def _parts(probability, slope, least, beta):
    """Slopes; above alpha 2, where they may be infinite, as parts of that of the least member."""
    inside = tl.where(probability == 0, least, probability)
    part = tl.exp((1.0 - beta) * (tl.log(inside) - tl.log(least)))
    return tl.where(beta > 1, tl.where(probability == 0, 0.0, part), slope)


@triton.jit
def gradient_short(
    probabilities, incoming, out, betas, rows, n,
    each_row: tl.constexpr, power: tl.constexpr, steep: tl.constexpr, work: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Gradient in the scores ``s (g - sum s g / sum s)`` with slopes s, ``height`` rows a program.

    Two reads, one write. With ``steep``, where alpha may be above 2, the least member of the
    support gets what the others leave if it is: see ``_steep_gradient`` in gradient.py.
    """
    row = (tl.program_id(0) * height + tl.arange(0, height))[:, None]
    column = tl.arange(0, width)[None, :]
    place = row.to(tl.int64) * n + column
    there = (row < rows) & (column < n)
    beta = _beta_of(betas, tl.minimum(row, rows - 1), each_row, work)
    probability = tl.load(probabilities + place, mask=there, other=0.0).to(work)
    gradient = tl.load(incoming + place, mask=there, other=0.0).to(work)
    slope = _slopes(probability, beta, power)
    if steep:
        inside = tl.where(probability == 0, 2.0, probability)
        least = tl.min(inside, 1, keep_dims=True)
        part = _parts(probability, slope, least, beta)
        mean = tl.sum(part * gradient, 1, keep_dims=True) / tl.sum(part, 1, keep_dims=True)
        first = tl.min(tl.where((inside == least) & (beta > 1), column, n), 1, keep_dims=True)
        result = tl.where(column == first, 0.0, slope) * (gradient - mean)
        rest = -tl.sum(result, 1, keep_dims=True)
        result = tl.where(column == first, rest, result)
    else:
        total = tl.sum(slope, 1, keep_dims=True)
        result = slope * (gradient - tl.sum(slope * gradient, 1, keep_dims=True) / total)
    tl.store(out + place, result, mask=there)


@triton.jit
def _least_member(probabilities, n, work: tl.constexpr, width: tl.constexpr):
    """The least member of the support of a row, and the first column that has it."""
    least = tl.full((width,), 2.0, work)
    place = tl.zeros((width,), tl.int32)
    for begin in range(0, n, width):
        column = begin + tl.arange(0, width)
        probability = tl.load(probabilities + column, mask=column < n, other=0.0).to(work)
        inside = tl.where(probability == 0, 2.0, probability)
        place = tl.where(inside < least, column, place)
        least = tl.minimum(inside, least)
    smallest = tl.min(least, 0)
    return smallest, tl.min(tl.where(least == smallest, place, n), 0)


@triton.jit
def gradient_long(
    probabilities, incoming, out, betas, n,
    each_row: tl.constexpr, power: tl.constexpr, steep: tl.constexpr, work: tl.constexpr,
    width: tl.constexpr,
):  # fmt: skip
    """As :func:`gradient_short`, one long row a program: read twice, with ``steep`` thrice."""
    row = tl.program_id(0).to(tl.int64)
    probabilities += row * n
    incoming += row * n
    out += row * n
    beta = _beta_of(betas, row, each_row, work)
    if steep:
        least, first = _least_member(probabilities, n, work, width)
        first = tl.where(beta > 1, first, n)
    parts = tl.zeros((width,), work)
    along = tl.zeros((width,), work)
    for begin in range(0, n, width):
        column = begin + tl.arange(0, width)
        probability = tl.load(probabilities + column, mask=column < n, other=0.0).to(work)
        gradient = tl.load(incoming + column, mask=column < n, other=0.0).to(work)
        part = _slopes(probability, beta, power)
        if steep:
            part = _parts(probability, part, least, beta)
        parts += part
        along += part * gradient
    mean = tl.sum(along, 0) / tl.sum(parts, 0)
    total = tl.zeros((width,), work)
    for begin in range(0, n, width):
        column = begin + tl.arange(0, width)
        probability = tl.load(probabilities + column, mask=column < n, other=0.0).to(work)
        gradient = tl.load(incoming + column, mask=column < n, other=0.0).to(work)
        result = _slopes(probability, beta, power) * (gradient - mean)
        if steep:
            result = tl.where(column == first, 0.0, result)
            total += result
            tl.store(out + column, result, mask=(column < n) & (column != first))
        else:
            tl.store(out + column, result, mask=column < n)
    if steep:
        tl.store(out + first, -tl.sum(total, 0), mask=first < n)
