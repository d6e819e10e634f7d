"""Checks of alpha and of rows of scores, with messages for the user."""

from __future__ import annotations

import torch
from torch import Tensor

from onmt_entmax.sparse.recording import is_readable_now


def check_alpha_number(alpha: float | Tensor) -> None:
    """Check alpha if it is a number. `alpha_of_rows` checks a tensor, when it is used.

    Raises:
        ValueError: if the number is below 1, infinite or nan.
    """
    if not isinstance(alpha, Tensor) and not 1 <= alpha < float("inf"):
        raise ValueError(f"alpha must be a number from 1 (softmax) up, got {alpha}")


def alpha_of_rows(alpha: float | Tensor, scores: Tensor, dim: int) -> float | Tensor:
    """Return alpha as a number, or as a tensor with one alpha for each row of scores.

    A constant tensor of one element becomes a number, for which solvers are faster.

    Args:
        alpha: a number, or a tensor that broadcasts to the scores.
        scores: any shape.
        dim: the dimension that is normalised.

    Returns:
        A number, or a tensor in the shape of the scores with size 1 in ``dim``.

    Raises:
        ValueError: if an alpha is below 1, infinite or nan; if a tensor does not broadcast; or if
            it is on another device than the scores. If a tensor cannot be read without waiting for
            a GPU, wrong alphas become nan instead.
    """
    if not isinstance(alpha, Tensor):
        check_alpha_number(alpha)
        return float(alpha)
    if not alpha.requires_grad and is_readable_now(alpha) and alpha.numel() == 1:
        return alpha_of_rows(float(alpha), scores, dim)
    if alpha.dim() == 0:  # PyTorch's operations, too, take such a tensor from another device
        alpha = alpha.to(scores.device)
    shape = list(scores.shape)
    shape[dim] = 1
    try:
        rows = alpha.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"alpha of shape {tuple(alpha.shape)} does not broadcast to the rows of the scores, "
            f"{tuple(shape)}; give it size 1 in the normalised dimension"
        ) from None
    if alpha.device != scores.device:
        raise ValueError(f"alpha is on {alpha.device}, the scores are on {scores.device}")
    is_valid = (alpha >= 1) & alpha.isfinite()
    if not is_readable_now(alpha):  # nan instead of an error, and a result of nan
        return torch.where(is_valid, alpha, torch.nan).expand(shape)
    if not bool(is_valid.all()):
        wrong = float(alpha.detach()[~is_valid][0])
        raise ValueError(f"every alpha must be a number from 1 (softmax) up, got {wrong}")
    return rows


def refuse_rows_of_minus_infinity(maxima: Tensor) -> None:
    """Refuse rows whose largest score is -inf, if that can be read without waiting for a GPU.

    Such a row has no probabilities. On a GPU its result is nan, see `entmax`.

    Args:
        maxima: the largest score of each row, in any shape.

    Raises:
        ValueError: if a row is -inf everywhere.
    """
    if is_readable_now(maxima) and bool(torch.isneginf(maxima).any()):
        raise ValueError(
            "a row of scores is -inf everywhere and has no probabilities; leave at least one finite"
        )
