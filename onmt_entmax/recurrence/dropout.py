"""Dropout factors of all steps at once."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def dropout_mask(shape: tuple[int, ...], module: nn.Module | None, like: Tensor) -> Tensor | None:
    """Return dropout factors: 0 with a module's probability p, else ``1 / (1 - p)``.

    Each 64-bit random number of the device's generator gives four factors, which is eleven times
    faster than `bernoulli_`. The probability is rounded to a multiple of 2^-16.

    Args:
        shape: of the factors.
        module: an `nn.Dropout` or `nn.LSTM`. The result is None for None, without dropout, and
            in evaluation mode.
        like: gives type and device.
    """
    probability = module.dropout if isinstance(module, nn.RNNBase) else getattr(module, "p", 0)
    levels = 0
    if module is not None and module.training:
        levels = min(round(probability * 2**16), 2**16 - 1)
    count = torch.Size(shape).numel()
    if not levels:
        return None
    draws = torch.empty((count + 3) // 4, dtype=torch.int64, device=like.device)
    kept = draws.random_(-(2**63), None).view(torch.int16)[:count] >= levels - 2**15
    return kept.to(like.dtype).mul_(2**16 / (2**16 - levels)).view(shape)


def _split_mask(
    shape: tuple[int, ...], module: nn.Module | None, like: Tensor, sizes: list[int]
) -> Sequence[Tensor | None]:
    """Return the dropout factors of each step."""
    mask = dropout_mask(shape, module, like)
    return [None] * len(sizes) if mask is None else mask.split(sizes)
