"""The Triton kernel of attention, which never writes the scores; triton_attention.py starts it.

A program works on a block of queries of one head and goes through the keys several times, block by
block: for the largest score of each query, for each Newton step to the threshold, and for the
output. The scores are computed anew each time, unless one block holds all keys. Products take the
inputs in their own type, and the weights rounded to the type of the values; everything else is
computed in float32.

triton_attention_arguments.py explains the arguments, and why functions pass all of them on one by
one. Each call of `keys_and_scores` names the tiles of the block in its first line; its other lines
are the same in all calls, since they belong to the head.

What triton_curves.py calls a row is here the scores of one query.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_attention_heads import (
    NOT_SPECIALIZED,
    beta_of_head,
    end_of_keys,
    head_and_block,
    tensors_of_head,
)
from onmt_entmax.sparse.backends.triton_attention_statistics import store_statistics
from onmt_entmax.sparse.backends.triton_attention_tiles import (
    dropout_factors,
    keys_and_scores,
    load_rows,
    store_rows,
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
    """Return maxima (rows, 1), with 0 for a query without keys, so that all its weights are 0."""
    return tl.where(maximum == -INFINITY, 0.0, maximum)


@triton.jit
def _solve_in_blocks(
    query_rows, query_index, end,
    key, key_row_stride, mask, mask_row_stride, mask_column_stride,
    query_count, key_count, size, scale,
    masking: tl.constexpr, precision: tl.constexpr, padded_size: tl.constexpr,
    least, beta, log_form: tl.constexpr, power: tl.constexpr,
    block_queries: tl.constexpr, block_keys: tl.constexpr,
):  # fmt: skip
    """Return the maxima and thresholds (block_queries, 1) of queries.

    It reads the keys before ``end``, in blocks of ``block_keys``. Newton's method, with sums over
    all blocks, starts from the threshold ``least``, and ends when no query's threshold moves.
    """
    key_index = tl.arange(0, block_keys)
    maximum = tl.full((block_queries, 1), -INFINITY, tl.float32)
    for begin in range(0, end, block_keys):
        _, scores = keys_and_scores(
            query_rows, query_index, begin + key_index,
            key, key_row_stride, mask, mask_row_stride, mask_column_stride,
            query_count, key_count, size, scale, masking, precision, padded_size,
        )  # fmt: skip
        maximum = tl.maximum(maximum, tl.max(scores, 1, keep_dims=True))
    maximum = _finite(maximum)
    threshold = least
    moves = 1
    steps = 0
    while (moves > 0) & (steps < STEPS):
        total = tl.zeros((block_queries, 1), tl.float32)
        weights = tl.zeros((block_queries, 1), tl.float32)
        for begin in range(0, end, block_keys):
            _, scores = keys_and_scores(
                query_rows, query_index, begin + key_index,
                key, key_row_stride, mask, mask_row_stride, mask_column_stride,
                query_count, key_count, size, scale, masking, precision, padded_size,
            )  # fmt: skip
            p, weight, _ = curve(scores - maximum, threshold, beta, log_form, power)
            total += tl.sum(p, 1, keep_dims=True)
            weights += tl.sum(weight, 1, keep_dims=True)
        threshold, better = newton_step(total, weights, threshold, beta, log_form, power)
        moves = tl.max(tl.max(better.to(tl.int32), 1), 0)
        steps += 1
    return maximum, threshold


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def attend(
    query, key, value, mask, alpha, seed, out, statistics,
    query_outer_stride, query_head_stride, query_row_stride,
    key_outer_stride, key_head_stride, key_row_stride,
    value_outer_stride, value_head_stride, value_row_stride,
    mask_outer_stride, mask_head_stride, mask_row_stride, mask_column_stride,
    heads, total_heads, query_count, key_count, size, value_size, scale, dropout_p,
    each_head: tl.constexpr, log_form: tl.constexpr, power: tl.constexpr,
    masking: tl.constexpr, has_dropout: tl.constexpr, precision: tl.constexpr,
    one_block: tl.constexpr, block_queries: tl.constexpr, block_keys: tl.constexpr,
    padded_size: tl.constexpr, padded_value_size: tl.constexpr,
):  # fmt: skip
    """Write the output of a block of queries, and their maxima, thresholds and sums."""
    head_index, block = head_and_block(query_count, block_queries)
    query, key, value, mask = tensors_of_head(
        query, key, value, mask, head_index, heads,
        query_outer_stride, query_head_stride, key_outer_stride, key_head_stride,
        value_outer_stride, value_head_stride, mask_outer_stride, mask_head_stride,
    )  # fmt: skip
    query_index = block * block_queries + tl.arange(0, block_queries)
    beta = beta_of_head(alpha, head_index, heads, each_head, block_queries)
    query_rows = load_rows(query, query_index, query_count, query_row_stride, size, padded_size)
    end = end_of_keys(block, key_count, masking, block_queries)

    least = least_threshold(beta, log_form, power)
    key_index = tl.arange(0, block_keys)
    if one_block:  # p is kept for the last loop, which then runs once
        _, scores = keys_and_scores(
            query_rows, query_index, key_index,
            key, key_row_stride, mask, mask_row_stride, mask_column_stride,
            query_count, key_count, size, scale, masking, precision, padded_size,
        )  # fmt: skip
        maximum = _finite(tl.max(scores, 1, keep_dims=True))
        threshold, p, _ = solve_tile(scores - maximum, least, beta, log_form, power)
    else:
        maximum, threshold = _solve_in_blocks(
            query_rows, query_index, end,
            key, key_row_stride, mask, mask_row_stride, mask_column_stride,
            query_count, key_count, size, scale, masking, precision, padded_size,
            least, beta, log_form, power, block_queries, block_keys,
        )  # fmt: skip

    # The output, and the sum of the weights before dropout.
    total = tl.zeros((block_queries, 1), tl.float32)
    result = tl.zeros((block_queries, padded_value_size), tl.float32)
    for begin in range(0, end, block_keys):
        if not one_block:
            _, scores = keys_and_scores(
                query_rows, query_index, begin + key_index,
                key, key_row_stride, mask, mask_row_stride, mask_column_stride,
                query_count, key_count, size, scale, masking, precision, padded_size,
            )  # fmt: skip
            p, _, _ = curve(scores - maximum, threshold, beta, log_form, power)
        total += tl.sum(p, 1, keep_dims=True)
        if has_dropout:
            p *= dropout_factors(
                seed, head_index, query_index, begin + key_index, key_count, dropout_p
            )
        values = load_rows(
            value, begin + key_index, key_count, value_row_stride, value_size, padded_value_size
        )
        result += tl.dot(p.to(values.dtype), values, input_precision=precision)
    total = tl.where(total == 0, 1.0, total)  # a query without keys
    result /= total

    out += head_index * query_count * value_size
    store_rows(out, result, query_index, query_count, value_size, padded_value_size)
    store_statistics(
        statistics, maximum, threshold, total, head_index, query_index, query_count, total_heads
    )
