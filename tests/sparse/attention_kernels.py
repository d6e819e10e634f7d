"""Tensors and blocks for the checks of the GPU kernels of attention.

Attention has two sentences and two heads; keys and queries have SIZE numbers, values VALUE_SIZE,
which are unlike so that they cannot be confused.
"""

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse.backends import triton_attention
from tests.sparse.implementations import KERNEL_DEVICE as DEVICE

SIZE, VALUE_SIZE = 8, 5


def use_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take blocks of 16 queries and keys, and never one for all keys."""
    monkeypatch.setattr(triton_attention, "block_side", lambda *_: 16)
    monkeypatch.setattr(triton_attention, "fits_one_block", lambda *_: False)


def random_leaves(queries: int, keys: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Return a random query, key and value ``(2, 2, number, size)`` that get gradients."""
    shapes = ((queries, SIZE), (keys, SIZE), (keys, VALUE_SIZE))
    return [torch.randn(2, 2, *shape).to(DEVICE, dtype).requires_grad_() for shape in shapes]


def is_of_the_kernels(output: Tensor) -> bool:
    """Return whether the kernels computed an output that has a gradient."""
    return "Fused" in str(output.grad_fn)
