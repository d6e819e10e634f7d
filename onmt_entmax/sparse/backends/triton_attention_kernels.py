"""The Triton kernels of attention, which never write the scores; triton_attention.py starts them.

A program works on a block of queries of one head and goes through the keys several times, block by
block: for the largest score of each query, for each Newton step to the threshold, and for the
output. The scores are computed anew each time; where one block holds all keys, once. For the
gradient, one kernel goes through the keys for each block of queries, another through the queries
for each block of keys. Thresholds, as everything but the products, are computed in float32; weights
are rounded to the type of the values for the product.

triton_curves.py has the mathematics of a row, here the scores of one query. Tensors are
``(outer, heads, rows, size)`` with a stride of 1 in the last dimension; ``statistics`` are
``(3, outer x heads, queries)``: maxima, thresholds and sums. ``row`` and ``column`` are numbers of
queries and keys, ``place`` is an address, ``there`` a mask of what exists.

All three kernels take, in this order:

=================================================  ==============================================
``query, key, value, mask, alpha, seed``           tensors; ``mask`` and ``seed`` may be unused
``upstream, statistics, means``                    for gradients alone: the gradient of the output;
                                                   see above; ``(outer x heads, queries)``
what they write                                    ``out, statistics``; or ``..._grad``, and for the
                                                   queries ``means``, which the keys read
``query_outer, query_head, query_row``, ...        strides, in elements
``heads, total_heads``                             of an outer index; of all together
``queries, keys, size, value_size``                rows of each; columns of keys and of values
``scale, dropped``                                 of scores; probability of dropout
``each_head``                                      whether each head has its own alpha
``log_form, power``                                the form of the curve, see triton_curves.py
``masking, has_dropout, precision``                kind of mask; ...; of products, see ``tl.dot``
``single``                                         one block holds all keys
``height, width, wide, value_wide``                queries and keys of a block; ``size`` and
                                                   ``value_size``, rounded up to powers of 2
=================================================  ==============================================
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_curves import (
    INFINITY,
    STEPS,
    alpha_terms,
    beta_of,
    curve,
    least_threshold,
    newton_step,
    solve_tile,
)

# Kernels compile anew for a number that is 1 or divisible by 16; for these it need not.
_VARIOUS = ("mask_outer", "mask_head", "mask_row", "heads", "total_heads", "queries", "keys")


@triton.jit
def _head_and_block(rows, height: tl.constexpr):
    """Return head and block of a program; only the first axis of a grid may exceed 65,535."""
    blocks = tl.cdiv(rows, height)
    return (tl.program_id(0) // blocks).to(tl.int64), tl.program_id(0) % blocks


@triton.jit
def _rows(tensor, row, rows, stride, size, wide: tl.constexpr):
    """Return rows of a matrix as a tile, padded with 0 to ``wide`` columns."""
    column = tl.arange(0, wide)[None, :]
    there = (row[:, None] < rows) & (column < size)
    return tl.load(tensor + row[:, None].to(tl.int64) * stride + column, mask=there, other=0.0)


@triton.jit
def _store_rows(out, tile, row, rows, size, wide: tl.constexpr):
    """Write a tile to rows of a contiguous matrix."""
    column = tl.arange(0, wide)[None, :]
    there = (row[:, None] < rows) & (column < size)
    place = row[:, None].to(tl.int64) * size + column
    tl.store(out + place, tile.to(out.dtype.element_ty), mask=there)


@triton.jit
def _beginning(tensor, outer, head, outer_stride, head_stride):
    """Return the address of the first row of a head."""
    return tensor + (outer * outer_stride + head * head_stride)


@triton.jit
def _scores(
    query_rows, key_rows, mask, row, column, queries, keys, mask_row, mask_column, scale,
    masking: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    """Return the scores of tiles of queries and keys, -inf where a query may not attend."""
    scores = tl.dot(query_rows, tl.trans(key_rows), input_precision=precision) * scale
    row, column = row[:, None], column[None, :]
    there = (column < keys) & (row < queries)
    if masking == "causal":
        there = there & (column <= row)
    elif masking != "none":
        place = mask + row.to(tl.int64) * mask_row + column.to(tl.int64) * mask_column
        entries = tl.load(place, mask=there, other=0)
        if masking == "booleans":
            there = there & (entries != 0)
        else:
            scores += entries.to(tl.float32)
    return tl.where(there, scores, -INFINITY)


@triton.jit
def _noise(seed, head, row, column, keys, dropped):
    """Return the factors of dropout, which depend on seed, head, row and column alone."""
    place = row[:, None] * keys + column[None, :]
    return tl.where(tl.rand(tl.load(seed) + head, place) < dropped, 0.0, 1.0 / (1.0 - dropped))


@triton.jit
def _scored(
    query_rows, key, mask, row, column, queries, keys, key_row, mask_row, mask_column, size, scale,
    masking: tl.constexpr, precision: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """Return a block of keys, and its scores."""
    key_rows = _rows(key, column, keys, key_row, size, wide)
    scores = _scores(
        query_rows, key_rows, mask, row, column, queries, keys, mask_row, mask_column, scale,
        masking, precision,
    )  # fmt: skip
    return key_rows, scores


@triton.jit
def _solve_in_blocks(
    query_rows, key, mask, row, end, queries, keys, key_row, mask_row, mask_column, size, scale,
    threshold, beta,
    log_form: tl.constexpr, power: tl.constexpr, masking: tl.constexpr, precision: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """Return the maxima and thresholds (height, 1) of queries, from keys up to ``end``."""
    column = tl.arange(0, width)
    maximum = tl.full((height, 1), -INFINITY, tl.float32)
    for begin in range(0, end, width):
        _, scores = _scored(
            query_rows, key, mask, row, begin + column, queries, keys, key_row, mask_row,
            mask_column, size, scale, masking, precision, wide,
        )  # fmt: skip
        maximum = tl.maximum(maximum, tl.max(scores, 1, keep_dims=True))
    # A query without keys: all its weights are 0.
    maximum = tl.where(maximum == -INFINITY, 0.0, maximum)
    going = 1
    steps = 0
    while (going > 0) & (steps < STEPS):
        total, weights = tl.zeros((height, 1), tl.float32), tl.zeros((height, 1), tl.float32)
        for begin in range(0, end, width):
            _, scores = _scored(
                query_rows, key, mask, row, begin + column, queries, keys, key_row, mask_row,
                mask_column, size, scale, masking, precision, wide,
            )  # fmt: skip
            p, weight, _ = curve(scores - maximum, threshold, beta, log_form, power)
            total += tl.sum(p, 1, keep_dims=True)
            weights += tl.sum(weight, 1, keep_dims=True)
        threshold, better = newton_step(total, weights, threshold, beta, log_form, power)
        going = tl.max(tl.max(better.to(tl.int32), 1), 0)
        steps += 1
    return maximum, threshold


@triton.jit(do_not_specialize=_VARIOUS)
def attend(
    query, key, value, mask, alpha, seed, out, statistics,
    query_outer, query_head, query_row, key_outer, key_head, key_row,
    value_outer, value_head, value_row, mask_outer, mask_head, mask_row, mask_column,
    heads, total_heads, queries, keys, size, value_size, scale, dropped,
    each_head: tl.constexpr, log_form: tl.constexpr, power: tl.constexpr,
    masking: tl.constexpr, has_dropout: tl.constexpr,
    precision: tl.constexpr, single: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    wide: tl.constexpr, value_wide: tl.constexpr,
):  # fmt: skip
    """Write the output of a block of queries, and their maxima, thresholds and sums.

    ``single`` says that ``width`` keys are all.
    """
    index, block = _head_and_block(queries, height)
    outer, head = index // heads, index % heads
    query = _beginning(query, outer, head, query_outer, query_head)
    key = _beginning(key, outer, head, key_outer, key_head)
    value = _beginning(value, outer, head, value_outer, value_head)
    mask = _beginning(mask, outer, head, mask_outer, mask_head)
    row = block * height + tl.arange(0, height)
    beta = beta_of(alpha, tl.zeros((height, 1), tl.int64) + index, 1, heads, each_head, tl.float32)
    query_rows = _rows(query, row, queries, query_row, size, wide)
    end = keys
    if masking == "causal":
        end = tl.minimum(keys, (block + 1) * height)
    threshold = least_threshold(beta, log_form, power)
    column = tl.arange(0, width)
    p = tl.zeros((height, width), tl.float32)
    if single:
        _, scores = _scored(
            query_rows, key, mask, row, column, queries, keys, key_row, mask_row, mask_column,
            size, scale, masking, precision, wide,
        )  # fmt: skip
        maximum = tl.max(scores, 1, keep_dims=True)
        maximum = tl.where(maximum == -INFINITY, 0.0, maximum)
        threshold, p, _ = solve_tile(scores - maximum, threshold, beta, log_form, power)
    else:
        maximum, threshold = _solve_in_blocks(
            query_rows, key, mask, row, end, queries, keys, key_row, mask_row, mask_column, size,
            scale, threshold, beta, log_form, power, masking, precision, height, width, wide,
        )  # fmt: skip
    total = tl.zeros((height, 1), tl.float32)
    result = tl.zeros((height, value_wide), tl.float32)
    for begin in range(0, end, width):
        if not single:
            _, scores = _scored(
                query_rows, key, mask, row, begin + column, queries, keys, key_row, mask_row,
                mask_column, size, scale, masking, precision, wide,
            )  # fmt: skip
            p, _, _ = curve(scores - maximum, threshold, beta, log_form, power)
        total += tl.sum(p, 1, keep_dims=True)
        if has_dropout:
            p *= _noise(seed, index, row, begin + column, keys, dropped)
        values = _rows(value, begin + column, keys, value_row, value_size, value_wide)
        result += tl.dot(p.to(values.dtype), values, input_precision=precision)
    total = tl.where(total == 0, 1.0, total)
    result /= total
    _store_rows(out + index * queries * value_size, result, row, queries, value_size, value_wide)
    place = statistics + index * queries + row[:, None]
    there = row[:, None] < queries
    tl.store(place, maximum, mask=there)
    tl.store(place + total_heads * queries, threshold, mask=there)
    tl.store(place + 2 * total_heads * queries, total, mask=there)


@triton.jit
def _statistics(statistics, index, row, queries, total_heads):
    """Return maxima, thresholds and sums (rows, 1) of queries, as :func:`attend` wrote them."""
    place, there = statistics + index * queries + row[:, None], row[:, None] < queries
    apart = total_heads * queries
    maximum = tl.load(place, mask=there, other=0.0)
    threshold = tl.load(place + apart, mask=there, other=0.0)
    return maximum, threshold, tl.load(place + 2 * apart, mask=there, other=1.0)


@triton.jit
def _weight_gradients(
    upstream_rows, value, seed, index, row, column, keys, value_row, value_size, dropped,
    has_dropout: tl.constexpr, precision: tl.constexpr, value_wide: tl.constexpr,
):  # fmt: skip
    """Return the gradients in the weights (queries, keys) of a block."""
    values = _rows(value, column, keys, value_row, value_size, value_wide)
    gradient = tl.dot(upstream_rows, tl.trans(values), input_precision=precision)
    if has_dropout:
        gradient *= _noise(seed, index, row, column, keys, dropped)
    return gradient


@triton.jit(do_not_specialize=_VARIOUS)
def gradient_of_queries(
    query, key, value, mask, alpha, seed, upstream, statistics, means, query_grad, alpha_grad,
    query_outer, query_head, query_row, key_outer, key_head, key_row,
    value_outer, value_head, value_row, mask_outer, mask_head, mask_row, mask_column,
    heads, total_heads, queries, keys, size, value_size, scale, dropped,
    each_head: tl.constexpr, log_form: tl.constexpr, power: tl.constexpr,
    masking: tl.constexpr, has_dropout: tl.constexpr,
    precision: tl.constexpr, of_alpha: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    wide: tl.constexpr, value_wide: tl.constexpr,
):  # fmt: skip
    """Write the gradient of a block of queries, each one's in alpha, and its weighted mean.

    With Jacobian weights s and the gradient g in the weights, that in the scores is
    ``s (g - mean)`` with the mean ``sum s g / sum s``; :func:`gradient_of_keys` reads it.
    """
    index, block = _head_and_block(queries, height)
    outer, head = index // heads, index % heads
    query = _beginning(query, outer, head, query_outer, query_head)
    key = _beginning(key, outer, head, key_outer, key_head)
    value = _beginning(value, outer, head, value_outer, value_head)
    mask = _beginning(mask, outer, head, mask_outer, mask_head)
    row = block * height + tl.arange(0, height)
    beta = beta_of(alpha, tl.zeros((height, 1), tl.int64) + index, 1, heads, each_head, tl.float32)
    maximum, threshold, _total = _statistics(statistics, index, row, queries, total_heads)
    query_rows = _rows(query, row, queries, query_row, size, wide)
    upstream += index * queries * value_size
    upstream_rows = _rows(upstream, row, queries, value_size, value_size, value_wide)
    end = keys
    if masking == "causal":
        end = tl.minimum(keys, (block + 1) * height)
    column = tl.arange(0, width)
    # Sums over the keys: s, s g, and for alpha its terms (see `alpha_terms`) and these times g.
    weights, weighted = tl.zeros((height, 1), tl.float32), tl.zeros((height, 1), tl.float32)
    terms, weighted_terms = tl.zeros((height, 1), tl.float32), tl.zeros((height, 1), tl.float32)
    for begin in range(0, end, width):
        _, scores = _scored(
            query_rows, key, mask, row, begin + column, queries, keys, key_row, mask_row,
            mask_column, size, scale, masking, precision, wide,
        )  # fmt: skip
        p, weight, _ = curve(scores - maximum, threshold, beta, log_form, power)
        gradient = _weight_gradients(
            upstream_rows, value, seed, index, row, begin + column, keys, value_row, value_size,
            dropped, has_dropout, precision, value_wide,
        )  # fmt: skip
        weights += tl.sum(weight, 1, keep_dims=True)
        weighted += tl.sum(weight * gradient, 1, keep_dims=True)
        if of_alpha:
            term = tl.where(p == 0, 0.0, alpha_terms(p, weight, beta))
            terms += tl.sum(term, 1, keep_dims=True)
            weighted_terms += tl.sum(term * gradient, 1, keep_dims=True)
    mean = weighted / tl.where(weights == 0, 1.0, weights)
    place, there = index * queries + row[:, None], row[:, None] < queries
    tl.store(means + place, mean, mask=there)
    if of_alpha:
        tl.store(alpha_grad + place, mean * terms - weighted_terms, mask=there)
    result = tl.zeros((height, wide), tl.float32)
    for begin in range(0, end, width):
        key_rows, scores = _scored(
            query_rows, key, mask, row, begin + column, queries, keys, key_row, mask_row,
            mask_column, size, scale, masking, precision, wide,
        )  # fmt: skip
        _, weight, _ = curve(scores - maximum, threshold, beta, log_form, power)
        gradient = _weight_gradients(
            upstream_rows, value, seed, index, row, begin + column, keys, value_row, value_size,
            dropped, has_dropout, precision, value_wide,
        )  # fmt: skip
        scores_grad = weight * (gradient - mean) * scale
        result += tl.dot(scores_grad.to(key_rows.dtype), key_rows, input_precision=precision)
    _store_rows(query_grad + index * queries * size, result, row, queries, size, wide)


@triton.jit(do_not_specialize=_VARIOUS)
def gradient_of_keys(
    query, key, value, mask, alpha, seed, upstream, statistics, means, key_grad, value_grad,
    query_outer, query_head, query_row, key_outer, key_head, key_row,
    value_outer, value_head, value_row, mask_outer, mask_head, mask_row, mask_column,
    heads, total_heads, queries, keys, size, value_size, scale, dropped,
    each_head: tl.constexpr, log_form: tl.constexpr, power: tl.constexpr,
    masking: tl.constexpr, has_dropout: tl.constexpr,
    precision: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    wide: tl.constexpr, value_wide: tl.constexpr,
):  # fmt: skip
    """Write the gradients of a block of keys and their values."""
    index, block = _head_and_block(keys, width)
    outer, head = index // heads, index % heads
    query = _beginning(query, outer, head, query_outer, query_head)
    key = _beginning(key, outer, head, key_outer, key_head)
    value = _beginning(value, outer, head, value_outer, value_head)
    mask = _beginning(mask, outer, head, mask_outer, mask_head)
    beta = beta_of(alpha, tl.zeros((height, 1), tl.int64) + index, 1, heads, each_head, tl.float32)
    upstream += index * queries * value_size
    column = block * width + tl.arange(0, width)
    key_rows = _rows(key, column, keys, key_row, size, wide)
    values = _rows(value, column, keys, value_row, value_size, value_wide)
    of_key = tl.zeros((width, wide), tl.float32)
    of_value = tl.zeros((width, value_wide), tl.float32)
    start = 0
    if masking == "causal":  # earlier queries attend to none of these keys
        start = block * width // height * height
    for begin in range(start, queries, height):
        row = begin + tl.arange(0, height)
        maximum, threshold, total = _statistics(statistics, index, row, queries, total_heads)
        there = row[:, None] < queries
        mean = tl.load(means + index * queries + row[:, None], mask=there, other=0.0)
        query_rows = _rows(query, row, queries, query_row, size, wide)
        upstream_rows = _rows(upstream, row, queries, value_size, value_size, value_wide)
        scores = _scores(
            query_rows, key_rows, mask, row, column, queries, keys, mask_row, mask_column, scale,
            masking, precision,
        )  # fmt: skip
        p, weight, _ = curve(scores - maximum, threshold, beta, log_form, power)
        p = p / total
        gradient = tl.dot(upstream_rows, tl.trans(values), input_precision=precision)
        if has_dropout:
            noise = _noise(seed, index, row, column, keys, dropped)
            p, gradient = p * noise, gradient * noise
        scores_grad = (weight * (gradient - mean) * scale).to(query_rows.dtype)
        p = p.to(upstream_rows.dtype)
        of_value += tl.dot(tl.trans(p), upstream_rows, input_precision=precision)
        of_key += tl.dot(tl.trans(scores_grad), query_rows, input_precision=precision)
    _store_rows(key_grad + index * keys * size, of_key, column, keys, size, wide)
    value_grad += index * keys * value_size
    _store_rows(value_grad, of_value, column, keys, value_size, value_wide)
