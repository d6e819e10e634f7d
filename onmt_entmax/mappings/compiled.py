"""Entmax and its conjugate as operators that ``torch.compile`` takes whole.

How long Newton's method runs depends on the scores, which a compiled graph cannot follow. So the
solving is one opaque operator, and the gradient is ordinary code that the compiler may fuse.
"""

from typing import Any

import torch
from torch import Tensor

from onmt_entmax.mappings import gradient
from onmt_entmax.mappings.autograd import log_probabilities, probabilities
from onmt_entmax.mappings.conjugate import conjugate, write_probabilities


@torch.library.custom_op("onmt_entmax::entmax", mutates_args=())
def entmax_operator(scores: Tensor, alpha: float) -> Tensor:
    """Entmax of float32 or float64 scores over the last dimension, for one alpha."""
    return probabilities(scores, alpha).contiguous()


@torch.library.custom_op("onmt_entmax::log_entmax", mutates_args=())
def log_entmax_operator(scores: Tensor, alpha: float) -> Tensor:
    """Logarithm of :func:`entmax_operator`."""
    return log_probabilities(scores, alpha).contiguous()


@torch.library.custom_op("onmt_entmax::conjugate", mutates_args=())
def conjugate_operator(scores: Tensor, alpha: float) -> tuple[Tensor, Tensor, Tensor]:
    """Of contiguous scores (rows, n): excess and largest score (rows,), probabilities (rows, n).

    The sum of the first two is the conjugate. Its whole gradient, the probabilities, goes through
    the excess; the largest scores count as constants.
    """
    solved = conjugate(scores, alpha)
    has_entries = solved.entries.row.numel() > 0
    whole = torch.zeros_like(scores) if has_entries else torch.empty_like(scores)
    whole.view(-1).scatter_(0, solved.entries.position, solved.entries.probability)
    for begin, end in solved.dense:
        part = slice(begin, end)
        maxima, threshold = solved.maxima[part], solved.threshold[part]
        write_probabilities(scores[part], alpha, maxima, threshold, whole[part])
    return solved.excess, solved.maxima.squeeze(1), whole


@entmax_operator.register_fake
@log_entmax_operator.register_fake
def _like_scores(scores: Tensor, alpha: float) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


@conjugate_operator.register_fake
def _conjugate_like(scores: Tensor, alpha: float) -> tuple[Tensor, Tensor, Tensor]:
    rows = scores.shape[0]
    return scores.new_empty(rows), scores.new_empty(rows), torch.empty_like(scores)


def _keep_output(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
    ctx.save_for_backward(output)
    ctx.alpha = inputs[1]


def _keep_probabilities(
    ctx: Any, inputs: tuple[Tensor, float], output: tuple[Tensor, Tensor, Tensor]
) -> None:
    _keep_output(ctx, inputs, output[2])


def _entmax_backward(ctx: Any, output: Tensor) -> tuple[Tensor, None]:
    (result,) = ctx.saved_tensors
    return gradient.scores_gradient(result, ctx.alpha, output), None


def _log_entmax_backward(ctx: Any, output: Tensor) -> tuple[Tensor, None]:
    (result,) = ctx.saved_tensors
    return gradient.log_scores_gradient(result, ctx.alpha, output), None


def _conjugate_backward(
    ctx: Any, per_row: Tensor, per_maximum: Tensor, per_entry: Tensor
) -> tuple[Tensor, None]:
    (result,) = ctx.saved_tensors
    second = gradient.scores_gradient(result, ctx.alpha, per_entry)
    return per_row.unsqueeze(1) * result + second, None


entmax_operator.register_autograd(_entmax_backward, setup_context=_keep_output)
log_entmax_operator.register_autograd(_log_entmax_backward, setup_context=_keep_output)
conjugate_operator.register_autograd(_conjugate_backward, setup_context=_keep_probabilities)
