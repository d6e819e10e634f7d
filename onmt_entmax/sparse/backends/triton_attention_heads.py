"""Heads in the Triton kernels of attention: which one a program computes, and where its data are.

``head_index`` is the number of a head, counted over all outer indices. ``query_index`` are the
numbers of a block's queries in their head, one-dimensional. triton_attention_arguments.py explains
all others.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl

from onmt_entmax.sparse.backends.triton_curves import beta_of

# Triton compiles a kernel anew for a whole number that is 1 or divisible by 16, which helps with
# addresses. For these arguments it would gain nothing.
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
def beta_of_head(alpha, head_index, heads, each_head: tl.constexpr, block_queries: tl.constexpr):
    """Return alpha - 1 of a head, once for each query of a block, ``(block_queries, 1)``."""
    indices = tl.zeros((block_queries, 1), tl.int64) + head_index
    return beta_of(alpha, indices, 1, heads, each_head, tl.float32)


@triton.jit
def end_of_keys(block, key_count, masking: tl.constexpr, block_queries: tl.constexpr):
    """Return how many keys, from the first, a block of queries may attend to."""
    end = key_count
    if masking == "causal":
        end = tl.minimum(key_count, (block + 1) * block_queries)
    return end


@triton.jit
def store_statistics(
    statistics, maximum, threshold, total, head_index, query_index, query_count, total_heads
):  # fmt: skip
    """Write maxima, thresholds and sums of queries, each (block_queries, 1)."""
    offset = statistics + head_index * query_count + query_index[:, None]
    exists = query_index[:, None] < query_count
    tl.store(offset, maximum, mask=exists)
    matrix = total_heads * query_count
    tl.store(offset + matrix, threshold, mask=exists)
    tl.store(offset + 2 * matrix, total, mask=exists)


@triton.jit
def load_statistics(statistics, head_index, query_index, query_count, total_heads):
    """Return maxima, thresholds and sums of queries, each (block_queries, 1)."""
    offset = statistics + head_index * query_count + query_index[:, None]
    exists = query_index[:, None] < query_count
    matrix = total_heads * query_count
    maximum = tl.load(offset, mask=exists, other=0.0)
    threshold = tl.load(offset + matrix, mask=exists, other=0.0)
    total = tl.load(offset + 2 * matrix, mask=exists, other=1.0)  # the gradients divide by it
    return maximum, threshold, total
