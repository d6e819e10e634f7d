r"""The Triton kernels of the gradient of entmax; triton_rows.py starts them.

Let p be the probabilities of a row, ``s = p ** (2 - alpha)`` their Jacobian weights, g the upstream
gradient with respect to p, and m its mean ``sum s g / sum s``. The gradient with respect to the
scores is ``s (g - m)``. The gradient with respect to alpha is ``sum t (m - g)``, with the terms t
of `alpha_terms`. `derivatives.gradients` has the sources.

A program computes a group of short rows, which are read once and stay in registers, or one long
row, which is read twice: first for m, then for the gradients.

Arguments of the kernels:

    probabilities, incoming                 contiguous, (rows, n); ``incoming`` is g
    out                                     receives gradients with respect to scores, (rows, n)
    alpha, inner, count, each_row           see `RowAlphas`
    power, work                             see `jacobian_weights` and `Form`
    wants_alpha                             whether to compute gradients with respect to alpha
    alpha_out                               receives them, (rows,)
    height, width                           rows and columns of a program's tile

In the kernels, ``offset`` counts elements from the start of a tensor and ``column`` from the start
of a row; the mask ``exists`` says which elements of a tile the tensor has.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_curves import beta_of
from onmt_entmax.sparse.backends.triton_jacobian import alpha_terms, jacobian_weights
from onmt_entmax.sparse.backends.triton_row_parts import NOT_SPECIALIZED, TILES_IN_FLIGHT


@triton.jit
def _load_weighted(
    probabilities, incoming, offset, exists, beta, power: tl.constexpr, work: tl.constexpr
):  # fmt: skip
    """Return probabilities p, their Jacobian weights s, and upstream gradients g at offsets."""
    probability = tl.load(probabilities + offset, mask=exists, other=0.0).to(work)
    gradient = tl.load(incoming + offset, mask=exists, other=0.0).to(work)
    return probability, jacobian_weights(probability, beta, power), gradient


@triton.jit
def _alpha_gradient_terms(probability, weight, gradient, mean, beta):
    """Return the summands ``t (m - g)`` of a gradient with respect to alpha.

    Outside the support they are 0, also where g is infinite, for which the product would be nan.
    """
    terms = alpha_terms(probability, weight, beta) * (mean - gradient)
    return tl.where(probability == 0, 0.0, terms)


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def gradient_short(
    probabilities, incoming, out, alpha, inner, count, alpha_out, rows, n,
    each_row: tl.constexpr, power: tl.constexpr, wants_alpha: tl.constexpr, work: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Write the gradients of rows that fit in registers, ``height`` a program."""
    row = (tl.program_id(0) * height + tl.arange(0, height))[:, None]
    column = tl.arange(0, width)[None, :]
    offset = row.to(tl.int64) * n + column
    exists = (row < rows) & (column < n)
    beta = beta_of(alpha, tl.minimum(row, rows - 1), inner, count, each_row, work)
    probability, weight, gradient = _load_weighted(
        probabilities, incoming, offset, exists, beta, power, work
    )
    mean = tl.sum(weight * gradient, 1, keep_dims=True) / tl.sum(weight, 1, keep_dims=True)
    tl.store(out + offset, weight * (gradient - mean), mask=exists)
    if wants_alpha:
        terms = _alpha_gradient_terms(probability, weight, gradient, mean, beta)
        tl.store(alpha_out + row, tl.sum(terms, 1, keep_dims=True), mask=row < rows)


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def gradient_long(
    probabilities, incoming, out, alpha, inner, count, alpha_out, n,
    each_row: tl.constexpr, power: tl.constexpr, wants_alpha: tl.constexpr, work: tl.constexpr,
    width: tl.constexpr,
):  # fmt: skip
    """Write the gradients of long rows, one a program, which is read in tiles of ``width``."""
    row = tl.program_id(0).to(tl.int64)
    probabilities += row * n
    incoming += row * n
    out += row * n
    beta = beta_of(alpha, row, inner, count, each_row, work)
    weights, weighted = tl.zeros((width,), work), tl.zeros((width,), work)
    for begin in tl.range(0, n, width, num_stages=TILES_IN_FLIGHT):
        column = begin + tl.arange(0, width)
        _, weight, gradient = _load_weighted(
            probabilities, incoming, column, column < n, beta, power, work
        )
        weights += weight
        weighted += weight * gradient
    mean = tl.sum(weighted, 0) / tl.sum(weights, 0)
    grad_alpha = tl.zeros((width,), work)
    for begin in tl.range(0, n, width, num_stages=TILES_IN_FLIGHT):
        column = begin + tl.arange(0, width)
        probability, weight, gradient = _load_weighted(
            probabilities, incoming, column, column < n, beta, power, work
        )
        if wants_alpha:
            grad_alpha += _alpha_gradient_terms(probability, weight, gradient, mean, beta)
        tl.store(out + column, weight * (gradient - mean), mask=column < n)
    if wants_alpha:
        tl.store(alpha_out + row, tl.sum(grad_alpha, 0))
