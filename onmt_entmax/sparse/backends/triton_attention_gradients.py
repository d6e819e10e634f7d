r"""The Triton kernels of the gradients of attention; triton_attention.py starts them.

For a query :math:`q_i`, keys :math:`k_j` and values :math:`v_j`, let :math:`p_{ij}` be the weights,
:math:`d_{ij}` the factors of dropout (1 without it), :math:`s_{ij} = p_{ij}^{2 - \alpha}` the
weights of entmax's Jacobian, and :math:`u_i` the upstream gradient with respect to the output
:math:`o_i = \sum_j d_{ij} p_{ij} v_j`. Then

.. math::
    g_{ij} &= d_{ij} \, u_i \cdot v_j & \text{is the gradient with respect to a weight,} \\
    m_i &= \sum_j s_{ij} g_{ij} \,/ \sum_j s_{ij} & \text{its mean,} \\
    e_{ij} &= s_{ij} (g_{ij} - m_i) & \text{the gradient with respect to a score,}

and the gradients with respect to a query, a key and a value are

.. math::
    \text{scale} \sum_j e_{ij} k_j , \quad
    \text{scale} \sum_i e_{ij} q_i , \quad
    \sum_i d_{ij} p_{ij} u_i .

The gradient with respect to alpha is :math:`m_i \sum_j t_{ij} - \sum_j t_{ij} g_{ij}`, summed over
the queries by the caller, with the terms t of `alpha_terms`.

The first kernel takes a block of queries, goes through the keys, and also writes the means m. The
second one takes a block of keys, goes through the queries, and reads the means. Both compute scores
and weights again from the statistics of the queries: storing them would take the memory that these
kernels save. For the same reason, the first kernel goes through the keys twice: once for the means,
and once for the gradients e, which need the means.

In the code p, s, g, m and t are the numbers above for a block of queries (rows) and of keys
(columns), ``upstream`` is u, and ``scores_grad`` is e times the scale.
triton_attention_arguments.py explains the arguments, and why
functions pass all of them on one by one. Calls with several lines of arguments name the tiles of a
block in the first line; the other lines belong to the head. What triton_curves.py calls a row is
here the scores of one query.
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
from onmt_entmax.sparse.backends.triton_attention_statistics import load_statistics
from onmt_entmax.sparse.backends.triton_attention_tiles import (
    dropout_factors,
    keys_and_scores,
    load_rows,
    scores_of_tiles,
    store_rows,
)
from onmt_entmax.sparse.backends.triton_curves import curve
from onmt_entmax.sparse.backends.triton_jacobian import alpha_terms


@triton.jit
def _weight_gradients(
    upstream_rows, query_index, key_index,
    value, value_row_stride, seed, head_index, key_count, value_size, dropout_p,
    has_dropout: tl.constexpr, precision: tl.constexpr, padded_value_size: tl.constexpr,
):  # fmt: skip
    """Return the gradients g of the weights of some keys, (queries, keys); load their values."""
    values = load_rows(value, key_index, key_count, value_row_stride, value_size, padded_value_size)
    g = tl.dot(upstream_rows, tl.trans(values), input_precision=precision)
    if has_dropout:
        g *= dropout_factors(seed, head_index, query_index, key_index, key_count, dropout_p)
    return g


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def gradient_of_queries(
    query, key, value, mask, alpha, seed, upstream, statistics, means, query_grad, alpha_grad,
    query_outer_stride, query_head_stride, query_row_stride,
    key_outer_stride, key_head_stride, key_row_stride,
    value_outer_stride, value_head_stride, value_row_stride,
    mask_outer_stride, mask_head_stride, mask_row_stride, mask_column_stride,
    heads, total_heads, query_count, key_count, size, value_size, scale, dropout_p,
    each_head: tl.constexpr, log_form: tl.constexpr, power: tl.constexpr,
    masking: tl.constexpr, has_dropout: tl.constexpr, precision: tl.constexpr,
    wants_alpha: tl.constexpr, block_queries: tl.constexpr, block_keys: tl.constexpr,
    padded_size: tl.constexpr, padded_value_size: tl.constexpr,
):  # fmt: skip
    """Write the gradients of a block of queries, and their means m.

    With ``wants_alpha``, also write the part of each query in the gradient with respect to alpha.
    """
    head_index, block = head_and_block(query_count, block_queries)
    query, key, value, mask = tensors_of_head(
        query, key, value, mask, head_index, heads,
        query_outer_stride, query_head_stride, key_outer_stride, key_head_stride,
        value_outer_stride, value_head_stride, mask_outer_stride, mask_head_stride,
    )  # fmt: skip
    query_index = block * block_queries + tl.arange(0, block_queries)
    beta = beta_of_head(alpha, head_index, heads, each_head, block_queries)
    maximum, threshold, _total = load_statistics(
        statistics, head_index, query_index, query_count, total_heads
    )
    query_rows = load_rows(query, query_index, query_count, query_row_stride, size, padded_size)
    upstream += head_index * query_count * value_size
    upstream_rows = load_rows(
        upstream, query_index, query_count, value_size, value_size, padded_value_size
    )
    end = end_of_keys(block, key_count, masking, block_queries)

    key_index = tl.arange(0, block_keys)
    # First the sums over all keys, for the means and the gradients with respect to alpha.
    sum_s = tl.zeros((block_queries, 1), tl.float32)
    sum_sg = tl.zeros((block_queries, 1), tl.float32)
    sum_t = tl.zeros((block_queries, 1), tl.float32)
    sum_tg = tl.zeros((block_queries, 1), tl.float32)
    for begin in range(0, end, block_keys):
        _, scores = keys_and_scores(
            query_rows, query_index, begin + key_index,
            key, key_row_stride, mask, mask_row_stride, mask_column_stride,
            query_count, key_count, size, scale, masking, precision, padded_size,
        )  # fmt: skip
        p, s, _ = curve(scores - maximum, threshold, beta, log_form, power)
        g = _weight_gradients(
            upstream_rows, query_index, begin + key_index,
            value, value_row_stride, seed, head_index, key_count, value_size, dropout_p,
            has_dropout, precision, padded_value_size,
        )  # fmt: skip
        sum_s += tl.sum(s, 1, keep_dims=True)
        sum_sg += tl.sum(s * g, 1, keep_dims=True)
        if wants_alpha:
            t = tl.where(p == 0, 0.0, alpha_terms(p, s, beta))
            sum_t += tl.sum(t, 1, keep_dims=True)
            sum_tg += tl.sum(t * g, 1, keep_dims=True)
    m = sum_sg / tl.where(sum_s == 0, 1.0, sum_s)  # 0 for a query without keys
    offset = head_index * query_count + query_index[:, None]
    exists = query_index[:, None] < query_count
    tl.store(means + offset, m, mask=exists)
    if wants_alpha:
        tl.store(alpha_grad + offset, m * sum_t - sum_tg, mask=exists)

    # Then the gradients e, and their products with the keys. Scores and weights are computed again,
    # since shared memory has no room to keep them for all keys.
    result = tl.zeros((block_queries, padded_size), tl.float32)
    for begin in range(0, end, block_keys):
        key_rows, scores = keys_and_scores(
            query_rows, query_index, begin + key_index,
            key, key_row_stride, mask, mask_row_stride, mask_column_stride,
            query_count, key_count, size, scale, masking, precision, padded_size,
        )  # fmt: skip
        _, s, _ = curve(scores - maximum, threshold, beta, log_form, power)
        g = _weight_gradients(
            upstream_rows, query_index, begin + key_index,
            value, value_row_stride, seed, head_index, key_count, value_size, dropout_p,
            has_dropout, precision, padded_value_size,
        )  # fmt: skip
        scores_grad = s * (g - m) * scale
        result += tl.dot(scores_grad.to(key_rows.dtype), key_rows, input_precision=precision)
    query_grad += head_index * query_count * size
    store_rows(query_grad, result, query_index, query_count, size, padded_size)


@triton.jit(do_not_specialize=NOT_SPECIALIZED)
def gradient_of_keys(
    query, key, value, mask, alpha, seed, upstream, statistics, means, key_grad, value_grad,
    query_outer_stride, query_head_stride, query_row_stride,
    key_outer_stride, key_head_stride, key_row_stride,
    value_outer_stride, value_head_stride, value_row_stride,
    mask_outer_stride, mask_head_stride, mask_row_stride, mask_column_stride,
    heads, total_heads, query_count, key_count, size, value_size, scale, dropout_p,
    each_head: tl.constexpr, log_form: tl.constexpr, power: tl.constexpr,
    masking: tl.constexpr, has_dropout: tl.constexpr, precision: tl.constexpr,
    block_queries: tl.constexpr, block_keys: tl.constexpr,
    padded_size: tl.constexpr, padded_value_size: tl.constexpr,
):  # fmt: skip
    """Write the gradients of a block of keys and of their values; read the means m."""
    head_index, block = head_and_block(key_count, block_keys)
    query, key, value, mask = tensors_of_head(
        query, key, value, mask, head_index, heads,
        query_outer_stride, query_head_stride, key_outer_stride, key_head_stride,
        value_outer_stride, value_head_stride, mask_outer_stride, mask_head_stride,
    )  # fmt: skip
    beta = beta_of_head(alpha, head_index, heads, each_head, block_queries)
    upstream += head_index * query_count * value_size
    key_index = block * block_keys + tl.arange(0, block_keys)
    key_rows = load_rows(key, key_index, key_count, key_row_stride, size, padded_size)
    values = load_rows(value, key_index, key_count, value_row_stride, value_size, padded_value_size)
    of_key = tl.zeros((block_keys, padded_size), tl.float32)
    of_value = tl.zeros((block_keys, padded_value_size), tl.float32)
    start = 0
    if masking == "causal":  # earlier queries attend to none of these keys
        start = block * block_keys // block_queries * block_queries

    for begin in range(start, query_count, block_queries):
        query_index = begin + tl.arange(0, block_queries)
        maximum, threshold, total = load_statistics(
            statistics, head_index, query_index, query_count, total_heads
        )
        exists = query_index[:, None] < query_count
        m = tl.load(means + head_index * query_count + query_index[:, None], mask=exists, other=0.0)
        query_rows = load_rows(query, query_index, query_count, query_row_stride, size, padded_size)
        upstream_rows = load_rows(
            upstream, query_index, query_count, value_size, value_size, padded_value_size
        )
        scores = scores_of_tiles(
            query_rows, key_rows, query_index, key_index, mask, mask_row_stride, mask_column_stride,
            query_count, key_count, scale, masking, precision,
        )  # fmt: skip
        p, s, _ = curve(scores - maximum, threshold, beta, log_form, power)
        # The forward kernel divides the output by the sum of the weights, which is 1 but for
        # rounding; so the gradient of a value has the same factor. For s, rounding is left.
        p = p / total
        g = tl.dot(upstream_rows, tl.trans(values), input_precision=precision)
        if has_dropout:
            factors = dropout_factors(
                seed, head_index, query_index, key_index, key_count, dropout_p
            )
            p, g = p * factors, g * factors
        scores_grad = (s * (g - m) * scale).to(query_rows.dtype)
        p = p.to(upstream_rows.dtype)
        of_value += tl.dot(tl.trans(p), upstream_rows, input_precision=precision)
        of_key += tl.dot(tl.trans(scores_grad), query_rows, input_precision=precision)
    key_grad += head_index * key_count * size
    store_rows(key_grad, of_key, key_index, key_count, size, padded_size)
    value_grad += head_index * key_count * value_size
    store_rows(value_grad, of_value, key_index, key_count, value_size, padded_value_size)
