"""The Triton kernel of attention, which never writes the scores; triton_attention.py starts it.

A program works on a block of queries of one head and goes through the keys several times, block by
block: for the largest score of each query, for each Newton step to the threshold, and for the
output. The scores are computed anew each time; where one block holds all keys, once. Thresholds, as
everything but the products, are computed in float32; weights are rounded to the type of the values
for the product.

The arguments of `attend` come in these groups; triton_attention_tiles.py describes each one:

=======================================  ========================================================
``query`` ... ``seed, out, statistics``  tensors; the last two are written
``query_outer_stride`` ...               the strides of query, key, value and mask
``heads`` ... ``dropped``                counts, sizes of vectors, scale, probability of dropout
``each_head, log_form, power``           where alpha comes from, and the curve: triton_curves.py
``masking, has_dropout, precision``      how scores are computed and weights dropped
``single``                               one block holds all keys: ``key_count <= width``
``height, width``                        queries and keys of a block
``wide, value_wide``                     columns of tiles: vector sizes as powers of 2
=======================================  ========================================================

Triton 3.2, the oldest that this package takes, has no tuples as arguments, so functions pass all of
them on one by one. In each call of `keys_and_scores` the first line names the tiles of the block;
the others, the same in all calls, what stays the same for the head.

A row of triton_curves.py is here the scores of one query.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_attention_tiles import (
    VARIOUS,
    beta_of_head,
    dropout_factors,
    end_of_keys,
    head_and_block,
    keys_and_scores,
    load_rows,
    store_rows,
    store_statistics,
    tensors_of_head,
)
from onmt_entmax.sparse.backends.triton_curves import (
    INFINITY,
    STEPS,
    curve,
    least_threshold,
    newton_step,
    solve_tile,
)


@triton.jit
def _finite(maximum):
    """Return maxima (rows, 1), 0 of a query without keys: then all its weights are 0."""
    return tl.where(maximum == -INFINITY, 0.0, maximum)


@triton.jit
def _solve_in_blocks(
    query_rows, row, end,
    key, key_row_stride, mask, mask_row_stride, mask_column_stride,
    query_count, key_count, size, scale,
    masking: tl.constexpr, precision: tl.constexpr, wide: tl.constexpr,
    least, beta, log_form: tl.constexpr, power: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """Return the maxima and thresholds (height, 1) of queries.

    The keys are those up to ``end``, in blocks of ``width``. Newton's method, on sums over all
    blocks, starts from the threshold ``least``, and ends when no query's threshold moves.
    """
    column = tl.arange(0, width)
    maximum = tl.full((height, 1), -INFINITY, tl.float32)
    for begin in range(0, end, width):
        _, scores = keys_and_scores(
            query_rows, row, begin + column,
            key, key_row_stride, mask, mask_row_stride, mask_column_stride,
            query_count, key_count, size, scale, masking, precision, wide,
        )  # fmt: skip
        maximum = tl.maximum(maximum, tl.max(scores, 1, keep_dims=True))
    maximum = _finite(maximum)
    threshold = least
    going = 1
    steps = 0
    while (going > 0) & (steps < STEPS):
        total, weights = tl.zeros((height, 1), tl.float32), tl.zeros((height, 1), tl.float32)
        for begin in range(0, end, width):
            _, scores = keys_and_scores(
                query_rows, row, begin + column,
                key, key_row_stride, mask, mask_row_stride, mask_column_stride,
                query_count, key_count, size, scale, masking, precision, wide,
            )  # fmt: skip
            p, weight, _ = curve(scores - maximum, threshold, beta, log_form, power)
            total += tl.sum(p, 1, keep_dims=True)
            weights += tl.sum(weight, 1, keep_dims=True)
        threshold, better = newton_step(total, weights, threshold, beta, log_form, power)
        going = tl.max(tl.max(better.to(tl.int32), 1), 0)
        steps += 1
    return maximum, threshold


@triton.jit(do_not_specialize=VARIOUS)
def attend(
    query, key, value, mask, alpha, seed, out, statistics,
    query_outer_stride, query_head_stride, query_row_stride,
    key_outer_stride, key_head_stride, key_row_stride,
    value_outer_stride, value_head_stride, value_row_stride,
    mask_outer_stride, mask_head_stride, mask_row_stride, mask_column_stride,
    heads, total_heads, query_count, key_count, size, value_size, scale, dropped,
    each_head: tl.constexpr, log_form: tl.constexpr, power: tl.constexpr,
    masking: tl.constexpr, has_dropout: tl.constexpr, precision: tl.constexpr,
    single: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    wide: tl.constexpr, value_wide: tl.constexpr,
):  # fmt: skip
    """Write the output of a block of queries, and their maxima, thresholds and sums."""
    head_index, block = head_and_block(query_count, height)
    query, key, value, mask = tensors_of_head(
        query, key, value, mask, head_index, heads,
        query_outer_stride, query_head_stride, key_outer_stride, key_head_stride,
        value_outer_stride, value_head_stride, mask_outer_stride, mask_head_stride,
    )  # fmt: skip
    row = block * height + tl.arange(0, height)
    beta = beta_of_head(alpha, head_index, heads, each_head, height)
    query_rows = load_rows(query, row, query_count, query_row_stride, size, wide)
    end = end_of_keys(block, key_count, masking, height)

    least = least_threshold(beta, log_form, power)
    column = tl.arange(0, width)
    if single:  # p stays: the last loop runs once, and takes it for the output
        _, scores = keys_and_scores(
            query_rows, row, column,
            key, key_row_stride, mask, mask_row_stride, mask_column_stride,
            query_count, key_count, size, scale, masking, precision, wide,
        )  # fmt: skip
        maximum = _finite(tl.max(scores, 1, keep_dims=True))
        threshold, p, _ = solve_tile(scores - maximum, least, beta, log_form, power)
    else:
        maximum, threshold = _solve_in_blocks(
            query_rows, row, end,
            key, key_row_stride, mask, mask_row_stride, mask_column_stride,
            query_count, key_count, size, scale, masking, precision, wide,
            least, beta, log_form, power, height, width,
        )  # fmt: skip

    # The output, and the sum of the weights, which dropout does not change.
    total = tl.zeros((height, 1), tl.float32)
    result = tl.zeros((height, value_wide), tl.float32)
    for begin in range(0, end, width):
        if not single:
            _, scores = keys_and_scores(
                query_rows, row, begin + column,
                key, key_row_stride, mask, mask_row_stride, mask_column_stride,
                query_count, key_count, size, scale, masking, precision, wide,
            )  # fmt: skip
            p, _, _ = curve(scores - maximum, threshold, beta, log_form, power)
        total += tl.sum(p, 1, keep_dims=True)
        if has_dropout:
            p *= dropout_factors(seed, head_index, row, begin + column, key_count, dropped)
        values = load_rows(
            value, begin + column, key_count, value_row_stride, value_size, value_wide
        )
        result += tl.dot(p.to(values.dtype), values, input_precision=precision)
    total = tl.where(total == 0, 1.0, total)  # a query without keys
    result /= total

    out += head_index * query_count * value_size
    store_rows(out, result, row, query_count, value_size, value_wide)
    store_statistics(
        statistics, maximum, threshold, total, head_index, row, query_count, total_heads
    )
