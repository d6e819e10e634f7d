"""The two forms in which functions of rows take alpha: a number, and a tensor."""

import torch
from torch import Tensor


def as_number_and_tensor(alpha: float, rows: Tensor) -> tuple[float, Tensor]:
    """Return alpha as a number, and as a tensor with one for each of the rows ``(rows, n)``.

    The tensor ``(rows, 1)`` is a leaf that gets a gradient.
    """
    alphas = torch.full((len(rows), 1), alpha, dtype=torch.float64, device=rows.device)
    return alpha, alphas.requires_grad_()
