"""The Triton kernels of attention, which never write the scores; triton.py starts them.

A program works on a block of queries of one head and goes through the keys several times, block by
block: for the largest score of each query, for each Newton step to the threshold, and for the
output. The scores are computed anew each time; where one block holds all keys, once. For the
gradient, one kernel goes through the keys for each block of queries, another through the queries
for each block of keys. Thresholds, as everything but the products, are computed in float32; weights
are rounded to the type of the values for the product.

The mathematics of the rows is that of triton_kernels.py. Tensors are ``(outer, heads, rows, size)``
with a stride of 1 in the last dimension.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_kernels import (
    INFINITY,
    STEPS,
    alpha_terms,
    beta_of,
    curve,
    least_threshold,
    solve_tile,
    step,
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
def _scores(
    query, key, mask, row, column, queries, keys, mask_row, mask_column, scale,
    masking: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    """Return the scores of tiles of queries and keys, -inf where a query may not attend."""
    scores = tl.dot(query, tl.trans(key), input_precision=precision) * scale
    row, column = row[:, None], column[None, :]
    there = (column < keys) & (row < queries)
    if masking == "causal":
        there = there & (column <= row)
    elif masking != "none":
        place = mask + row.to(tl.int64) * mask_row + column.to(tl.int64) * mask_column
        given = tl.load(place, mask=there, other=0)
        if masking == "booleans":
            there = there & (given != 0)
        else:
            scores += given.to(tl.float32)
    return tl.where(there, scores, -INFINITY)


@triton.jit
def _noise(seed, head, row, column, keys, dropped):
    """Return the factors of dropout, the same in every kernel."""
    place = row[:, None] * keys + column[None, :]
    return tl.where(tl.rand(tl.load(seed) + head, place) < dropped, 0.0, 1.0 / (1.0 - dropped))


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
    at, block = _head_and_block(queries, height)
    outer, head = at // heads, at % heads
    query += outer * query_outer + head * query_head
    key += outer * key_outer + head * key_head
    value += outer * value_outer + head * value_head
    mask += outer * mask_outer + head * mask_head
    row = block * height + tl.arange(0, height)
    beta = beta_of(alpha, tl.zeros((height, 1), tl.int64) + at, 1, heads, each_head, tl.float32)
    queried = _rows(query, row, queries, query_row, size, wide)
    end = keys
    if masking == "causal":
        end = tl.minimum(keys, (block + 1) * height)
    threshold = least_threshold(beta, log_form, power)
    column = tl.arange(0, width)
    scores, p = tl.zeros((height, width), tl.float32), tl.zeros((height, width), tl.float32)
    if single:
        read = _rows(key, column, keys, key_row, size, wide)
        scores = _scores(
            queried, read, mask, row, column, queries, keys, mask_row, mask_column, scale,
            masking, precision,
        )  # fmt: skip
        maximum = tl.max(scores, 1, keep_dims=True)
        maximum = tl.where(maximum == -INFINITY, 0.0, maximum)
        threshold, p, _ = solve_tile(scores - maximum, threshold, beta, log_form, power)
    else:
        maximum = tl.full((height, 1), -INFINITY, tl.float32)
        for begin in range(0, end, width):
            read = _rows(key, begin + column, keys, key_row, size, wide)
            scores = _scores(
                queried, read, mask, row, begin + column, queries, keys, mask_row, mask_column,
                scale, masking, precision,
            )  # fmt: skip
            maximum = tl.maximum(maximum, tl.max(scores, 1, keep_dims=True))
        # A query without keys: all its weights are 0.
        maximum = tl.where(maximum == -INFINITY, 0.0, maximum)
        going = 1
        steps = 0
        while (going > 0) & (steps < STEPS):
            total, slope = tl.zeros((height, 1), tl.float32), tl.zeros((height, 1), tl.float32)
            for begin in range(0, end, width):
                read = _rows(key, begin + column, keys, key_row, size, wide)
                scores = _scores(
                    queried, read, mask, row, begin + column, queries, keys, mask_row,
                    mask_column, scale, masking, precision,
                )  # fmt: skip
                p, s, _ = curve(scores - maximum, threshold, beta, log_form, power)
                total += tl.sum(p, 1, keep_dims=True)
                slope += tl.sum(s, 1, keep_dims=True)
            threshold, better = step(total, slope, threshold, beta, log_form, power)
            going = tl.max(tl.max(better.to(tl.int32), 1), 0)
            steps += 1
    total = tl.zeros((height, 1), tl.float32)
    result = tl.zeros((height, value_wide), tl.float32)
    for begin in range(0, end, width):
        if not single:
            read = _rows(key, begin + column, keys, key_row, size, wide)
            scores = _scores(
                queried, read, mask, row, begin + column, queries, keys, mask_row, mask_column,
                scale, masking, precision,
            )  # fmt: skip
            p, _, _ = curve(scores - maximum, threshold, beta, log_form, power)
        total += tl.sum(p, 1, keep_dims=True)
        if has_dropout:
            p *= _noise(seed, at, row, begin + column, keys, dropped)
        given = _rows(value, begin + column, keys, value_row, value_size, value_wide)
        result += tl.dot(p.to(given.dtype), given, input_precision=precision)
    total = tl.where(total == 0, 1.0, total)
    result /= total
    _store_rows(out + at * queries * value_size, result, row, queries, value_size, value_wide)
    place = statistics + at * queries + row[:, None]
    there = row[:, None] < queries
    tl.store(place, maximum, mask=there)
    tl.store(place + total_heads * queries, threshold, mask=there)
    tl.store(place + 2 * total_heads * queries, total, mask=there)


@triton.jit
def _known(statistics, at, row, queries, total_heads):
    """Return maxima, thresholds and sums of queries, (rows, 1)."""
    place, there = statistics + at * queries + row[:, None], row[:, None] < queries
    apart = total_heads * queries
    maximum = tl.load(place, mask=there, other=0.0)
    threshold = tl.load(place + apart, mask=there, other=0.0)
    return maximum, threshold, tl.load(place + 2 * apart, mask=there, other=1.0)


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
    at, block = _head_and_block(queries, height)
    outer, head = at // heads, at % heads
    query += outer * query_outer + head * query_head
    key += outer * key_outer + head * key_head
    value += outer * value_outer + head * value_head
    mask += outer * mask_outer + head * mask_head
    row = block * height + tl.arange(0, height)
    beta = beta_of(alpha, tl.zeros((height, 1), tl.int64) + at, 1, heads, each_head, tl.float32)
    maximum, threshold, _total = _known(statistics, at, row, queries, total_heads)
    queried = _rows(query, row, queries, query_row, size, wide)
    given = _rows(
        upstream + at * queries * value_size, row, queries, value_size, value_size, value_wide
    )
    end = keys
    if masking == "causal":
        end = tl.minimum(keys, (block + 1) * height)
    column = tl.arange(0, width)
    all_weights, along = tl.zeros((height, 1), tl.float32), tl.zeros((height, 1), tl.float32)
    bends, bent = tl.zeros((height, 1), tl.float32), tl.zeros((height, 1), tl.float32)
    for begin in range(0, end, width):
        read = _rows(key, begin + column, keys, key_row, size, wide)
        scores = _scores(
            queried, read, mask, row, begin + column, queries, keys, mask_row, mask_column, scale,
            masking, precision,
        )  # fmt: skip
        p, s, _ = curve(scores - maximum, threshold, beta, log_form, power)
        values = _rows(value, begin + column, keys, value_row, value_size, value_wide)
        g = tl.dot(given, tl.trans(values), input_precision=precision)
        if has_dropout:
            g *= _noise(seed, at, row, begin + column, keys, dropped)
        all_weights += tl.sum(s, 1, keep_dims=True)
        along += tl.sum(s * g, 1, keep_dims=True)
        if of_alpha:
            bend = tl.where(p == 0, 0.0, alpha_terms(p, s, beta))
            bends += tl.sum(bend, 1, keep_dims=True)
            bent += tl.sum(bend * g, 1, keep_dims=True)
    mean = along / tl.where(all_weights == 0, 1.0, all_weights)
    there = row[:, None] < queries
    tl.store(means + at * queries + row[:, None], mean, mask=there)
    if of_alpha:
        tl.store(alpha_grad + at * queries + row[:, None], mean * bends - bent, mask=there)
    result = tl.zeros((height, wide), tl.float32)
    for begin in range(0, end, width):
        read = _rows(key, begin + column, keys, key_row, size, wide)
        scores = _scores(
            queried, read, mask, row, begin + column, queries, keys, mask_row, mask_column, scale,
            masking, precision,
        )  # fmt: skip
        _, s, _ = curve(scores - maximum, threshold, beta, log_form, power)
        values = _rows(value, begin + column, keys, value_row, value_size, value_wide)
        g = tl.dot(given, tl.trans(values), input_precision=precision)
        if has_dropout:
            g *= _noise(seed, at, row, begin + column, keys, dropped)
        scores_grad = s * (g - mean) * scale
        result += tl.dot(scores_grad.to(read.dtype), read, input_precision=precision)
    _store_rows(query_grad + at * queries * size, result, row, queries, size, wide)


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
    at, block = _head_and_block(keys, width)
    outer, head = at // heads, at % heads
    query += outer * query_outer + head * query_head
    key += outer * key_outer + head * key_head
    value += outer * value_outer + head * value_head
    mask += outer * mask_outer + head * mask_head
    beta = beta_of(alpha, tl.zeros((height, 1), tl.int64) + at, 1, heads, each_head, tl.float32)
    column = block * width + tl.arange(0, width)
    read = _rows(key, column, keys, key_row, size, wide)
    values = _rows(value, column, keys, value_row, value_size, value_wide)
    of_key = tl.zeros((width, wide), tl.float32)
    of_value = tl.zeros((width, value_wide), tl.float32)
    start = 0
    if masking == "causal":
        start = block * width // height * height
    for begin in range(start, queries, height):
        row = begin + tl.arange(0, height)
        maximum, threshold, total = _known(statistics, at, row, queries, total_heads)
        there = row[:, None] < queries
        mean = tl.load(means + at * queries + row[:, None], mask=there, other=0.0)
        queried = _rows(query, row, queries, query_row, size, wide)
        given = _rows(
            upstream + at * queries * value_size, row, queries, value_size, value_size, value_wide
        )
        scores = _scores(
            queried, read, mask, row, column, queries, keys, mask_row, mask_column, scale,
            masking, precision,
        )  # fmt: skip
        p, s, _ = curve(scores - maximum, threshold, beta, log_form, power)
        p = p / total
        g = tl.dot(given, tl.trans(values), input_precision=precision)
        if has_dropout:
            noise = _noise(seed, at, row, column, keys, dropped)
            p, g = p * noise, g * noise
        scores_grad = s * (g - mean) * scale
        of_value += tl.dot(tl.trans(p.to(given.dtype)), given, input_precision=precision)
        of_key += tl.dot(
            tl.trans(scores_grad.to(queried.dtype)), queried, input_precision=precision
        )
    _store_rows(key_grad + at * keys * size, of_key, column, keys, size, wide)
    _store_rows(value_grad + at * keys * value_size, of_value, column, keys, value_size, value_wide)
