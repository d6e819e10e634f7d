"""Starts the kernels of the output loss; imported where there is Triton only."""

import torch
import triton
from torch import Tensor

from onmt_entmax.nn import static_loss_kernels
from onmt_entmax.sparse.backends import triton as launch


def loss_and_gradient(
    scores: Tensor, target: Tensor, weight: Tensor, alpha: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """As `static_loss.loss_and_gradient`; the gradient is in the place of the scores."""
    rows, n = scores.shape
    form = launch._form(alpha, scores.dtype)
    excess, leads, maxima = scores.new_empty(3, rows).unbind(0)
    members = scores.new_empty(rows, dtype=torch.int32)
    given = scores, scores, target, weight, excess, leads, maxima, members
    beta = launch._alpha_of(alpha, scores.shape).given
    short = launch._short(n, form.work)
    if short is not None:
        grid = (triton.cdiv(rows, short["height"]),)
        static_loss_kernels.loss_short[grid](*given, beta, rows, n, **form.constants, **short)
    else:
        long = launch._long(form.work)
        columns = scores.new_empty(rows, long["room"], dtype=torch.int32)
        static_loss_kernels.loss_long[(rows,)](*given, beta, columns, n, **form.constants, **long)
    return excess, leads, maxima, members, scores
