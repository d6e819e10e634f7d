"""Checks of alpha, and of scores that have no probabilities."""

from __future__ import annotations

import torch
from torch import Tensor

from onmt_entmax.sparse.recording import is_readable_now


def check_alpha_number(alpha: float | Tensor) -> None:
    """Check an alpha if it is a number; tensors are checked where they are used.

    Raises:
        ValueError: if a number is below 1, infinite or nan.
    """
    if not isinstance(alpha, Tensor) and not 1 <= alpha < float("inf"):
        raise ValueError(f"alpha must be a number from 1 (softmax) up, got {alpha}")


def alpha_of_rows(alpha: float | Tensor, scores: Tensor, dim: int) -> float | Tensor:
    """Return alpha as a number, or as a tensor in the shape of ``scores`` with 1 in ``dim``.

    A constant tensor of one element becomes a number, for which solvers are faster.

    Raises:
        ValueError: if an alpha is below 1 or nan, or the tensor does not broadcast. Where a tensor
            cannot be read without waiting, an alpha below 1 becomes nan instead.
    """
    if not isinstance(alpha, Tensor):
        check_alpha_number(alpha)
        return float(alpha)
    if not alpha.requires_grad and is_readable_now(alpha) and alpha.numel() == 1:
        return alpha_of_rows(float(alpha), scores, dim)
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
    valid = (alpha >= 1) & alpha.isfinite()
    if not is_readable_now(alpha):
        return torch.where(valid, alpha, torch.nan).expand(shape)
    if not bool(valid.all()):
        wrong = float(alpha.detach()[~valid][0])
        raise ValueError(f"every alpha must be a number from 1 (softmax) up, got {wrong}")
    return rows


def refuse_rows_without_answer(maxima: Tensor) -> None:
    """Refuse rows whose largest score is -inf, if that can be read without waiting for a GPU.

    Args:
        maxima: the largest score of each row, in any shape.

    Raises:
        ValueError: if a row is -inf everywhere.
    """
    if is_readable_now(maxima) and bool(torch.isneginf(maxima).any()):
        raise ValueError(
            "a row of scores is -inf everywhere and has no probabilities; leave at least one finite"
        )
