r"""The mathematics of solving a row of scores, as functions of Triton that all kernels share.

triton_results.py computes results from a solution; triton_jacobian.py has functions for gradients.

With the maximum ``m`` of a row's scores ``z``, let ``x = z - m`` and ``beta = alpha - 1``. At a
threshold ``t``, a score has

    base           b, which is ``[beta (x - t)]_+`` in the power form, and ``[1 + beta (x - t)]_+``
                   in the log form, where csrc/native_logarithms.h calls the threshold a shift
    probability    p, which is ``b ** (1 / beta)``
    weight         s, its weight in the Jacobian, ``p ** (2 - alpha)``

Functions take and return them in the order p, s, b. Newton's method moves the threshold up until
the probabilities sum to 1.

Scores, probabilities, weights and bases are tiles ``(rows, width)``. Thresholds, sums, maxima and
``beta`` have a number for each row, ``(rows, 1)``. ``below`` is x, the scores minus their maximum.
A score of nan has the probability nan.

``log_form`` and ``power`` are constants of the compiler; `triton_launch.form_of` chooses them:

==================================  ========  ==========  =================================
alpha                               log_form  power       p inside the support
==================================  ========  ==========  =================================
the number 1                        False     `SOFTMAX`   ``exp(x - t)``
a number above 1, below 1.1         True      `NO_POWER`  ``exp(log(b) / beta)``
from 1.1, with a whole 1 / beta     False     1 / beta    a product of bases
any other number                    False     `NO_POWER`  ``exp(log(b) / beta)``
a tensor                            True      `NO_POWER`  the same; at 1, ``exp(x - t)``
==================================  ========  ==========  =================================

Alpha is given as its `beta_bits`, an integer, so that nothing is copied to the GPU; or as a tensor,
see `RowAlphas`. For alphas from 1 to 2, float32 suffices; float64 scores are solved in float64.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

SOFTMAX = tl.constexpr(-1)
NO_POWER = tl.constexpr(0)
# The most steps of Newton's method; ordinary rows need three to six.
STEPS = tl.constexpr(100)
INFINITY = tl.constexpr(float("inf"))
# A row is solved if its sum of probabilities exceeds 1 by no more than this: a rounding of a sum
# near 1, which is four machine epsilons in float64 and two in float32.
_ENOUGH_FLOAT64 = tl.constexpr(8.9e-16)
_ENOUGH_FLOAT32 = tl.constexpr(2.4e-7)
_LOG_2 = tl.constexpr(0.6931471805599453)
_BITS_OF_ROOT_HALF = tl.constexpr(0x3F3504F3)  # sqrt(1/2) in float32, as an integer
_MANTISSA_BITS = tl.constexpr(23)  # of float32


@triton.jit
def beta_of(alpha, row, inner, count, each_row: tl.constexpr, work: tl.constexpr):
    """Return alpha - 1 for each row, in the shape of ``row`` and the type ``work``.

    ``row`` are numbers of rows; `RowAlphas` explains the other arguments.
    """
    if each_row:
        alphas = tl.load(alpha + (row // inner) % count)
        if alphas.dtype != tl.float64:
            alphas = alphas.to(tl.float32)
        return (alphas - 1.0).to(work)
    beta = alpha.to(tl.int64).to(tl.float64, bitcast=True).to(work)
    return tl.zeros_like(row).to(work) + beta


@triton.jit
def least_threshold(beta, log_form: tl.constexpr, power: tl.constexpr):
    """Return the least possible threshold, at which probabilities are one-hot."""
    return beta * 0.0 if log_form or power == SOFTMAX else -1.0 / beta


@triton.jit
def scaled_differences(from_threshold, beta, log_form: tl.constexpr):
    """Return ``beta (x - t)``, given ``from_threshold``, which is ``x - t``."""
    scaled = beta * from_threshold
    if log_form:
        # At alpha = 1 a score of -inf would give nan.
        scaled = tl.where(beta == 0, 0.0, scaled)
    return scaled


@triton.jit
def curve(below, threshold, beta, log_form: tl.constexpr, power: tl.constexpr):
    """Return probabilities, weights and bases of scores at a threshold."""
    from_threshold = below - threshold
    if power == SOFTMAX:
        probability = tl.exp(from_threshold)
        return probability, probability, tl.where(probability == 0, 0.0, 1.0).to(below.dtype)
    scaled = scaled_differences(from_threshold, beta, log_form)
    base = 1.0 + scaled if log_form else scaled
    outside = base <= 0
    base = tl.where(outside, 0.0, base)
    if power > 0:
        weight = tl.where(outside, 0.0, 1.0).to(below.dtype)
        for _ in tl.static_range(power - 1):
            weight *= base
        return weight * base, weight, base
    inside = tl.where(outside, 1.0, base)
    logs = log_probabilities(from_threshold, scaled, inside, beta, log_form)
    probability = tl.where(outside, 0.0, tl.exp(logs))
    if log_form and below.dtype == tl.float32:  # cheaper than a division
        return probability, tl.where(outside, 0.0, tl.exp(logs * (1.0 - beta))), base
    return probability, probability / inside, base


@triton.jit
def log_probabilities(from_threshold, scaled, inside, beta, log_form: tl.constexpr):
    """Return log-probabilities; at alpha = 1 in the log form, scores minus the threshold.

    ``scaled`` is :func:`scaled_differences` of ``from_threshold``. ``inside`` are the bases, 1
    outside the support, where the result has no meaning.
    """
    if not log_form:
        return tl.log(inside) / beta
    if from_threshold.dtype == tl.float32:
        return _log1p_over_float32(from_threshold, scaled, inside, beta)
    # Kahan's log1p(x) = log(u) x / (u - 1) with u = 1 + x rounded: exact for small x too.
    rest = inside - 1.0
    exact = tl.log(inside) * tl.where(rest == 0, 1.0, scaled / tl.where(rest == 0, 1.0, rest))
    exact = tl.where(rest == 0, scaled, exact)
    return tl.where(beta == 0, from_threshold, exact / tl.where(beta == 0, 1.0, beta))


@triton.jit
def _log1p_over_float32(from_threshold, scaled, inside, beta):
    """Return ``log1p(scaled) / beta`` in float32, and its limit where beta is 0.

    ``scaled`` is from -1 to 0, and ``inside`` is 1 more. With ``inside = m 2**e``, m in [0.7, 1.4),
    the logarithm is ``e log 2 + log1p(m - 1)``. A polynomial computes log1p, since it takes no more
    instructions than a division. Where e is 0, ``scaled`` stands for ``m - 1``, since a rounded
    ``inside`` is not exact enough.
    """
    bits = inside.to(tl.int32, bitcast=True)
    exponent = (bits - _BITS_OF_ROOT_HALF) >> _MANTISSA_BITS
    rest = (bits - (exponent << _MANTISSA_BITS)).to(tl.float32, bitcast=True) - 1.0
    near = exponent == 0
    inverse = 1.0 / tl.where(beta == 0, 1.0, beta)
    x = tl.where(near, scaled, rest)
    # log1p(x) / x for x from sqrt(1/2) - 1 to sqrt(2) - 1: a fit of relative error below 5e-9, a
    # tenth of float32's rounding. Any polynomial of degree 9 with that error may take its place.
    series = x * -0.0763859246 + 0.1291417033
    series = series * x - 0.1324084269
    series = series * x + 0.1418007872
    series = series * x - 0.1660912651
    series = series * x + 0.2000207167
    series = series * x - 0.2500158512
    series = series * x + 0.3333332402
    series = series * x - 0.4999998829
    series = series * x + 1.0
    logs = tl.where(near, from_threshold, rest * inverse) * series
    # The bits of a nan are lost: `scaled * 0.0` is nan where there was one.
    return logs + exponent.to(tl.float32) * (_LOG_2 * inverse) + scaled * 0.0


@triton.jit
def newton_step(total, weights, threshold, beta, log_form: tl.constexpr, power: tl.constexpr):
    """Return the next threshold, and whether the step moved it: if not, the row is solved.

    Newton's method is for the norm ``total ** beta``, a convex function of the threshold. From a
    lower bound, thresholds rise to the solution; see csrc/native_threshold.h. ``total`` is the sum
    of the probabilities at this threshold, and ``weights`` the sum of the weights s.
    """
    if power == SOFTMAX:
        rise = tl.log(total)
    elif log_form:
        rise = -total * _expm1_over(beta, -tl.log(total)) / weights
    elif power == 1:
        rise = (total - 1.0) / weights
    elif power == 2:
        rise = (total - tl.sqrt(total)) * 2.0 / weights
    else:
        rise = (total - tl.exp((1.0 - beta) * tl.log(total))) / (beta * weights)
    following = threshold + rise
    enough = 1.0 + (_ENOUGH_FLOAT64 if total.dtype == tl.float64 else _ENOUGH_FLOAT32)
    better = (total > enough) & (following > threshold)
    return tl.where(better, following, threshold), better


@triton.jit
def _expm1_over(beta, factor):
    """Return ``expm1(beta * factor) / beta``, and its limit ``factor`` where beta is 0."""
    exponent = beta * factor
    if exponent.dtype == tl.float32:
        near = tl.abs(exponent) < 1.0
        small = tl.where(near, exponent, 0.0)
        # (e^x - 1) / x = 1 + x/2 (1 + x/3 (1 + ...)), to x/11: the rest is about 1 / 12!.
        series = 1.0 + small * (1.0 / 11)
        for k in tl.static_range(1, 10):
            series = 1.0 + small * series * (1.0 / (11 - k))
        far = tl.where(near, 1.0, exponent)
        return factor * tl.where(near, series, (tl.exp(far) - 1.0) / far)
    # Kahan's expm1(x) = (u - 1) x / log(u) with u = e^x rounded: exact for small x too.
    exponential = tl.exp(exponent)
    rest = exponential - 1.0
    plain = (rest == 0) | (rest == -1)
    logarithm = tl.log(tl.where(plain, 2.0, exponential))
    exact = tl.where(rest == -1, rest, rest * exponent / logarithm)
    exact = tl.where(rest == 0, exponent, exact)
    return tl.where(beta == 0, factor, exact / tl.where(beta == 0, 1.0, beta))


@triton.jit
def solve_tile(
    below, threshold, beta, log_form: tl.constexpr, power: tl.constexpr,
    most_steps: tl.constexpr = STEPS,
):  # fmt: skip
    """Solve a tile that is padded with -inf, in at most ``most_steps`` steps.

    ``threshold`` is a lower bound to start from. Returns the thresholds, and at them the
    probabilities and their sums.
    """
    probability, total = tl.zeros_like(below), tl.zeros_like(threshold)
    moves = 1
    steps = 0
    while (moves > 0) & (steps < most_steps):
        probability, weight, _ = curve(below, threshold, beta, log_form, power)
        total = tl.sum(probability, 1, keep_dims=True)
        weights = tl.sum(weight, 1, keep_dims=True)
        # The last step moves no threshold, so probabilities and sums belong to the result.
        threshold, better = newton_step(total, weights, threshold, beta, log_form, power)
        moves = tl.max(tl.max(better.to(tl.int32), 1), 0)
        steps += 1
    return threshold, probability, total
