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
def gradient_short(
    probabilities, incoming, out, betas, rows, n,
    each_row: tl.constexpr, power: tl.constexpr, work: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Gradient in the scores ``s (g - sum s g / sum s)`` with slopes s, ``height`` rows a program.

    Two reads, one write.
    """
    row = (tl.program_id(0) * height + tl.arange(0, height))[:, None]
    column = tl.arange(0, width)[None, :]
    place = row.to(tl.int64) * n + column
    there = (row < rows) & (column < n)
    beta = _beta_of(betas, tl.minimum(row, rows - 1), each_row, work)
    slope = _slopes(tl.load(probabilities + place, mask=there, other=0.0).to(work), beta, power)
    gradient = tl.load(incoming + place, mask=there, other=0.0).to(work)
    total = tl.sum(slope, 1, keep_dims=True)
    mean = tl.sum(slope * gradient, 1, keep_dims=True) / total
    tl.store(out + place, slope * (gradient - mean), mask=there)


@triton.jit
def gradient_long(
    probabilities, incoming, out, betas, n,
    each_row: tl.constexpr, power: tl.constexpr, work: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """As :func:`gradient_short`, one long row a program, which is read twice."""
    row = tl.program_id(0).to(tl.int64)
    probabilities += row * n
    incoming += row * n
    out += row * n
    beta = _beta_of(betas, row, each_row, work)
    slopes = tl.zeros((width,), work)
    along = tl.zeros((width,), work)
    for begin in range(0, n, width):
        column = begin + tl.arange(0, width)
        probability = tl.load(probabilities + column, mask=column < n, other=0.0).to(work)
        gradient = tl.load(incoming + column, mask=column < n, other=0.0).to(work)
        slope = _slopes(probability, beta, power)
        slopes += slope
        along += slope * gradient
    mean = tl.sum(along, 0) / tl.sum(slopes, 0)
    for begin in range(0, n, width):
        column = begin + tl.arange(0, width)
        probability = tl.load(probabilities + column, mask=column < n, other=0.0).to(work)
        gradient = tl.load(incoming + column, mask=column < n, other=0.0).to(work)
        slope = _slopes(probability, beta, power)
        tl.store(out + column, slope * (gradient - mean), mask=column < n)
