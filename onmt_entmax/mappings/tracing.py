"""What a tensor is besides its numbers: without memory, or only recorded."""

from __future__ import annotations

import torch
from torch import Tensor


def has_memory(tensor: Tensor) -> bool:
    """Whether the storage holds the values: false for the wrappers of vmap, lazily negated tensors
    and zeros without storage."""
    return (
        type(tensor) in (Tensor, torch.nn.Parameter)
        and torch._C._has_storage(tensor)
        and not tensor.is_neg()
        and not tensor._is_zerotensor()
    )


def is_traced() -> bool:
    """Whether PyTorch records what is done, or does it without data: compiling, under `make_fx`,
    with fake tensors. Then only operators that it knows may look at tensors."""
    return torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0
