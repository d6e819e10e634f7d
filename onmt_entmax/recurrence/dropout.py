"""Dropout factors of all steps at once."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def dropout_factors(
    shape: tuple[int, ...], module: nn.Module | None, like: Tensor
) -> Tensor | None:
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


def dropout_of_steps(
    sizes: list[int], width: int, module: nn.Module | None, like: Tensor
) -> Sequence[Tensor | None]:
    """Return the dropout factors of each step, ``(rows, width)``; `sizes` are the rows."""
    factors = dropout_factors((sum(sizes), width), module, like)
    return [None] * len(sizes) if factors is None else factors.split(sizes)
