"""Functions and constants that the Triton kernels of short and long rows share.

triton_rows.py starts the kernels.

triton_curves.py has the mathematics and its symbols; ``beta``, ``log_form`` and ``power``, which
choose the curve, always travel together. Arguments of the kernels:

    scores, out                             contiguous, (rows, n); ``out`` may be the scores, since
                                            no kernel reads a score after it has written there
    shifted, maxima                         (rows,)
    alpha, inner, count, each_row           see `RowAlphas`
    log_form, power, work                   see `Form`
    result                                  "probabilities" or "logs", which go to ``out``
    conjugate                               whether to write ``shifted`` and ``maxima``
    height, width                           rows and columns of a program's tile

In the kernels, ``offset`` counts elements from the start of a tensor and ``column`` from the start
of a row. The masks ``exists`` and ``row_exists`` say which elements of a tile, and which of its
rows, the tensor has.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_curves import solve_tile
from onmt_entmax.sparse.backends.triton_results import logs_at, probabilities_at

# Tiles of a long row that are loaded at once: the next ones, while one is computed.
TILES_IN_FLIGHT = tl.constexpr(3)
# Triton compiles a kernel again for an integer argument that is 1, or divisible by 16, since some
# addresses are cheaper then. For these arguments that would gain nothing.
NOT_SPECIALIZED = ("inner", "count", "rows")
# A bound is lowered by this share of the numbers that it is computed from, 45 and 34 machine
# epsilons, so that its rounding does not raise it above the threshold.
_SLACK_FLOAT64 = tl.constexpr(1e-14)
_SLACK_FLOAT32 = tl.constexpr(4e-6)


@triton.jit
def lower_bound(
    lanes, least, beta, log_form: tl.constexpr, power: tl.constexpr, steps: tl.constexpr
):  # fmt: skip
    """Return lower bounds (rows, 1) of the thresholds of rows, from some of their scores.

    Without some of its scores, a row has a lower threshold. ``lanes`` (rows, lanes) are the scores
    that are kept, minus the maximum; ``least`` (rows, 1) are the least possible thresholds.
    Newton's method takes up to ``steps`` steps on the lanes; its threshold is a lower bound after
    each of them.
    """
    bound, _, _ = solve_tile(lanes, least, beta, log_form, power, steps)
    slack = _SLACK_FLOAT64 if lanes.dtype == tl.float64 else _SLACK_FLOAT32
    return tl.maximum(bound - slack * (1.0 - least + tl.abs(bound)), least)


@triton.jit
def result_of(
    below, threshold, probability, beta, total, result: tl.constexpr, log_form: tl.constexpr,
    power: tl.constexpr, in_float64: tl.constexpr,
):  # fmt: skip
    """Return probabilities (rows, columns) or their logarithms, as ``result`` says.

    ``below`` are scores minus the maximum. `solve_tile` returns ``probability`` and the sum
    ``total``; ``in_float64`` says whether the result will be stored in float64.
    """
    if result == "logs":
        return logs_at(below, threshold, probability, beta, total, log_form, power)
    return probabilities_at(below, threshold, probability, beta, total, log_form, power, in_float64)
