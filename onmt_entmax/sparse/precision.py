"""Floating-point types: which one entmax computes in, which one it returns, and how it rounds."""

from __future__ import annotations

import torch
from torch import Tensor


def working_type(scores: Tensor) -> torch.dtype:
    """Return the type to compute in: float32 for the half types, else the scores' own.

    Raises:
        ValueError: if the scores are not floating point.
    """
    dtype = scores.dtype
    if dtype in (torch.float32, torch.float64):
        return dtype
    if not dtype.is_floating_point:
        raise ValueError(f"scores must be floating point, got {dtype}; convert them first")
    return torch.float32


def returned_type(scores: Tensor) -> torch.dtype:
    """Return the type of a result for the user: the scores', but under autocast never a half type.

    That is what PyTorch's softmax and cross-entropy do.
    """
    dtype = scores.dtype
    if dtype.itemsize < 4 and torch.is_autocast_enabled(scores.device.type):
        return torch.float32
    return dtype


def round_on_support(probabilities: Tensor, support: Tensor, dtype: torch.dtype) -> Tensor:
    """Return probabilities in a type, with none inside the support rounded to 0.

    A probability that would round to 0 becomes the smallest positive number of the type.

    Args:
        probabilities: probabilities of any shape.
        support: booleans in the same shape.
        dtype: the type of the result.
    """
    info = torch.finfo(dtype)
    result = probabilities.to(dtype)
    smallest = info.smallest_normal * info.eps  # a subnormal number
    # It is added, not assigned, so that autograd sees the probabilities' gradient.
    return result + ((result == 0) & support).to(dtype) * smallest
