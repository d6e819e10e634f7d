"""Entmax and its loss as autograd functions, and as the operators that `torch.compile` sees.

All work on the last dimension. Each function saves one of its own outputs, through which gradients
of gradients find their way back; the derivatives are in jacobian.py.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from onmt_entmax.sparse import jacobian
from onmt_entmax.sparse.arguments import has_memory, is_traced, working_type
from onmt_entmax.sparse.backends import backend_for, gradients_for, kernels_for
from onmt_entmax.sparse.conjugate import Conjugate, Entries


def _save(ctx: Any, alpha: float | Tensor, *tensors: Tensor | None) -> None:
    """Save alpha, a number or a tensor, and other tensors for :func:`_saved`."""
    is_tensor = isinstance(alpha, Tensor)
    ctx.number = None if is_tensor else alpha
    ctx.save_for_backward(alpha if is_tensor else None, *tensors)


def _saved(ctx: Any) -> tuple[Any, ...]:
    """Return alpha and the other tensors that :func:`_save` saved."""
    alpha, *tensors = ctx.saved_tensors
    return (ctx.number if alpha is None else alpha, *tensors)


def _scores_gradient(
    probabilities: Tensor, alpha: float | Tensor, gradient: Tensor, dtype: torch.dtype
) -> Tensor:
    """Return the gradient in the scores, with a graph if autograd is recording."""
    if torch.is_grad_enabled():
        return jacobian.scores_gradient(probabilities, alpha, gradient)
    backend = backend_for(probabilities, alpha, gradient)
    return backend.scores_gradient(probabilities, alpha, gradient, dtype)


class EntmaxFunction(Function):
    """Probabilities over the last dimension.

    ``apply(scores, alpha)`` with scores ``(..., n)`` and alpha a number or ``(..., 1)`` returns
    probabilities ``(..., n)`` in float32 or float64.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, alpha: float | Tensor) -> Tensor:
        result = backend_for(scores, alpha).probabilities(scores, alpha)
        ctx.dtype = scores.dtype
        _save(ctx, alpha, result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        alpha, result = _saved(ctx)
        (gradient,) = gradients
        scores_grad = alpha_grad = None
        if ctx.needs_input_grad[1] and not torch.is_grad_enabled():
            backend = gradients_for(result, alpha, gradient)
            both = backend and backend.gradients(result, alpha, gradient, ctx.dtype)
            if both:
                return both[0], both[1].to(alpha.dtype)
        if ctx.needs_input_grad[0]:
            scores_grad = _scores_gradient(result, alpha, gradient, ctx.dtype)
        if ctx.needs_input_grad[1]:
            derivative = jacobian.alpha_derivative(result, alpha.to(result.dtype))
            alpha_grad = (gradient * derivative).sum(-1, keepdim=True).to(alpha.dtype)
        return scores_grad, alpha_grad


class LogEntmaxFunction(Function):
    """Log-probabilities over the last dimension; ``apply`` as for :class:`EntmaxFunction`.

    Gradients that arrive outside the support are ignored: -inf does not move.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, alpha: float | Tensor) -> Tensor:
        result = backend_for(scores, alpha).log_probabilities(scores, alpha)
        _save(ctx, alpha, result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        given, result = _saved(ctx)
        alpha = given.to(result.dtype) if isinstance(given, Tensor) else given
        (gradient,) = gradients
        scores_grad = alpha_grad = None
        if ctx.needs_input_grad[0]:
            # Autograd records gradients of gradients through PyTorch's operations only.
            recording = torch.is_grad_enabled()
            rules = jacobian if recording else backend_for(result, alpha, gradient)
            scores_grad = rules.log_scores_gradient(result, alpha, gradient)
        if ctx.needs_input_grad[1]:
            derivative = jacobian.log_alpha_derivative(result, alpha)
            inside = torch.where(torch.isneginf(result), 0.0, gradient)
            alpha_grad = (inside * derivative).sum(-1, keepdim=True).to(given.dtype)
        return scores_grad, alpha_grad


class LongEntmaxFunction(Function):
    """Probabilities over a long last dimension, which keeps the support alone for backward.

    ``apply(scores, alpha)`` with a number returns probabilities ``(..., n)`` and those of the
    support ``(entries,)``: as an output, they carry gradients of gradients. If the support is large
    in some rows, all probabilities are kept instead.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
        rows = scores.reshape(-1, scores.shape[-1]).contiguous()
        solved = backend_for(rows, alpha).conjugate(rows, alpha)
        result = all_probabilities(rows, alpha, solved).view(scores.shape)
        ctx.alpha, ctx.shape = alpha, scores.shape
        ctx.save_for_backward(result if solved.dense else None, *solved.entries)
        ctx.set_materialize_grads(False)
        return result, solved.entries.probability

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, None]:
        result, *parts = ctx.saved_tensors
        whole, per_entry = gradients
        if result is not None:
            # Nothing used the entries, so they have no gradient.
            if whole is None:
                return None, None
            return _scores_gradient(result, ctx.alpha, whole, result.dtype), None
        entries = Entries(*parts)
        if whole is not None:
            at_support = whole.reshape(-1)[entries.position]
            per_entry = at_support if per_entry is None else per_entry + at_support
        if per_entry is None:
            return None, None
        rows = torch.Size([ctx.shape[:-1].numel(), ctx.shape[-1]])
        return jacobian.entries_gradient(entries, ctx.alpha, per_entry, rows).view(ctx.shape), None


def all_probabilities(scores: Tensor, alpha: float, solved: Conjugate) -> Tensor:
    """Return the probabilities ``(rows, n)`` of solved rows, sparse and dense ones."""
    sparse = solved.entries.row.numel() > 0
    result = torch.zeros_like(scores) if sparse else torch.empty_like(scores)
    result.view(-1).scatter_(0, solved.entries.position, solved.entries.probability)
    for begin, end in solved.dense:
        rows = slice(begin, end)
        given = (scores[rows], alpha, solved.maxima[rows], solved.threshold[rows], result[rows])
        backend_for(*given).write_probabilities(*given)
    return result


class ClassTargets(NamedTuple):
    """Targets of scores ``(rows, classes)``, as coefficients of one loss for each row.

    The loss of a row is ``mass * conjugate(z) - own * z[label] - spread * sum(weight * z)``. Since
    ``mass`` is the sum of the other coefficients, only differences to the largest score matter.

    Attributes:
        label: ``(rows,)`` int64, the class; any valid class in an ignored row.
        mass: ``(rows,)`` the coefficient of the conjugate, 0 in an ignored row.
        own: ``(rows,)`` the coefficient of the row's class.
        spread: ``(rows,)`` the coefficient of each class by label smoothing; None without it.
        weight: ``(classes,)`` class weights under ``spread``; None for ones.
    """

    label: Tensor
    mass: Tensor
    own: Tensor
    spread: Tensor | None
    weight: Tensor | None


def class_targets(
    index: Tensor,
    rows: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    label_smoothing: float,
) -> tuple[ClassTargets, Tensor]:
    """Return the targets of rows of scores, and the divisor of their mean, a scalar.

    Args:
        index: the classes, ``(rows,)`` integers.
        rows: the scores, ``(rows, classes)``.
        weight: ``(classes,)``, or None for ones.
        ignore_index: the class index of ignored rows.
        label_smoothing: in [0, 1].

    Raises:
        ValueError: if a target that is not ignored is not a class.
    """
    classes = rows.shape[1]
    index = index.long()
    check_classes(index, classes, ignore_index)
    kept = index != ignore_index
    index = torch.where(kept, index, 0)
    dtype = working_type(rows)
    counted = kept.to(dtype) if weight is None else torch.where(kept, weight[index], 0.0)
    own, mass, spread = counted, counted, None
    if label_smoothing > 0:
        spread = kept.to(dtype) * (label_smoothing / classes)
        own = counted * (1 - label_smoothing)
        mass = own + spread * (classes if weight is None else weight.sum())
    total = counted.sum()
    divisor = torch.where(total == 0, 1.0, total)
    return ClassTargets(index, mass, own, spread, weight), divisor


def check_classes(index: Tensor, classes: int, ignore_index: int) -> None:
    """Check class indices, where they can be read.

    Raises:
        ValueError: if a target that is not ignored is not a class.
    """
    if not index.numel() or index.device.type != "cpu" or is_traced():
        return
    index = index.long()
    lowest, highest = torch.aminmax(torch.where(index == ignore_index, 0, index))
    if int(lowest) < 0 or int(highest) >= classes:
        wrong = int(lowest) if int(lowest) < 0 else int(highest)
        raise ValueError(
            f"target {wrong} is not a class from 0 to {classes - 1}, "
            f"nor ignore_index {ignore_index}"
        )


class RowLossFunction(Function):
    """One loss for each row of scores; without targets, their conjugate.

    ``apply(scores, alpha, targets)`` with contiguous scores ``(rows, classes)`` and alpha a number
    or ``(rows, 1)`` returns the losses ``(rows,)``, and the probabilities of the sparse rows'
    support ``(entries,)``: as an output, they carry gradients of gradients.
    """

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, alpha: float | Tensor, targets: ClassTargets | None
    ) -> tuple[Tensor, Tensor]:
        solved = backend_for(scores, alpha).conjugate(scores, alpha, ctx.needs_input_grad[0])
        shifted, maxima, threshold, entries, dense, whole = solved
        if targets is None:
            losses = shifted + maxima.squeeze(1)
        else:
            losses = class_losses(scores, shifted, maxima, targets)
        ctx.targets, ctx.dense, ctx.shape = targets, dense, scores.shape
        _save(ctx, alpha, scores if dense else None, maxima, threshold, whole, *entries)
        ctx.set_materialize_grads(False)
        return losses, entries.probability

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, Tensor | None, None]:
        per_row, per_entry = gradients
        alpha, scores, maxima, threshold, whole_kept, *parts = _saved(ctx)
        entries = Entries(*parts)
        scores_grad = alpha_grad = None
        if per_row is not None:
            factors = per_row if ctx.targets is None else per_row * ctx.targets.mass
            # Without memory there are several gradients at once.
            if torch.is_grad_enabled() or not has_memory(factors):
                whole = _differentiable_probabilities(ctx, scores, alpha, entries)
                scores_grad = whole * factors.unsqueeze(1)
            else:
                solved = Conjugate(factors, maxima, threshold, entries, ctx.dense, whole_kept)
                scores_grad = _scaled_probabilities(solved, factors, scores, alpha, ctx.shape)
            if ctx.targets is not None:
                scores_grad = _minus_target(scores_grad, per_row, ctx.targets)
            if ctx.needs_input_grad[1]:
                whole = _differentiable_probabilities(ctx, scores, alpha, entries)
                derivative = jacobian.entropy_alpha_derivative(whole, alpha.to(whole.dtype))
                alpha_grad = (factors.unsqueeze(1) * derivative).to(alpha.dtype)
        if per_entry is not None and per_entry.numel():
            second = jacobian.entries_gradient(entries, alpha, per_entry, ctx.shape)
            scores_grad = second if scores_grad is None else scores_grad + second
        return scores_grad, alpha_grad, None


class ClassLossFunction(Function):
    """Losses of class targets by kernels of their own, which have solved the rows already.

    ``apply(scores, target, weight, options, solved)`` with the arguments and the result of
    ``class_losses`` of the Triton backend returns the losses ``(rows,)``, or their sum or mean.
    """

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, target: Tensor, weight: Tensor | None, options: Any, solved: Any
    ) -> Tensor:
        result: Tensor = solved.result
        ctx.options = options
        parts = (solved.statistics, solved.divisor, solved.weight_sum)
        ctx.save_for_backward(scores, target, weight, *parts)
        ctx.kind = type(solved)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        scores, target, weight, *parts = ctx.saved_tensors
        (upstream,) = gradients
        options = ctx.options
        found = None
        if not torch.is_grad_enabled():
            kernels = kernels_for(scores, options.alpha, upstream)
            if kernels is not None:
                solved = ctx.kind(upstream, *parts)
                found = kernels.class_loss_gradient(
                    scores, target, weight, options, solved, upstream
                )
        if found is None:
            given = (target, scores, weight, options.ignore_index, options.label_smoothing)
            targets, count = class_targets(*given)
            per_row = upstream / count if options.reduction == "mean" else upstream
            per_row = per_row.to(count.dtype).expand(len(scores))
            whole = EntmaxFunction.apply(scores, options.alpha)
            kept = (targets.mass != 0).unsqueeze(1)
            whole = torch.where(kept, whole * (per_row * targets.mass).unsqueeze(1), 0.0)
            found = _minus_target(whole, per_row, targets).to(scores.dtype)
        return found, None, None, None, None


def class_losses(scores: Tensor, shifted: Tensor, maxima: Tensor, targets: ClassTargets) -> Tensor:
    """Return the losses ``(rows,)`` of scores, from their shifted conjugates.

    Args:
        scores: ``(rows, classes)``.
        shifted: ``(rows,)``.
        maxima: the largest scores, ``(rows, 1)``.
        targets: of the rows.
    """
    label = scores.gather(1, targets.label.unsqueeze(1)).to(maxima.dtype)
    # A class of weight 0 adds nothing, even if its score is -inf.
    logit_margin = torch.where(targets.own == 0, 0.0, (maxima - label).squeeze(1))
    losses = shifted * targets.mass + targets.own * logit_margin
    if targets.spread is not None:
        logit_margins = maxima - scores
        if targets.weight is None:
            total = logit_margins.sum(1)
        else:
            total = torch.where(targets.weight == 0, 0.0, logit_margins) @ targets.weight
        losses = losses + targets.spread * total
    # An ignored row adds nothing, even if its scores are infinite: 0 times those would be nan.
    return torch.where(targets.mass == 0, 0.0, losses)


def _scaled_probabilities(
    solved: Conjugate,
    factors: Tensor,
    scores: Tensor | None,
    alpha: float | Tensor,
    shape: torch.Size,
) -> Tensor:
    """Return each row's probabilities times its factor.

    Args:
        solved: the solved rows; their shifted conjugates are not used.
        factors: ``(rows,)``.
        scores: ``(rows, classes)``, or None if all rows are sparse.
        alpha: a number, or ``(rows, 1)``.
        shape: of the scores and the result.
    """
    _, maxima, threshold, entries, dense, whole = solved
    product = factors.new_empty(shape, dtype=factors.dtype if scores is None else scores.dtype)
    if scores is not None:
        backend = backend_for(scores, alpha, factors)
        if backend.writes_in_one_pass:
            backend.write_probabilities(scores, alpha, maxima, threshold, product, factors)
            return product
    if entries.row.numel():
        values = entries.probability * factors.index_select(0, entries.row)
        product.zero_().view(-1).scatter_(0, entries.position, values)
    for begin, end in dense:
        assert scores is not None
        rows = slice(begin, end)
        if whole is not None:
            torch.mul(whole[rows], factors[rows].unsqueeze(1), out=product[rows])
            continue
        alphas = alpha[rows] if isinstance(alpha, Tensor) else alpha
        known = (maxima[rows], threshold[rows], product[rows], factors[rows])
        backend.write_probabilities(scores[rows], alphas, *known)
    return product


def _differentiable_probabilities(
    ctx: Any, scores: Tensor | None, alpha: float | Tensor, entries: Entries
) -> Tensor:
    """Return the probabilities ``(rows, classes)``, with a graph to the scores."""
    whole = entries.probability.new_zeros(ctx.shape.numel())
    whole = whole.scatter(0, entries.position, entries.probability).view(ctx.shape)
    for begin, end in ctx.dense:
        assert scores is not None
        alphas = alpha[begin:end] if isinstance(alpha, Tensor) else alpha
        rows = EntmaxFunction.apply(scores[begin:end], alphas)
        whole = whole.slice_scatter(rows, 0, begin, end)
    return whole


def _minus_target(scores_grad: Tensor, per_row: Tensor, targets: ClassTargets) -> Tensor:
    """Subtract each row's target, times the gradient in its loss, from the scores' gradient."""
    in_place = not torch.is_grad_enabled()
    if targets.spread is not None:
        even = (per_row * targets.spread).unsqueeze(1)
        even = even if targets.weight is None else even * targets.weight
        scores_grad = scores_grad.sub_(even) if in_place else scores_grad - even
    own = -(per_row * targets.own).unsqueeze(1).to(scores_grad.dtype)
    index = targets.label.unsqueeze(1)
    if in_place:
        return scores_grad.scatter_add_(1, index, own)
    return scores_grad.scatter_add(1, index, own)


# Operators for torch.compile. The number of Newton steps depends on the scores, which a compiled
# graph cannot follow: solving is one opaque operator, and the gradient is code that can be fused.


@torch.library.custom_op("onmt_entmax::entmax", mutates_args=())
def entmax_operator(scores: Tensor, alpha: float) -> Tensor:
    """Return entmax of float32 or float64 scores ``(..., n)``."""
    return backend_for(scores, alpha).probabilities(scores, alpha).contiguous()


@torch.library.custom_op("onmt_entmax::log_entmax", mutates_args=())
def log_entmax_operator(scores: Tensor, alpha: float) -> Tensor:
    """Return the logarithm of :func:`entmax_operator`."""
    return backend_for(scores, alpha).log_probabilities(scores, alpha).contiguous()


@torch.library.custom_op("onmt_entmax::conjugate", mutates_args=())
def conjugate_operator(scores: Tensor, alpha: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return shifted conjugates, largest scores and probabilities of rows.

    The conjugate is the sum of the first two. Its whole gradient, the probabilities, goes through
    the first; the largest scores count as constants.

    Args:
        scores: ``(rows, n)``, contiguous.
        alpha: a number >= 1.

    Returns:
        Tensors ``(rows,)``, ``(rows,)`` and ``(rows, n)``.
    """
    solved = backend_for(scores, alpha).conjugate(scores, alpha)
    return solved.shifted, solved.maxima.squeeze(1), all_probabilities(scores, alpha, solved)


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


def _entmax_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
    (result,) = ctx.saved_tensors
    return jacobian.scores_gradient(result, ctx.alpha, gradient), None


def _log_entmax_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
    (result,) = ctx.saved_tensors
    return jacobian.log_scores_gradient(result, ctx.alpha, gradient), None


def _conjugate_backward(
    ctx: Any, per_row: Tensor, per_maximum: Tensor, per_entry: Tensor
) -> tuple[Tensor, None]:
    (result,) = ctx.saved_tensors
    second = jacobian.scores_gradient(result, ctx.alpha, per_entry)
    return per_row.unsqueeze(1) * result + second, None


entmax_operator.register_autograd(_entmax_backward, setup_context=_keep_output)
log_entmax_operator.register_autograd(_log_entmax_backward, setup_context=_keep_output)
conjugate_operator.register_autograd(_conjugate_backward, setup_context=_keep_probabilities)
