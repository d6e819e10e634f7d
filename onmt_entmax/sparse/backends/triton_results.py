"""The results of a solved row of scores: its probabilities, their logarithms, and the conjugate.

These are functions of Triton, for use in kernels. triton_curves.py has the mathematics and symbols.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_curves import (
    INFINITY,
    SOFTMAX,
    log_probabilities,
    scaled_differences,
)


@triton.jit
def bases(below, threshold, probability, beta, log_form: tl.constexpr, power: tl.constexpr):
    """Return the bases of scores whose probabilities are known, as :func:`curve` does."""
    if power == SOFTMAX:
        return tl.where(probability == 0, 0.0, 1.0).to(below.dtype)
    base = scaled_differences(below - threshold, beta, log_form)
    if log_form:
        base = 1.0 + base
    return tl.where(base <= 0, 0.0, base)


@triton.jit
def probabilities_at(
    below, threshold, probability, beta, total,
    log_form: tl.constexpr, power: tl.constexpr, in_float64: tl.constexpr,
):  # fmt: skip
    """Return probabilities at the threshold of a row, to be stored in float64 or float32.

    :func:`solve_tile` returns ``probability`` and their sum ``total``, which is nearly 1.
    """
    base = bases(below, threshold, probability, beta, log_form, power)
    if log_form:
        probability = probability / total
    return probability if power == SOFTMAX else _positive(probability, base <= 0, in_float64)


@triton.jit
def _positive(probability, outside, in_float64: tl.constexpr):
    """Return probabilities that do not round to 0 inside the support when they are stored.

    A probability that would round to 0 becomes the smallest positive number of the type, which has
    the same bits as the integer 1.
    """
    one = tl.full(probability.shape, 1, tl.int64 if in_float64 else tl.int32)
    least = one.to(tl.float64 if in_float64 else tl.float32, bitcast=True).to(probability.dtype)
    return tl.where((probability < least) & (outside == 0), least, probability)


@triton.jit
def logs_at(
    below, threshold, probability, beta, total, log_form: tl.constexpr, power: tl.constexpr
):  # fmt: skip
    """Return log-probabilities at the threshold of a row, -inf outside the support.

    :func:`solve_tile` returns ``probability`` and their sum ``total``. :func:`probabilities_at` has
    the same support.
    """
    base = bases(below, threshold, probability, beta, log_form, power)
    outside = base <= 0
    inside = tl.where(outside, 1.0, base)
    from_threshold = below - threshold
    if power == SOFTMAX:
        logs = from_threshold
    else:
        scaled = scaled_differences(from_threshold, beta, log_form)
        logs = log_probabilities(from_threshold, scaled, inside, beta, log_form)
    if log_form:
        logs -= tl.log(total)
    return tl.where(outside, -INFINITY, logs)


@triton.jit
def shifted_conjugate(threshold, least, energy, beta):
    """Return shifted conjugates ``max_p p x + H(p)``, from the thresholds of rows.

    ``least`` are the least possible thresholds, see `least_threshold`; the energy of a row is the
    sum of ``p b``. All are (rows, 1). Since ``p ** alpha = p b``, the entropy ``H(p)`` is ``(1 -
    energy) / (alpha beta)``. The sum of ``p x`` is ``t + (energy - 1) / beta`` in the log form, and
    ``t + energy / beta`` in the power form. So the conjugate is ``t - least + (energy - 1) /
    alpha`` in both. It is at least 0, but its rounding may be negative.
    """
    dual = threshold - least + (energy - 1.0) / (1.0 + beta)
    return tl.where(dual < 0, 0.0, dual)
