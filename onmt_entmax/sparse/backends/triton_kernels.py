r"""The Triton kernels of entmax; triton.py starts them.

A program solves a group of short rows or one long row. With scores ``z``, maximum ``m`` and
``x = z - m``, the *base* of a score is ``w = [beta (x - c)]_+`` in the power form and
``[1 + beta (x - c)]_+`` in the log form (see csrc/native_rows.h); its probability is
``w ** (1 / beta)``.

The time goes to memory traffic. Short rows are read once and stay in registers. A long row is read
once for its maximum and for the maximum of each lane, a column of the tiles that it is read by: the
threshold of these few is a lower bound for the row, and almost exact. A second pass, mostly from
the cache, lists the scores above the bound, and Newton's method runs on the list. Only a row with
more of them than the list holds (nearly uniform scores) is read again in every step. The result is
written once.

Alpha is given as the bits of ``alpha - 1`` in float64, an integer, so that nothing is copied to the
GPU; or as a tensor, in which row ``r`` has the entry ``(r // inner) % count``. From 1 to 2,
float32 suffices; float64 scores are solved in float64.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

# Steps at most; ordinary rows need three to six, bisection some 60.
STEPS = tl.constexpr(100)
# Tiles of a long row that are loaded at once, and lanes that its bound is solved for.
_AHEAD = tl.constexpr(3)
_LANES = tl.constexpr(1024)
# Short rows from this width on start from a bound: so many steps on so many lanes.
_LONGER = tl.constexpr(256)
_FEW = tl.constexpr(32)
_FEW_STEPS = tl.constexpr(3)
INFINITY = tl.constexpr(float("inf"))
# Kernels compile anew for a number that is 1 or divisible by 16; for these it need not.
_VARIOUS = ("inner", "count", "rows")


@triton.jit
def curve(below, threshold, beta, log_form: tl.constexpr, power: tl.constexpr):
    """Return probabilities, Jacobian weights ``p ** (2 - alpha)`` and bases; nan stays nan.

    ``power`` is the exponent if it is a whole number, -1 for softmax, else 0.
    """
    from_threshold = below - threshold
    if power == -1:
        probability = tl.exp(from_threshold)
        return probability, probability, tl.where(probability == 0, 0.0, 1.0).to(below.dtype)
    part = beta * from_threshold
    if log_form:
        # At alpha = 1 a score of -inf would give nan.
        part = tl.where(beta == 0, 0.0, part)
    base = 1.0 + part if log_form else part
    outside = base <= 0
    base = tl.where(outside, 0.0, base)
    if power > 0:
        slope = tl.where(outside, 0.0, 1.0).to(below.dtype)
        for _ in tl.static_range(power - 1):
            slope *= base
        return slope * base, slope, base
    inside = tl.where(outside, 1.0, base)
    logs = _logarithms(from_threshold, part, inside, beta, log_form)
    probability = tl.where(outside, 0.0, tl.exp(logs))
    if log_form and below.dtype == tl.float32:  # cheaper than a division
        return probability, tl.where(outside, 0.0, tl.exp(logs * (1.0 - beta))), base
    return probability, probability / inside, base


@triton.jit
def _logarithms(from_threshold, part, inside, beta, log_form: tl.constexpr):
    """Return log-probabilities; at alpha = 1 in the log form, scores minus the shift."""
    if log_form and from_threshold.dtype == tl.float32:
        # log1p(part) / beta for part in (-1, 0]. With 1 + part = m 2**e, m in [0.7, 1.4), it is
        # e log 2 + log1p(m - 1), of which the latter is a polynomial: a division takes as many
        # instructions. Where e is 0, m - 1 is part, since a rounded 1 + part is not exact enough.
        bits = inside.to(tl.int32, bitcast=True)
        exponent = (bits - 0x3F3504F3) >> 23
        rest = (bits - (exponent << 23)).to(tl.float32, bitcast=True) - 1.0
        near = exponent == 0
        inverse = 1.0 / tl.where(beta == 0, 1.0, beta)
        x = tl.where(near, part, rest)
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
        # `part * 0.0` propagates nan.
        return logs + exponent.to(tl.float32) * (0.6931471805599453 * inverse) + part * 0.0
    if log_form:
        # log1p(part), exact for small ``part`` (beta near 0).
        rest = inside - 1.0
        exact = tl.log(inside) * tl.where(rest == 0, 1.0, part / tl.where(rest == 0, 1.0, rest))
        exact = tl.where(rest == 0, part, exact)
        return tl.where(beta == 0, from_threshold, exact / tl.where(beta == 0, 1.0, beta))
    return tl.log(inside) / beta


@triton.jit
def _expm1_over(beta, factor):
    """Return ``expm1(beta * factor) / beta``, and its limit ``factor`` where beta is 0."""
    exponent = beta * factor
    if exponent.dtype == tl.float32:
        near = tl.abs(exponent) < 1.0
        small = tl.where(near, exponent, 0.0)
        series = small * 0.0 + 1.0
        for k in tl.static_range(10):
            series = 1.0 + small * series * (1.0 / (11 - k))
        far = tl.where(near, 1.0, exponent)
        return factor * tl.where(near, series, (tl.exp(far) - 1.0) / far)
    power = tl.exp(exponent)
    rest = power - 1.0
    plain = (rest == 0) | (rest == -1)
    logarithm = tl.log(tl.where(plain, 2.0, power))
    exact = tl.where(rest == -1, rest, rest * exponent / logarithm)
    exact = tl.where(rest == 0, exponent, exact)
    return tl.where(beta == 0, factor, exact / tl.where(beta == 0, 1.0, beta))


@triton.jit
def step(total, slope, threshold, beta, log_form: tl.constexpr, power: tl.constexpr):
    """Return the next threshold from the sums at this one, and whether to go on.

    Newton's method on the norm, as in csrc/native_threshold.h.
    """
    if power == -1:
        rise = tl.log(total)
    elif log_form:
        rise = -total * _expm1_over(beta, -tl.log(total)) / slope
    elif power == 1:
        rise = (total - 1.0) / slope
    elif power == 2:
        rise = (total - tl.sqrt(total)) * 2.0 / slope
    else:
        rise = (total - tl.exp((1.0 - beta) * tl.log(total))) / (beta * slope)
    following = threshold + rise
    # Twice the rounding error of a total near 1.
    enough = 1.0 + (8.9e-16 if total.dtype == tl.float64 else 2.4e-7)
    better = (total > enough) & (following > threshold)
    return tl.where(better, following, threshold), better


@triton.jit
def bases(below, threshold, probability, beta, log_form: tl.constexpr, power: tl.constexpr):
    """Return the bases of scores whose probabilities are known; see :func:`curve`."""
    if power == -1:
        return tl.where(probability == 0, 0.0, 1.0).to(below.dtype)
    part = beta * (below - threshold)
    if log_form:
        # At alpha = 1 a score of -inf would give nan.
        part = 1.0 + tl.where(beta == 0, 0.0, part)
    return tl.where(part <= 0, 0.0, part)


@triton.jit
def solve_tile(
    below, threshold, beta, log_form: tl.constexpr, power: tl.constexpr,
    most: tl.constexpr = STEPS,
):  # fmt: skip
    """Solve a tile (rows, width) that is padded with -inf, in at most ``most`` steps.

    ``threshold`` is a lower bound to start from. Returns the thresholds (rows, 1), and at them the
    probabilities and their sums.
    """
    probability, total = tl.zeros_like(below), tl.zeros_like(threshold)
    going = 1
    steps = 0
    while (going > 0) & (steps < most):
        probability, slope, _ = curve(below, threshold, beta, log_form, power)
        total = tl.sum(probability, 1, keep_dims=True)
        slope = tl.sum(slope, 1, keep_dims=True)
        # The last step moves no threshold.
        threshold, better = step(total, slope, threshold, beta, log_form, power)
        going = tl.max(tl.max(better.to(tl.int32), 1), 0)
        steps += 1
    return threshold, probability, total


@triton.jit
def _lower_bound(
    lanes, least, beta, log_form: tl.constexpr, power: tl.constexpr, most: tl.constexpr
):  # fmt: skip
    """Return a lower bound of the threshold: about that of some scores, the lanes (rows, lanes)."""
    bound, _, _ = solve_tile(lanes, least, beta, log_form, power, most)
    # Against rounding, which could raise the bound above the threshold.
    slack = 1e-14 if lanes.dtype == tl.float64 else 4e-6
    return tl.maximum(bound - slack * (1.0 - least + tl.abs(bound)), least)


@triton.jit
def least_threshold(beta, log_form: tl.constexpr, power: tl.constexpr):
    """Return the least threshold possible, that of one-hot probabilities."""
    return beta * 0.0 if log_form or power == -1 else -1.0 / beta


@triton.jit
def beta_of(alpha, row, inner, count, each_row: tl.constexpr, work: tl.constexpr):
    """Return alpha - 1 for each row, in the shape of ``row``; see the module's docstring."""
    if each_row:
        given = tl.load(alpha + (row // inner) % count)
        if given.dtype != tl.float64:
            given = given.to(tl.float32)
        return (given - 1.0).to(work)
    one = alpha.to(tl.int64).to(tl.float64, bitcast=True).to(work)
    return tl.zeros_like(row).to(work) + one


@triton.jit
def result_at(
    below, threshold, probability, beta, total,
    result: tl.constexpr, log_form: tl.constexpr, power: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """Return probabilities or log-probabilities at the threshold, to be stored in float64 if wide.

    ``probability`` has those that do not sum to exactly 1. Both have the support of the same bases.
    """
    base = bases(below, threshold, probability, beta, log_form, power)
    outside = base <= 0
    if result == "logs":
        inside = tl.where(outside, 1.0, base)
        from_threshold = below - threshold
        if power == -1:
            logs = from_threshold
        else:
            part = tl.where(beta == 0, 0.0, beta * from_threshold)
            logs = _logarithms(from_threshold, part, inside, beta, log_form)
        if log_form:
            logs -= tl.log(total)
        return tl.where(outside, -INFINITY, logs)
    if log_form:
        probability = probability / total
    return probability if power == -1 else _positive(probability, outside, wide)


@triton.jit
def _positive(probability, outside, wide: tl.constexpr):
    """Return probabilities, of which those of the support do not round to 0 when they are stored.

    The smallest number, of float64 if ``wide`` and else of float32, has the bits of the integer 1.
    """
    one = tl.full(probability.shape, 1, tl.int64 if wide else tl.int32)
    least = one.to(tl.float64 if wide else tl.float32, bitcast=True).to(probability.dtype)
    return tl.where((probability < least) & (outside == 0), least, probability)


@triton.jit
def shifted_conjugate(threshold, least, energy, beta):
    """Return shifted conjugates at thresholds whose least possible value is ``least``.

    A conjugate is not negative, only its rounding.
    """
    dual = threshold - least + (energy - 1.0) / (1.0 + beta)
    return tl.where(dual < 0, 0.0, dual)


@triton.jit(do_not_specialize=_VARIOUS)
def solve_short(
    scores, out, shifted, maxima, alpha, inner, count, rows, n,
    each_row: tl.constexpr, result: tl.constexpr, conjugate: tl.constexpr, log_form: tl.constexpr,
    power: tl.constexpr, work: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Solve rows that fit in registers, ``height`` a program: one read, one write.

    ``result`` is "probabilities" or "logs", to ``out``, which may be the scores. With ``conjugate``
    the shifted conjugates and maxima are written, too.
    """
    row = (tl.program_id(0) * height + tl.arange(0, height))[:, None]
    column = tl.arange(0, width)[None, :]
    place = row.to(tl.int64) * n + column
    real = row < rows
    row = tl.minimum(row, rows - 1)
    beta = beta_of(alpha, row, inner, count, each_row, work)
    there = real & (column < n)
    tile = tl.load(scores + place, mask=there, other=-INFINITY).to(work)
    maximum = tl.max(tile, 1, keep_dims=True)
    below = tile - maximum
    least = least_threshold(beta, log_form, power)
    start = least
    # Triton 3.2 refuses `a and b and c`.
    if power == 0 and (work == tl.float32 and width >= _LONGER):
        # A step on all scores takes longer than these on a few.
        lanes = tl.max(tl.reshape(below, (height, width // _FEW, _FEW)), 1)
        start = _lower_bound(lanes, least, beta, log_form, power, _FEW_STEPS)
    threshold, probability, total = solve_tile(below, start, beta, log_form, power)
    if conjugate:
        base = bases(below, threshold, probability, beta, log_form, power)
        energy = tl.sum(probability * base, 1, keep_dims=True)
        dual = shifted_conjugate(threshold, least, energy, beta)
        tl.store(shifted + row, dual, mask=real)
        tl.store(maxima + row, maximum, mask=real)
    wide: tl.constexpr = out.dtype.element_ty == tl.float64
    finished = result_at(below, threshold, probability, beta, total, result, log_form, power, wide)
    tl.store(out + place, finished, mask=there)


@triton.jit
def _row_sums(
    scores, n, maximum, threshold, beta,
    log_form: tl.constexpr, power: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Return sums (1, 1) over a long row: probability, Jacobian weight, probability x base."""
    total, slope, energy = threshold * 0.0, threshold * 0.0, threshold * 0.0
    for begin in tl.range(0, n, width, num_stages=_AHEAD):
        column = begin + tl.arange(0, width)[None, :]
        tile = tl.load(scores + column, mask=column < n, other=-INFINITY).to(maximum.dtype)
        p, s, base = curve(tile - maximum, threshold, beta, log_form, power)
        total += tl.sum(p, 1, keep_dims=True)
        slope += tl.sum(s, 1, keep_dims=True)
        energy += tl.sum(p * base, 1, keep_dims=True)
    return total, slope, energy


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
    """List the columns of scores above the bound while there is room; return their number."""
    found = 0
    for begin in tl.range(0, n, width, num_stages=_AHEAD):
        column = begin + tl.arange(0, width)
        tile = tl.load(scores + column[None, :], mask=column[None, :] < n, other=-INFINITY)
        _, _, base = curve(tile.to(maximum.dtype) - maximum, bound, beta, log_form, power)
        # A comparison under which nan is a candidate.
        hot = tl.reshape((base <= 0) == 0, (width,))
        number = tl.sum(hot.to(tl.int32), 0)
        if (number > 0) & (found < room):
            slot = found + tl.cumsum(hot.to(tl.int32), 0) - 1
            tl.store(columns + slot, column, mask=hot & (slot < room))
        found += number
    return found


@triton.jit
def solve_row(
    scores, columns, n, beta,
    log_form: tl.constexpr, power: tl.constexpr, work: tl.constexpr, width: tl.constexpr,
    room: tl.constexpr,
):  # fmt: skip
    """Solve a long row; return (1, 1) tensors, and the candidates ``few`` (1, room) if they fit.

    The former are the maximum, the threshold, and the sums of probabilities and of probability
    times base. The candidates come with their columns, a mask and their number.
    """
    least = least_threshold(beta, log_form, power)
    lanes = _lane_maxima(scores, n, work, width)
    if width > _LANES:
        lanes = tl.max(tl.reshape(lanes, (width // _LANES, _LANES)), 0, keep_dims=True)
    maximum = tl.max(lanes, 1, keep_dims=True)
    threshold = _lower_bound(lanes - maximum, least, beta, log_form, power, STEPS)
    found = _list_candidates(
        scores, columns, n, maximum, threshold, beta, log_form, power, width, room
    )
    tl.debug_barrier()  # other threads read the list than wrote it
    slot = tl.arange(0, room)[None, :]
    listed = slot < tl.where(found <= room, found, 0)
    place = tl.load(columns + slot, mask=listed, other=0)
    few = tl.load(scores + place, mask=listed, other=-INFINITY).to(work) - maximum
    few = tl.where(listed, few, -INFINITY)
    total, slope, energy = threshold * 0.0, threshold * 0.0, threshold * 0.0
    if found <= room:
        threshold, probability, total = solve_tile(few, threshold, beta, log_form, power)
        base = bases(few, threshold, probability, beta, log_form, power)
        energy = tl.sum(probability * base, 1, keep_dims=True)
    else:
        going = 1
        steps = 0
        while (going > 0) & (steps < STEPS):
            total, slope, energy = _row_sums(
                scores, n, maximum, threshold, beta, log_form, power, width
            )
            threshold, better = step(total, slope, threshold, beta, log_form, power)
            going = tl.max(tl.max(better.to(tl.int32), 1), 0)
            steps += 1
    return maximum, threshold, total, energy, few, place, listed, found


@triton.jit(do_not_specialize=_VARIOUS)
def solve_long(
    scores, out, shifted, maxima, alpha, inner, count, columns, n,
    each_row: tl.constexpr, result: tl.constexpr, conjugate: tl.constexpr, log_form: tl.constexpr,
    power: tl.constexpr, work: tl.constexpr, width: tl.constexpr, room: tl.constexpr,
):  # fmt: skip
    """As :func:`solve_short`, one long row a program; ``columns`` (rows, room) int32: scratch."""
    row = tl.program_id(0).to(tl.int64)
    scores += row * n
    single = row + tl.full((1, 1), 0, tl.int64)
    beta = beta_of(alpha, single, inner, count, each_row, work)
    maximum, threshold, total, energy, few, place, listed, found = solve_row(
        scores, columns + row * room, n, beta, log_form, power, work, width, room
    )
    if conjugate:
        least = least_threshold(beta, log_form, power)
        tl.store(shifted + single, shifted_conjugate(threshold, least, energy, beta))
        tl.store(maxima + single, maximum)
    _write_row(
        scores, out + row * n, n, maximum, threshold, beta, total, few, place, listed, found,
        result, log_form, power, width, room,
    )  # fmt: skip


@triton.jit
def _write_row(
    scores, out, n, maximum, threshold, beta, total, few, place, listed, found,
    result: tl.constexpr, log_form: tl.constexpr, power: tl.constexpr,
    width: tl.constexpr, room: tl.constexpr,
):  # fmt: skip
    """Write the result of a long row: zeros and the listed scores, or all scores again."""
    wide: tl.constexpr = out.dtype.element_ty == tl.float64
    for begin in range(0, n, width):
        column = begin + tl.arange(0, width)[None, :]
        if found <= room:
            nothing = -INFINITY if result == "logs" else 0.0
            finished = tl.full((1, width), nothing, maximum.dtype)
        else:
            tile = tl.load(scores + column, mask=column < n, other=-INFINITY)
            below = tile.to(maximum.dtype) - maximum
            probability, _, _ = curve(below, threshold, beta, log_form, power)
            finished = result_at(
                below, threshold, probability, beta, total, result, log_form, power, wide
            )
        tl.store(out + column, finished, mask=column < n)
    if found <= room:
        tl.debug_barrier()  # the zeros must come first
        probability, _, _ = curve(few, threshold, beta, log_form, power)
        finished = result_at(
            few, threshold, probability, beta, total, result, log_form, power, wide
        )
        tl.store(out + place, finished, mask=listed)


@triton.jit
def jacobian_weights(probability, beta, power: tl.constexpr):
    """Return the Jacobian weights; ``power`` is 1 / beta if that is whole, else 0."""
    if power == 1:
        return tl.where(probability == 0, 0.0, 1.0).to(probability.dtype)
    if power == 2:
        return tl.sqrt(probability)
    inside = tl.where(probability == 0, 1.0, probability)
    return tl.where(probability == 0, 0.0, tl.exp((1.0 - beta) * tl.log(inside)))


@triton.jit
def alpha_terms(probability, weight, beta):
    """Return ``p k`` of `reference.gradients`, the curvature of each probability in alpha."""
    logs = tl.log(tl.where(probability == 0, 1.0, probability))
    w = -beta * logs
    near = w < 1.0
    small = tl.where(near, w, 0.0)
    series = small * 0.0 + 1.0
    for k in tl.static_range(10):
        series = 1.0 + small * series * (1.0 / (12 - k))
    inverse = 1.0 / tl.where(beta == 0, 1.0, beta)
    # p exp(w) is the weight.
    far = (weight - probability * (1.0 + w)) * inverse * inverse
    return tl.where(near, probability * logs * logs * (series * 0.5), far)


@triton.jit(do_not_specialize=_VARIOUS)
def gradient_short(
    probabilities, incoming, out, alpha, inner, count, alpha_out, rows, n,
    each_row: tl.constexpr, power: tl.constexpr, of_alpha: tl.constexpr, work: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Write gradients ``s (g - sum s g / sum s)`` with Jacobian weights s: two reads, one write.

    ``height`` rows a program. With ``of_alpha``, write each row's gradient in its alpha, too.
    """
    row = (tl.program_id(0) * height + tl.arange(0, height))[:, None]
    column = tl.arange(0, width)[None, :]
    place = row.to(tl.int64) * n + column
    there = (row < rows) & (column < n)
    beta = beta_of(alpha, tl.minimum(row, rows - 1), inner, count, each_row, work)
    probability = tl.load(probabilities + place, mask=there, other=0.0).to(work)
    gradient = tl.load(incoming + place, mask=there, other=0.0).to(work)
    weight = jacobian_weights(probability, beta, power)
    mean = tl.sum(weight * gradient, 1, keep_dims=True) / tl.sum(weight, 1, keep_dims=True)
    tl.store(out + place, weight * (gradient - mean), mask=there)
    if of_alpha:
        # Padding is 0 in both: it adds nothing.
        terms = alpha_terms(probability, weight, beta) * (mean - gradient)
        terms = tl.where(probability == 0, 0.0, terms)
        tl.store(alpha_out + row, tl.sum(terms, 1, keep_dims=True), mask=row < rows)


@triton.jit(do_not_specialize=_VARIOUS)
def gradient_long(
    probabilities, incoming, out, alpha, inner, count, alpha_out, n,
    each_row: tl.constexpr, power: tl.constexpr, of_alpha: tl.constexpr, work: tl.constexpr,
    width: tl.constexpr,
):  # fmt: skip
    """As :func:`gradient_short`, one long row a program."""
    row = tl.program_id(0).to(tl.int64)
    probabilities += row * n
    incoming += row * n
    beta = beta_of(alpha, row, inner, count, each_row, work)
    parts, along = tl.zeros((width,), work), tl.zeros((width,), work)
    for begin in tl.range(0, n, width, num_stages=_AHEAD):
        column = begin + tl.arange(0, width)
        probability = tl.load(probabilities + column, mask=column < n, other=0.0).to(work)
        gradient = tl.load(incoming + column, mask=column < n, other=0.0).to(work)
        part = jacobian_weights(probability, beta, power)
        parts += part
        along += part * gradient
    mean = tl.sum(along, 0) / tl.sum(parts, 0)
    in_alpha = tl.zeros((width,), work)
    for begin in tl.range(0, n, width, num_stages=_AHEAD):
        column = begin + tl.arange(0, width)
        probability = tl.load(probabilities + column, mask=column < n, other=0.0).to(work)
        gradient = tl.load(incoming + column, mask=column < n, other=0.0).to(work)
        weight = jacobian_weights(probability, beta, power)
        if of_alpha:
            terms = alpha_terms(probability, weight, beta) * (mean - gradient)
            in_alpha += tl.where(probability == 0, 0.0, terms)
        tl.store(out + row * n + column, weight * (gradient - mean), mask=column < n)
    if of_alpha:
        tl.store(alpha_out + row, tl.sum(in_alpha, 0))
