"""Set-up of the checks of the GPU kernels of attention: inputs, blocks, and who computed.

Attention has two sentences and two heads. Queries and keys have SIZE numbers, values VALUE_SIZE:
unequal, so that a kernel that confuses them fails.
"""

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse.attention_backends import _FusedAttention
from onmt_entmax.sparse.backends import triton_attention
from tests.sparse.implementations import KERNEL_DEVICE as DEVICE

SENTENCES, HEADS = 2, 2
SIZE, VALUE_SIZE = 8, 5


def use_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take blocks of 16 queries and keys, and never one for all keys."""
    monkeypatch.setattr(triton_attention, "block_side", lambda *_: 16)
    monkeypatch.setattr(triton_attention, "fits_one_block", lambda *_: False)


def random_leaves(queries: int, keys: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Return a random query, key and value that get gradients.

    Returns:
        ``(2, 2, queries, SIZE)``, ``(2, 2, keys, SIZE)`` and ``(2, 2, keys, VALUE_SIZE)``.
    """
    shapes = ((queries, SIZE), (keys, SIZE), (keys, VALUE_SIZE))
    return [
        torch.randn(SENTENCES, HEADS, *shape).to(DEVICE, dtype).requires_grad_() for shape in shapes
    ]


def is_of_the_kernels(output: Tensor) -> bool:
    """Return whether the kernels, not PyTorch's operations, computed an output with a gradient."""
    # PyTorch names the node of a gradient after its function.
    node = output.grad_fn
    return node is not None and node.name() == f"{_FusedAttention.__name__}Backward"
