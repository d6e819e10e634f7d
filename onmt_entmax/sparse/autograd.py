"""Entmax as autograd functions over the last dimension: values here, derivatives in gradient.py.

Each function saves one of its own outputs, so that a gradient of a gradient finds its way back.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from onmt_entmax.sparse import jacobian
from onmt_entmax.sparse.arguments import has_memory
from onmt_entmax.sparse.backends import by_kernel
from onmt_entmax.sparse.conjugate import (
    WHOLE,
    Entries,
    conjugate,
    entries_gradient,
    row_groups,
    write_probabilities,
)
from onmt_entmax.sparse.solvers import (
    has_power_form,
    power,
    refuse_rows_without_answer,
    solve_log,
    solve_power,
    sorted_margin,
    wide,
)

# Scores that are sorted faster than Newton's method is started.
_FEW = 1 << 11


def probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Entmax of scores (..., n), n >= 1, in float32 or float64, without autograd; (..., n)."""
    made = by_kernel("probabilities", scores, alpha)
    if made is not None:
        return made
    scores = wide(scores)
    if not isinstance(alpha, Tensor):
        if has_power_form(alpha):
            solved = solve_power(scores, alpha)
            return power(solved.margin, alpha - 1, solved.below)
        if alpha == 1:
            result = torch.softmax(scores, -1)
            if bool(result[..., 0].isnan().any()):
                refuse_rows_without_answer(scores.amax(-1))
            return result
    return solve_log(scores, alpha).log_probabilities.exp().to(scores.dtype)


def log_probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Logarithm of entmax, -inf exactly outside the support; as ``probabilities``."""
    made = by_kernel("log_probabilities", scores, alpha)
    if made is not None:
        return made
    scores = wide(scores)
    if not isinstance(alpha, Tensor):
        if has_power_form(alpha):
            return solve_power(scores, alpha).margin.mul_(alpha - 1).log_().div_(alpha - 1)
        if alpha == 1:
            result = torch.log_softmax(scores, -1)
            if bool(result[..., 0].isnan().any()):
                refuse_rows_without_answer(scores.amax(-1))
            return result
    return solve_log(scores, alpha).log_probabilities.to(scores.dtype)


def the_given(number: float | None, alpha: Tensor | None) -> float | Tensor:
    """Whichever form of alpha is there."""
    given = alpha if number is None else number
    assert given is not None
    return given


class Entmax(Function):
    """Probabilities over the last dimension.

    ``apply(scores, number, alpha)``: scores (..., n); alpha as a number, or None and a tensor
    (..., 1) in its place. Returns probabilities (..., n), in float32 or float64.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, number: float | None, alpha: Tensor | None) -> Tensor:
        slope = None
        result = by_kernel("probabilities", scores, the_given(number, alpha))
        if result is not None:
            pass
        elif number == 1.5:
            scores = wide(scores)
            # The square root of the probability is its slope: kept, it need not be taken again.
            few = scores.numel() <= _FEW
            margin = sorted_margin(scores) if few else solve_power(scores, number).margin
            slope = margin.mul_(0.5)
            result = slope * slope
        else:
            result = probabilities(scores, the_given(number, alpha))
        ctx.number, ctx.dtype = number, scores.dtype
        ctx.save_for_backward(result, alpha, slope)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, Tensor | None]:
        result, alpha_tensor, slope = ctx.saved_tensors
        alpha = alpha_tensor if ctx.number is None else ctx.number
        (output,) = gradients
        scores_grad = alpha_grad = None
        if ctx.needs_input_grad[0]:
            with_graph = torch.is_grad_enabled()
            if slope is None and not with_graph:
                scores_grad = by_kernel("scores_gradient", result, alpha, output, ctx.dtype)
            if scores_grad is None:
                known = None if with_graph else slope
                scores_grad = jacobian.scores_gradient(result, alpha, output, known)
        if ctx.needs_input_grad[2]:
            derivative = jacobian.alpha_derivative(result, alpha_tensor.to(result.dtype))
            alpha_grad = (output * derivative).sum(-1, keepdim=True).to(alpha_tensor.dtype)
        return scores_grad, None, alpha_grad


class LogEntmax(Function):
    """Log-probabilities over the last dimension; ``apply`` as for :class:`Entmax`.

    What arrives for an entry outside the support is not used: its -inf does not move.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, number: float | None, alpha: Tensor | None) -> Tensor:
        result = log_probabilities(scores, the_given(number, alpha))
        ctx.number = number
        ctx.save_for_backward(result, alpha)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, Tensor | None]:
        result, alpha_tensor = ctx.saved_tensors
        alpha = ctx.number if alpha_tensor is None else alpha_tensor.to(result.dtype)
        (output,) = gradients
        scores_grad = alpha_grad = None
        if ctx.needs_input_grad[0]:
            scores_grad = jacobian.log_scores_gradient(result, alpha, output)
        if ctx.needs_input_grad[2]:
            derivative = jacobian.log_alpha_derivative(result, alpha)
            inside = torch.where(torch.isneginf(result), 0.0, output)
            alpha_grad = (inside * derivative).sum(-1, keepdim=True).to(alpha_tensor.dtype)
        return scores_grad, None, alpha_grad


class LongEntmax(Function):
    """Probabilities over a long last dimension, of which the support alone is kept for backward.

    ``apply(scores, alpha)`` with a number. Returns probabilities (..., n), and those of the
    support (k,): as an output they carry gradients of gradients. When the support is large in some
    rows, the probabilities themselves are kept.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
        n = scores.shape[-1]
        rows = scores.reshape(-1, n).contiguous()
        solved = conjugate(rows, alpha)
        position, _, probability = solved.entries
        result = torch.zeros_like(rows) if len(position) else torch.empty_like(rows)
        result.view(-1).scatter_(0, position, probability)
        for begin, end in solved.dense:
            for first, last in row_groups(begin, end, n, WHOLE):
                part = slice(first, last)
                maxima, threshold = solved.maxima[part], solved.threshold[part]
                write_probabilities(rows[part], alpha, maxima, threshold, result[part])
        result = result.view(scores.shape)
        ctx.alpha, ctx.shape = alpha, scores.shape
        ctx.save_for_backward(result if solved.dense else None, *solved.entries)
        ctx.set_materialize_grads(False)
        return result, probability

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, None]:
        result, position, row, probability = ctx.saved_tensors
        whole, per_entry = gradients
        if result is not None:
            # In this case nothing uses the entries.
            return whole if whole is None else _long_gradient(result, ctx.alpha, whole), None
        if whole is not None:
            at_support = whole.reshape(-1)[position]
            per_entry = at_support if per_entry is None else per_entry + at_support
        if per_entry is None:
            return None, None
        rows = torch.Size([ctx.shape[:-1].numel(), ctx.shape[-1]])
        entries = Entries(position, row, probability)
        return entries_gradient(entries, ctx.alpha, per_entry, rows).view(ctx.shape), None


def _long_gradient(result: Tensor, alpha: float, output: Tensor) -> Tensor:
    """Gradient in the scores, group by group of rows where no graph is needed."""
    if torch.is_grad_enabled() or not has_memory(output):
        return jacobian.scores_gradient(result, alpha, output)
    made: Tensor | None = by_kernel("scores_gradient", result, alpha, output, result.dtype)
    if made is not None:
        return made
    n = result.shape[-1]
    rows, outputs = result.view(-1, n), output.reshape(-1, n)
    whole = torch.empty_like(rows)
    for first, last in row_groups(0, len(rows), n, WHOLE):
        part = slice(first, last)
        whole[part] = jacobian.scores_gradient(rows[part], alpha, outputs[part])
    return whole.view(result.shape)


# Entmax and its conjugate as operators that ``torch.compile`` takes whole.
#
# How long Newton's method runs depends on the scores, which a compiled graph cannot follow. So the
# solving is one opaque operator, and the gradient is ordinary code that the compiler may fuse.


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
    return jacobian.scores_gradient(result, ctx.alpha, output), None


def _log_entmax_backward(ctx: Any, output: Tensor) -> tuple[Tensor, None]:
    (result,) = ctx.saved_tensors
    return jacobian.log_scores_gradient(result, ctx.alpha, output), None


def _conjugate_backward(
    ctx: Any, per_row: Tensor, per_maximum: Tensor, per_entry: Tensor
) -> tuple[Tensor, None]:
    (result,) = ctx.saved_tensors
    second = jacobian.scores_gradient(result, ctx.alpha, per_entry)
    return per_row.unsqueeze(1) * result + second, None


entmax_operator.register_autograd(_entmax_backward, setup_context=_keep_output)
log_entmax_operator.register_autograd(_log_entmax_backward, setup_context=_keep_output)
conjugate_operator.register_autograd(_conjugate_backward, setup_context=_keep_probabilities)
