"""Tiles of attention for its Triton kernels: addresses, scores, dropout, statistics of queries.

triton_attention_forward.py has the kernel of attention, triton_attention_gradients.py the two of
its gradients; triton_attention.py starts them, with these arguments by name:

=================================================  ==============================================
``query, key, value, mask, alpha, seed``           tensors; ``mask`` and ``seed`` may be unused
``upstream, statistics, means``                    for gradients alone: the gradient of the output;
                                                   see below; ``(outer x heads, queries)``
what they write                                    ``out, statistics``; or ``..._grad``, and for the
                                                   queries ``means``, which the keys read
``query_outer_stride``, ...                        strides, in elements: ``query_``, ``key_``,
                                                   ``value_`` and ``mask_``, each of ``outer``,
                                                   ``head`` and ``row``; ``mask_column_stride``
``heads, total_heads``                             of an outer index; of all together
``query_count, key_count, size, value_size``       rows of each; columns of keys and of values
``scale, dropped``                                 of scores; probability of dropout
``each_head``                                      whether each head has its own alpha
``log_form, power``                                the form of the curve, see triton_curves.py
``masking``                                        "none", "causal", "booleans" or "numbers"
``has_dropout``                                    whether weights are dropped
``precision``                                      of products, see ``tl.dot``
``single``                                         one block holds all keys; ``attend`` alone
``of_alpha``                                       whether gradients in alpha are wanted; of the
                                                   queries' gradients alone
``height, width``                                  queries and keys of a block
``wide, value_wide``                               ``size`` and ``value_size``, rounded up to powers
                                                   of 2, at least 16
=================================================  ==============================================

Tensors are ``(outer, heads, rows, size)`` with a stride of 1 in the last dimension. ``statistics``
are ``(3, outer x heads, queries)``: for each query the largest score, the threshold, and the sum of
the weights, which is 1 but for rounding.

Inside, ``head_index`` is the number of a head among all of them. ``row`` and ``column`` are the
numbers of queries and keys, one-dimensional tensors; ``row`` may also number the rows of any
matrix. ``query_rows`` and ``key_rows`` are tiles of vectors, in numbers. ``place`` is an address,
``there`` a mask of what exists.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_curves import INFINITY, beta_of

# Kernels compile anew for a number that is 1 or divisible by 16; for these they need not.
VARIOUS = (
    "mask_outer_stride",
    "mask_head_stride",
    "mask_row_stride",
    "heads",
    "total_heads",
    "query_count",
    "key_count",
)


# --- the head of a program -------------------------------------------------------------------


@triton.jit
def head_and_block(row_count, block_rows: tl.constexpr):
    """Return the head of a program, and which block of the head's rows the program computes.

    Both are in the first axis of the grid: the others may not exceed 65,535.
    """
    blocks = tl.cdiv(row_count, block_rows)
    return (tl.program_id(0) // blocks).to(tl.int64), tl.program_id(0) % blocks


@triton.jit
def tensors_of_head(
    query, key, value, mask, head_index, heads,
    query_outer_stride, query_head_stride, key_outer_stride, key_head_stride,
    value_outer_stride, value_head_stride, mask_outer_stride, mask_head_stride,
):  # fmt: skip
    """Return the addresses of the first query, key, value and row of the mask of a head."""
    outer, head = head_index // heads, head_index % heads
    return (
        query + (outer * query_outer_stride + head * query_head_stride),
        key + (outer * key_outer_stride + head * key_head_stride),
        value + (outer * value_outer_stride + head * value_head_stride),
        mask + (outer * mask_outer_stride + head * mask_head_stride),
    )


@triton.jit
def beta_of_head(alpha, head_index, heads, each_head: tl.constexpr, height: tl.constexpr):
    """Return alpha - 1 of a head, once for each query of a block, ``(height, 1)``."""
    indices = tl.zeros((height, 1), tl.int64) + head_index
    return beta_of(alpha, indices, 1, heads, each_head, tl.float32)


@triton.jit
def end_of_keys(block, key_count, masking: tl.constexpr, height: tl.constexpr):
    """Return how many keys, from the first, a block of queries may attend to."""
    end = key_count
    if masking == "causal":
        end = tl.minimum(key_count, (block + 1) * height)
    return end


# --- tiles of matrices -----------------------------------------------------------------------


@triton.jit
def load_rows(tensor, row, row_count, stride, size, wide: tl.constexpr):
    """Return rows of a matrix as a tile, padded with 0 to ``wide`` columns."""
    column = tl.arange(0, wide)[None, :]
    there = (row[:, None] < row_count) & (column < size)
    return tl.load(tensor + row[:, None].to(tl.int64) * stride + column, mask=there, other=0.0)


@triton.jit
def store_rows(out, tile, row, row_count, size, wide: tl.constexpr):
    """Write a tile to rows of a contiguous matrix."""
    column = tl.arange(0, wide)[None, :]
    there = (row[:, None] < row_count) & (column < size)
    place = row[:, None].to(tl.int64) * size + column
    tl.store(out + place, tile.to(out.dtype.element_ty), mask=there)


# --- scores and dropout ----------------------------------------------------------------------


@triton.jit
def scores_of_tiles(
    query_rows, key_rows, row, column, mask, mask_row_stride, mask_column_stride,
    query_count, key_count, scale, masking: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    """Return the scores of tiles of queries and keys, -inf where a query may not attend.

    The tile is ``(row, column)``; so is what is read of the mask, of which strides are 0 in a
    dimension that it is broadcast in.
    """
    scores = tl.dot(query_rows, tl.trans(key_rows), input_precision=precision) * scale
    row, column = row[:, None], column[None, :]
    there = (column < key_count) & (row < query_count)
    if masking == "causal":
        there = there & (column <= row)
    elif masking != "none":
        place = mask + row.to(tl.int64) * mask_row_stride + column.to(tl.int64) * mask_column_stride
        entries = tl.load(place, mask=there, other=0)
        if masking == "booleans":
            there = there & (entries != 0)
        else:
            scores += entries.to(tl.float32)
    return tl.where(there, scores, -INFINITY)


@triton.jit
def keys_and_scores(
    query_rows, row, column,
    key, key_row_stride, mask, mask_row_stride, mask_column_stride,
    query_count, key_count, size, scale,
    masking: tl.constexpr, precision: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """Load the keys ``column``; return their tile, and the scores of a tile of queries.

    ``query_rows`` are the queries ``row``, already loaded, since they meet many blocks of keys.
    """
    key_rows = load_rows(key, column, key_count, key_row_stride, size, wide)
    scores = scores_of_tiles(
        query_rows, key_rows, row, column, mask, mask_row_stride, mask_column_stride,
        query_count, key_count, scale, masking, precision,
    )  # fmt: skip
    return key_rows, scores


@triton.jit
def dropout_factors(seed, head_index, row, column, key_count, dropped):
    """Return the factors of dropout ``(rows, columns)``: 0, or ``1 / (1 - dropped)``.

    They depend on seed, head, row and column alone, so that the gradients draw them again.
    """
    place = row[:, None] * key_count + column[None, :]
    random = tl.rand(tl.load(seed) + head_index, place)
    return tl.where(random < dropped, 0.0, 1.0 / (1.0 - dropped))


# --- statistics of queries -------------------------------------------------------------------


@triton.jit
def store_statistics(
    statistics, maximum, threshold, total, head_index, row, query_count, total_heads
):  # fmt: skip
    """Write maxima, thresholds and sums (rows, 1) of queries.

    They lie ``apart``, since ``statistics`` holds the maxima of all heads first.
    """
    place = statistics + head_index * query_count + row[:, None]
    there = row[:, None] < query_count
    tl.store(place, maximum, mask=there)
    apart = total_heads * query_count
    tl.store(place + apart, threshold, mask=there)
    tl.store(place + 2 * apart, total, mask=there)


@triton.jit
def load_statistics(statistics, head_index, row, query_count, total_heads):
    """Return maxima, thresholds and sums (rows, 1) of queries."""
    place = statistics + head_index * query_count + row[:, None]
    there = row[:, None] < query_count
    apart = total_heads * query_count
    maximum = tl.load(place, mask=there, other=0.0)
    threshold = tl.load(place + apart, mask=there, other=0.0)
    total = tl.load(place + 2 * apart, mask=there, other=1.0)  # the gradients divide by it
    return maximum, threshold, total
