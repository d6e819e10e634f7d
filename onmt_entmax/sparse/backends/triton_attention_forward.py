"""The Triton kernel of attention, which never writes the scores; triton_attention.py starts it.

A program works on a block of queries of one head and goes through the keys several times, block by
block: for the largest score of each query, for each Newton step to the threshold, and for the
output. The scores are computed anew each time; where one block holds all keys, once. Thresholds, as
everything but the products, are computed in float32; weights are rounded to the type of the values
for the product.

triton_attention_tiles.py explains the arguments, triton_curves.py the mathematics of a row, here
the scores of one query.
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
    query_rows, key, mask, row, end, queries, keys, key_row, mask_row, mask_column, size, scale,
    least, beta,
    log_form: tl.constexpr, power: tl.constexpr, masking: tl.constexpr, precision: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """Return the maxima and thresholds (height, 1) of queries.

    The keys are those up to ``end``, in blocks of ``width``. Newton's method, on sums over all
    blocks, starts from the threshold ``least``, and ends when no query's threshold moves.
    """
    column = tl.arange(0, width)
    maximum = tl.full((height, 1), -INFINITY, tl.float32)
    for begin in range(0, end, width):
        _, scores = keys_and_scores(
            query_rows, key, mask, row, begin + column, queries, keys, key_row, mask_row,
            mask_column, size, scale, masking, precision, wide,
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


@triton.jit(do_not_specialize=VARIOUS)
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
    """Write the output of a block of queries, and their maxima, thresholds and sums."""
    index, block = head_and_block(queries, height)
    query, key, value, mask = tensors_of_head(
        query, key, value, mask, index, heads, query_outer, query_head, key_outer, key_head,
        value_outer, value_head, mask_outer, mask_head,
    )  # fmt: skip
    row = block * height + tl.arange(0, height)
    beta = beta_of_head(alpha, index, heads, each_head, height)
    query_rows = load_rows(query, row, queries, query_row, size, wide)
    end = end_of_keys(block, keys, masking, height)

    least = least_threshold(beta, log_form, power)
    column = tl.arange(0, width)
    p = tl.zeros((height, width), tl.float32)
    if single:  # the weights of the solution are those of the output
        _, scores = keys_and_scores(
            query_rows, key, mask, row, column, queries, keys, key_row, mask_row, mask_column,
            size, scale, masking, precision, wide,
        )  # fmt: skip
        maximum = _finite(tl.max(scores, 1, keep_dims=True))
        threshold, p, _ = solve_tile(scores - maximum, least, beta, log_form, power)
    else:
        maximum, threshold = _solve_in_blocks(
            query_rows, key, mask, row, end, queries, keys, key_row, mask_row, mask_column, size,
            scale, least, beta, log_form, power, masking, precision, height, width, wide,
        )  # fmt: skip

    total = tl.zeros((height, 1), tl.float32)
    result = tl.zeros((height, value_wide), tl.float32)
    for begin in range(0, end, width):
        if not single:
            _, scores = keys_and_scores(
                query_rows, key, mask, row, begin + column, queries, keys, key_row, mask_row,
                mask_column, size, scale, masking, precision, wide,
            )  # fmt: skip
            p, _, _ = curve(scores - maximum, threshold, beta, log_form, power)
        total += tl.sum(p, 1, keep_dims=True)  # before dropout
        if has_dropout:
            p *= dropout_factors(seed, index, row, begin + column, keys, dropped)
        values = load_rows(value, begin + column, keys, value_row, value_size, value_wide)
        result += tl.dot(p.to(values.dtype), values, input_precision=precision)
    total = tl.where(total == 0, 1.0, total)  # a query without keys
    result /= total

    store_rows(out + index * queries * value_size, result, row, queries, value_size, value_wide)
    store_statistics(statistics, maximum, threshold, total, index, row, queries, total_heads)
