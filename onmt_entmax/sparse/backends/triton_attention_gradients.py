r"""The Triton kernels of the gradients of attention; triton_attention.py starts them.

For a query i and keys j, let :math:`p_{ij}` be the weights, :math:`d_{ij}` the factors of dropout
(1 without it), :math:`s_{ij} = p_{ij}^{2 - \alpha}` the weights of entmax's Jacobian, and
:math:`u_i` the gradient that arrives in the output :math:`o_i = \sum_j d_{ij} p_{ij} v_j`. Then

.. math::
    g_{ij} &= d_{ij} \, u_i \cdot v_j & \text{is the gradient in a weight,} \\
    m_i &= \sum_j s_{ij} g_{ij} \,/ \sum_j s_{ij} & \text{its mean,} \\
    e_{ij} &= s_{ij} (g_{ij} - m_i) & \text{the gradient in a score,}

and the gradients are

.. math::
    \sum_j e_{ij} k_j \cdot \text{scale in a query}, \quad
    \sum_i e_{ij} q_i \cdot \text{scale in a key}, \quad
    \sum_i d_{ij} p_{ij} u_i \text{ in a value},

and :math:`m_i \sum_j t_{ij} - \sum_j t_{ij} g_{ij}` in alpha, with the terms t of `alpha_terms`;
the caller sums it over the queries.

One kernel goes through the keys for each block of queries, the other one through the queries for
each block of keys, after the first has written the means m. Both compute scores and weights anew
from the statistics of the queries.

The arguments of both kernels come in these groups; triton_attention_tiles.py describes each one:

=======================================  ========================================================
``query`` ... ``seed``                   tensors, those of the forward kernel
``upstream, statistics, means``          u; what the forward kernel wrote; m
``query_grad`` ...                       the gradients that the kernel writes
``query_outer_stride`` ...               the strides of query, key, value and mask
``heads`` ... ``dropped``                counts, sizes of vectors, scale, probability of dropout
``each_head, log_form, power``           where alpha comes from, and the curve: triton_curves.py
``masking, has_dropout, precision``      how scores are computed and weights dropped
``of_alpha``                             whether gradients in alpha are wanted
``height, width``                        queries and keys of a block
``wide, value_wide``                     columns of tiles: vector sizes as powers of 2
=======================================  ========================================================

In the code, ``p``, ``weight``, ``gradient``, ``mean`` and ``term`` are p, s, g, m and t. In calls
with several lines of arguments, the first line names the tiles of a block; the others, what stays
the same for the head. A row of triton_curves.py is here the scores of one query.
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
    load_statistics,
    scores_of_tiles,
    store_rows,
    tensors_of_head,
)
from onmt_entmax.sparse.backends.triton_curves import alpha_terms, curve


@triton.jit
def _weight_gradients(
    upstream_rows, row, column,
    value, value_row_stride, seed, head_index, key_count, value_size, dropped,
    has_dropout: tl.constexpr, precision: tl.constexpr, value_wide: tl.constexpr,
):  # fmt: skip
    """Load the values ``column``; return the gradients g in their weights (queries, keys)."""
    values = load_rows(value, column, key_count, value_row_stride, value_size, value_wide)
    gradient = tl.dot(upstream_rows, tl.trans(values), input_precision=precision)
    if has_dropout:
        gradient *= dropout_factors(seed, head_index, row, column, key_count, dropped)
    return gradient


@triton.jit(do_not_specialize=VARIOUS)
def gradient_of_queries(
    query, key, value, mask, alpha, seed, upstream, statistics, means, query_grad, alpha_grad,
    query_outer_stride, query_head_stride, query_row_stride,
    key_outer_stride, key_head_stride, key_row_stride,
    value_outer_stride, value_head_stride, value_row_stride,
    mask_outer_stride, mask_head_stride, mask_row_stride, mask_column_stride,
    heads, total_heads, query_count, key_count, size, value_size, scale, dropped,
    each_head: tl.constexpr, log_form: tl.constexpr, power: tl.constexpr,
    masking: tl.constexpr, has_dropout: tl.constexpr, precision: tl.constexpr,
    of_alpha: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    wide: tl.constexpr, value_wide: tl.constexpr,
):  # fmt: skip
    """Write the gradients of a block of queries, their means m, and their gradients in alpha.

    The latter only with ``of_alpha``.
    """
    head_index, block = head_and_block(query_count, height)
    query, key, value, mask = tensors_of_head(
        query, key, value, mask, head_index, heads,
        query_outer_stride, query_head_stride, key_outer_stride, key_head_stride,
        value_outer_stride, value_head_stride, mask_outer_stride, mask_head_stride,
    )  # fmt: skip
    row = block * height + tl.arange(0, height)
    beta = beta_of_head(alpha, head_index, heads, each_head, height)
    maximum, threshold, _total = load_statistics(
        statistics, head_index, row, query_count, total_heads
    )
    query_rows = load_rows(query, row, query_count, query_row_stride, size, wide)
    upstream += head_index * query_count * value_size
    upstream_rows = load_rows(upstream, row, query_count, value_size, value_size, value_wide)
    end = end_of_keys(block, key_count, masking, height)

    column = tl.arange(0, width)
    # First the sums over the keys that means and gradients in alpha need.
    sum_s, sum_sg = tl.zeros((height, 1), tl.float32), tl.zeros((height, 1), tl.float32)
    sum_t, sum_tg = tl.zeros((height, 1), tl.float32), tl.zeros((height, 1), tl.float32)
    for begin in range(0, end, width):
        _, scores = keys_and_scores(
            query_rows, row, begin + column,
            key, key_row_stride, mask, mask_row_stride, mask_column_stride,
            query_count, key_count, size, scale, masking, precision, wide,
        )  # fmt: skip
        p, weight, _ = curve(scores - maximum, threshold, beta, log_form, power)
        gradient = _weight_gradients(
            upstream_rows, row, begin + column,
            value, value_row_stride, seed, head_index, key_count, value_size, dropped,
            has_dropout, precision, value_wide,
        )  # fmt: skip
        sum_s += tl.sum(weight, 1, keep_dims=True)
        sum_sg += tl.sum(weight * gradient, 1, keep_dims=True)
        if of_alpha:
            term = tl.where(p == 0, 0.0, alpha_terms(p, weight, beta))
            sum_t += tl.sum(term, 1, keep_dims=True)
            sum_tg += tl.sum(term * gradient, 1, keep_dims=True)
    mean = sum_sg / tl.where(sum_s == 0, 1.0, sum_s)  # of a query without keys, 0
    place, there = head_index * query_count + row[:, None], row[:, None] < query_count
    tl.store(means + place, mean, mask=there)
    if of_alpha:
        tl.store(alpha_grad + place, mean * sum_t - sum_tg, mask=there)

    # Then the gradients in the scores, and their products with the keys.
    result = tl.zeros((height, wide), tl.float32)
    for begin in range(0, end, width):
        key_rows, scores = keys_and_scores(
            query_rows, row, begin + column,
            key, key_row_stride, mask, mask_row_stride, mask_column_stride,
            query_count, key_count, size, scale, masking, precision, wide,
        )  # fmt: skip
        _, weight, _ = curve(scores - maximum, threshold, beta, log_form, power)
        gradient = _weight_gradients(
            upstream_rows, row, begin + column,
            value, value_row_stride, seed, head_index, key_count, value_size, dropped,
            has_dropout, precision, value_wide,
        )  # fmt: skip
        scores_grad = weight * (gradient - mean) * scale
        result += tl.dot(scores_grad.to(key_rows.dtype), key_rows, input_precision=precision)
    store_rows(query_grad + head_index * query_count * size, result, row, query_count, size, wide)


@triton.jit(do_not_specialize=VARIOUS)
def gradient_of_keys(
    query, key, value, mask, alpha, seed, upstream, statistics, means, key_grad, value_grad,
    query_outer_stride, query_head_stride, query_row_stride,
    key_outer_stride, key_head_stride, key_row_stride,
    value_outer_stride, value_head_stride, value_row_stride,
    mask_outer_stride, mask_head_stride, mask_row_stride, mask_column_stride,
    heads, total_heads, query_count, key_count, size, value_size, scale, dropped,
    each_head: tl.constexpr, log_form: tl.constexpr, power: tl.constexpr,
    masking: tl.constexpr, has_dropout: tl.constexpr, precision: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr,
    wide: tl.constexpr, value_wide: tl.constexpr,
):  # fmt: skip
    """Write the gradients of a block of keys and of their values; read the means m."""
    head_index, block = head_and_block(key_count, width)
    query, key, value, mask = tensors_of_head(
        query, key, value, mask, head_index, heads,
        query_outer_stride, query_head_stride, key_outer_stride, key_head_stride,
        value_outer_stride, value_head_stride, mask_outer_stride, mask_head_stride,
    )  # fmt: skip
    beta = beta_of_head(alpha, head_index, heads, each_head, height)
    upstream += head_index * query_count * value_size
    column = block * width + tl.arange(0, width)
    key_rows = load_rows(key, column, key_count, key_row_stride, size, wide)
    values = load_rows(value, column, key_count, value_row_stride, value_size, value_wide)
    of_key = tl.zeros((width, wide), tl.float32)
    of_value = tl.zeros((width, value_wide), tl.float32)
    start = 0
    if masking == "causal":  # earlier queries attend to none of these keys
        start = block * width // height * height

    for begin in range(start, query_count, height):
        row = begin + tl.arange(0, height)
        maximum, threshold, total = load_statistics(
            statistics, head_index, row, query_count, total_heads
        )
        there = row[:, None] < query_count
        mean = tl.load(means + head_index * query_count + row[:, None], mask=there, other=0.0)
        query_rows = load_rows(query, row, query_count, query_row_stride, size, wide)
        upstream_rows = load_rows(upstream, row, query_count, value_size, value_size, value_wide)
        scores = scores_of_tiles(
            query_rows, key_rows, row, column, mask, mask_row_stride, mask_column_stride,
            query_count, key_count, scale, masking, precision,
        )  # fmt: skip
        p, weight, _ = curve(scores - maximum, threshold, beta, log_form, power)
        # As in the output. For s, the sum is near enough to 1.
        p = p / total
        gradient = tl.dot(upstream_rows, tl.trans(values), input_precision=precision)
        if has_dropout:
            factors = dropout_factors(seed, head_index, row, column, key_count, dropped)
            p, gradient = p * factors, gradient * factors
        scores_grad = (weight * (gradient - mean) * scale).to(query_rows.dtype)
        p = p.to(upstream_rows.dtype)
        of_value += tl.dot(tl.trans(p), upstream_rows, input_precision=precision)
        of_key += tl.dot(tl.trans(scores_grad), query_rows, input_precision=precision)
    store_rows(key_grad + head_index * key_count * size, of_key, column, key_count, size, wide)
    value_grad += head_index * key_count * value_size
    store_rows(value_grad, of_value, column, key_count, value_size, value_wide)
