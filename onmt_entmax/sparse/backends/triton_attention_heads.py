"""Heads in the Triton kernels of attention: which one a program computes, and where its data are.

``head_index`` is the number of a head, int64, counted over all outer indices.
triton_attention_arguments.py explains all other arguments.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_curves import beta_of

# Arguments for whose values Triton compiles no kernel of its own; see triton_row_parts.py.
NOT_SPECIALIZED = (
    "mask_outer_stride",
    "mask_head_stride",
    "mask_row_stride",
    "heads",
    "total_heads",
    "query_count",
    "key_count",
)


@triton.jit
def head_and_block(row_count, block_rows: tl.constexpr):
    """Return the head of a program, and which block of the head's rows the program computes.

    The first axis of the grid counts all blocks of all heads: other axes end at 65,535.
    """
    blocks = tl.cdiv(row_count, block_rows)
    return (tl.program_id(0) // blocks).to(tl.int64), tl.program_id(0) % blocks


@triton.jit
def tensors_of_head(
    query, key, value, mask, head_index, heads,
    query_outer_stride, query_head_stride, key_outer_stride, key_head_stride,
    value_outer_stride, value_head_stride, mask_outer_stride, mask_head_stride,
):  # fmt: skip
    """Return the addresses at which a head's queries, keys, values and mask begin."""
    outer, head = head_index // heads, head_index % heads
    return (
        query + (outer * query_outer_stride + head * query_head_stride),
        key + (outer * key_outer_stride + head * key_head_stride),
        value + (outer * value_outer_stride + head * value_head_stride),
        mask + (outer * mask_outer_stride + head * mask_head_stride),
    )


@triton.jit
def beta_of_head(alpha, head_index, heads, each_head: tl.constexpr, block_queries: tl.constexpr):
    """Return alpha - 1 of a head, repeated for each query of a block, ``(block_queries, 1)``.

    The functions of triton_curves.py take a beta for each row, and here each query is a row.
    """
    heads_of_queries = tl.zeros((block_queries, 1), tl.int64) + head_index
    # As for the rows of `RowAlphas`: all outer indices share the alphas of `heads` heads.
    return beta_of(
        alpha, heads_of_queries, inner=1, count=heads, each_row=each_head, work=tl.float32
    )


@triton.jit
def end_of_keys(block, key_count, masking: tl.constexpr, block_queries: tl.constexpr):
    """Return how many keys, from the first, a block of queries may attend to."""
    end = key_count
    if masking == "causal":
        end = tl.minimum(key_count, (block + 1) * block_queries)
    return end
