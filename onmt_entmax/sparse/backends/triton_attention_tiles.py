"""Tiles of attention for its Triton kernels: vectors, scores, and the factors of dropout.

``query_index`` and ``key_index``, one-dimensional, are the numbers of a block's queries and keys in
their head; ``query_rows`` and ``key_rows`` are tiles of their vectors. An ``offset`` counts
elements of a tensor; the mask ``exists`` says which elements of a tile the tensor has.
triton_attention_arguments.py explains all other names.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_curves import INFINITY


@triton.jit
def load_rows(tensor, row, row_count, stride, size, padded_size: tl.constexpr):
    """Return rows of a matrix as a tile (rows, padded_size), with zeros where the matrix ends.

    ``row`` are the numbers of the rows; the matrix has ``row_count`` rows of ``size`` columns,
    and ``stride`` elements from row to row.
    """
    column = tl.arange(0, padded_size)[None, :]
    exists = (row[:, None] < row_count) & (column < size)
    return tl.load(tensor + row[:, None].to(tl.int64) * stride + column, mask=exists, other=0.0)


@triton.jit
def store_rows(out, tile, row, row_count, size, padded_size: tl.constexpr):
    """Write a tile to rows of a contiguous matrix; see `load_rows` for the arguments."""
    column = tl.arange(0, padded_size)[None, :]
    exists = (row[:, None] < row_count) & (column < size)
    offset = row[:, None].to(tl.int64) * size + column
    tl.store(out + offset, tile.to(out.dtype.element_ty), mask=exists)


@triton.jit
def scores_of_tiles(
    query_rows, key_rows, query_index, key_index, mask, mask_row_stride, mask_column_stride,
    query_count, key_count, scale, masking: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    """Return the scores (queries, keys) of two tiles, -inf where a query may not attend.

    Only their part of the mask is read. A dimension over which the mask is broadcast has stride 0.
    """
    scores = tl.dot(query_rows, tl.trans(key_rows), input_precision=precision) * scale
    query_index, key_index = query_index[:, None], key_index[None, :]
    exists = (key_index < key_count) & (query_index < query_count)
    if masking == "causal":
        exists = exists & (key_index <= query_index)
    elif masking != "none":
        address = (
            mask
            + query_index.to(tl.int64) * mask_row_stride
            + key_index.to(tl.int64) * mask_column_stride
        )
        entries = tl.load(address, mask=exists, other=0)
        if masking == "booleans":
            exists = exists & (entries != 0)
        else:
            scores += entries.to(tl.float32)
    return tl.where(exists, scores, -INFINITY)


@triton.jit
def keys_and_scores(
    query_rows, query_index, key_index,
    key, key_row_stride, mask, mask_row_stride, mask_column_stride,
    query_count, key_count, size, scale,
    masking: tl.constexpr, precision: tl.constexpr, padded_size: tl.constexpr,
):  # fmt: skip
    """Load a tile of keys; return it, and the scores (queries, keys) of a tile of queries.

    The queries are already loaded, since they meet many blocks of keys.
    """
    key_rows = load_rows(key, key_index, key_count, key_row_stride, size, padded_size)
    scores = scores_of_tiles(
        query_rows, key_rows, query_index, key_index, mask, mask_row_stride, mask_column_stride,
        query_count, key_count, scale, masking, precision,
    )  # fmt: skip
    return key_rows, scores


@triton.jit
def dropout_factors(seed, head_index, query_index, key_index, key_count, dropout_p):
    """Return the factors of dropout (queries, keys): 0, or ``1 / (1 - dropout_p)``.

    They depend on seed, head, query and key alone, so the kernels of the gradients compute the same
    factors again.
    """
    offset = query_index[:, None] * key_count + key_index[None, :]
    random = tl.rand(tl.load(seed) + head_index, offset)
    return tl.where(random < dropout_p, 0.0, 1.0 / (1.0 - dropout_p))
