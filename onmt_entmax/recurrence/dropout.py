"""Dropout factors of all steps at once."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

_LEVELS = 2**16  # number of values of an int16


def dropout_factors(
    shape: tuple[int, ...], module: nn.Module | None, like: Tensor
) -> Tensor | None:
    """Return dropout factors: 0 with a module's probability p, else ``1 / (1 - p)``.

    Each 64-bit random number of the device's generator gives four factors, one for each quarter of
    its bits, which is eleven times faster than `bernoulli_`. A quarter is one of 2^16 levels, and
    the lowest levels are dropped. So p is rounded to a multiple of 2^-16.

    Args:
        shape: shape of the factors.
        module: an `nn.Dropout` or `nn.LSTM`, which has the probability, and is in training or
            evaluation mode; None: no dropout.
        like: a tensor of the type and on the device of the factors.

    Returns:
        The factors; None without dropout, which includes evaluation mode.
    """
    if module is None or not module.training:
        return None
    probability = module.dropout if isinstance(module, nn.RNNBase) else getattr(module, "p", 0)
    # At least one level is kept, even if p is 1: the factor of what is kept must be finite.
    dropped_levels = min(round(probability * _LEVELS), _LEVELS - 1)
    if not dropped_levels:
        return None
    count = torch.Size(shape).numel()
    draws = torch.empty((count + 3) // 4, dtype=torch.int64, device=like.device)
    levels = draws.random_(-(2**63), None).view(torch.int16)[:count]  # from -_LEVELS / 2
    is_kept = levels >= dropped_levels - _LEVELS // 2
    return is_kept.to(like.dtype).mul_(_LEVELS / (_LEVELS - dropped_levels)).view(shape)


def dropout_of_steps(
    sizes: list[int], width: int, module: nn.Module | None, like: Tensor
) -> Sequence[Tensor | None]:
    """Return the dropout factors of each step, ``(rows, width)``, or without dropout Nones.

    Args:
        sizes: number of rows of each step.
        width: size of a row.
        module: as for `dropout_factors`.
        like: as for `dropout_factors`.
    """
    factors = dropout_factors((sum(sizes), width), module, like)
    return [None] * len(sizes) if factors is None else factors.split(sizes)
