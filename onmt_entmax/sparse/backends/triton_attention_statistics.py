"""What the forward kernel of attention keeps of each query for the kernels of the gradients.

``statistics`` is contiguous, ``(3, total heads, queries)``: the largest score of each query, the
threshold, and the sum of the weights. ``head_index`` is the number of a head, see
triton_attention_heads.py. ``query_index`` has the numbers of a block's queries, see
triton_attention_tiles.py. triton_attention_arguments.py explains all other arguments.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl


@triton.jit
def _addresses(statistics, head_index, query_index, query_count, total_heads):
    """Return the addresses of the maxima, thresholds and sums of queries, (block_queries, 1)."""
    # `head_index` is int64, so the products with it do not overflow.
    in_head_0 = statistics + query_index[:, None]  # the maxima of head 0
    return (
        in_head_0 + head_index * query_count,
        in_head_0 + (total_heads + head_index) * query_count,
        in_head_0 + (2 * total_heads + head_index) * query_count,
    )


@triton.jit
def store_statistics(
    statistics, maximum, threshold, total, head_index, query_index, query_count, total_heads
):  # fmt: skip
    """Write maxima, thresholds and sums of queries, each (block_queries, 1)."""
    maxima, thresholds, totals = _addresses(
        statistics, head_index, query_index, query_count, total_heads
    )
    exists = query_index[:, None] < query_count
    tl.store(maxima, maximum, mask=exists)
    tl.store(thresholds, threshold, mask=exists)
    tl.store(totals, total, mask=exists)


@triton.jit
def load_statistics(statistics, head_index, query_index, query_count, total_heads):
    """Return maxima, thresholds and sums of queries, each (block_queries, 1)."""
    maxima, thresholds, totals = _addresses(
        statistics, head_index, query_index, query_count, total_heads
    )
    exists = query_index[:, None] < query_count
    maximum = tl.load(maxima, mask=exists, other=0.0)
    threshold = tl.load(thresholds, mask=exists, other=0.0)
    total = tl.load(totals, mask=exists, other=1.0)  # the gradients divide by it
    return maximum, threshold, total
