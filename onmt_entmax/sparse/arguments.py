"""Scores and alphas as users give them, checked."""

from __future__ import annotations

import torch
from torch import Tensor


def working_type(scores: Tensor) -> torch.dtype:
    """The type to compute in: float32 for the half types, else that of the scores.

    Raises:
        ValueError: if the scores are not floating point.
    """
    dtype = scores.dtype
    if dtype in (torch.float32, torch.float64):
        return dtype
    if not dtype.is_floating_point:
        raise ValueError(f"scores must be floating point, got {dtype}; convert them first")
    return torch.float32


def checked_alpha(alpha: float | Tensor, scores: Tensor, dim: int) -> float | Tensor:
    """Alpha as a number, or as a tensor expanded to the shape of ``scores``, with 1 in ``dim``.

    Raises:
        ValueError: if an alpha is below 1 or nan, or the tensor does not broadcast. Where looking
            at a tensor would mean waiting, an alpha below 1 becomes nan.
    """
    if not isinstance(alpha, Tensor):
        return float(valid_alpha(alpha))
    if alpha.numel() == 1 and not alpha.requires_grad and not is_traced():
        return checked_alpha(float(alpha), scores, dim)
    shape = list(scores.shape)
    shape[dim] = 1
    if alpha.dim() == 0:
        alpha = alpha.to(scores.device)
    try:
        rows = alpha.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"alpha of shape {tuple(alpha.shape)} does not broadcast to the rows of the scores, "
            f"{tuple(shape)}; give it size 1 in the normalised dimension"
        ) from None
    if alpha.device != scores.device:
        raise ValueError(f"alpha is on {alpha.device}, the scores are on {scores.device}")
    if alpha.device.type == "cpu" and not is_traced():
        fits = (alpha >= 1) & alpha.isfinite()
        if not bool(fits.all()):
            wrong = float(alpha[~fits][0])
            raise ValueError(f"every alpha must be a number from 1 (softmax) up, got {wrong}")
        return rows
    return torch.where(rows >= 1, rows, torch.nan)


def valid_alpha(alpha: float | Tensor) -> float | Tensor:
    """An alpha that a module may keep: a tensor may still change, a number is right now or never.

    Raises:
        ValueError: it is a number below 1, or none.
    """
    if not isinstance(alpha, Tensor) and not 1 <= alpha < float("inf"):
        raise ValueError(f"alpha must be a number from 1 (softmax) up, got {alpha}")
    return alpha


def alpha_text(alpha: float | Tensor) -> str:
    """An alpha for printing: a number, or the shape of a tensor."""
    return f"tensor{tuple(alpha.shape)}" if isinstance(alpha, Tensor) else f"{alpha:g}"


# What a tensor is besides its numbers: without memory, or only recorded.


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
