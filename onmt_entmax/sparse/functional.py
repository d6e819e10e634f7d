r"""The Fenchel-Young loss of entmax, with the interface of PyTorch's cross-entropy.

For a class :math:`y` the loss is :math:`L(z, y) = \Omega^*(z) - z_y`, where :math:`\Omega^*(z) =
\max_p p^\top z + H_\alpha(p)` (Peters, Niculae and Martins 2019, equation 11). It is convex, its
gradient is entmax(z) minus the one-hot target, and for alpha above 1 it is 0 as soon as the target
leads every other class by 1 / (alpha - 1). At alpha = 1 it is cross-entropy.

For a distribution :math:`q` over classes the loss is the mean :math:`\sum_c q_c L(z, c)`, as
cross-entropy does it: it exceeds the Fenchel-Young divergence, which is 0 at entmax(z) = q, by the
entropy of the target, a constant (``tsallis_entropy(q, alpha)``).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from onmt_entmax.sparse.arguments import checked_alpha, has_memory, is_traced, working_type
from onmt_entmax.sparse.autograd import (
    Entmax,
    LogEntmax,
    LongEntmax,
    conjugate_operator,
    entmax_operator,
    log_entmax_operator,
    the_given,
)
from onmt_entmax.sparse.backends import by_kernel, has_kernels
from onmt_entmax.sparse.conjugate import (
    WHOLE,
    Conjugate,
    Entries,
    conjugate,
    entries_gradient,
    row_groups,
    write_probabilities,
)
from onmt_entmax.sparse.entropy import tsallis_entropy
from onmt_entmax.sparse.jacobian import entropy_alpha_derivative
from onmt_entmax.sparse.solvers import MEDIUM, refuse_rows_without_answer

# Entmax and its logarithm: from scores to probabilities, for any alpha from softmax upwards.
#
# ``alpha`` is 1 for softmax, 1.5 for 1.5-entmax, 2 for sparsemax; any number from 1 up will do.
# Sources: Martins and Astudillo (2016), Peters, Niculae and Martins (2019), and for the gradient in
# alpha Correia, Niculae and Martins (2019).

__all__ = ["entmax", "log_entmax", "tsallis_entropy"]

# From this many scores on, it pays to look for the support before solving.
_LONG_WORK = 1 << 16


def entmax(scores: Tensor, alpha: float | Tensor = 1.5, dim: int = -1) -> Tensor:
    r"""Probabilities of scores by alpha-entmax, with true zeros when alpha is above 1.

    .. math:: \arg\max_p \; p^\top z + H_\alpha(p), \qquad p \text{ a distribution}

    with the Tsallis entropy of :func:`tsallis_entropy` (Peters, Niculae and Martins 2019,
    equation 10). A score of -inf, or more than 1 / (alpha - 1) under the largest, gets an exact 0.
    Gradients of gradients are there; the transforms of `torch.func` (vmap, jacrev) and forward mode
    are not.

    Args:
        scores: any shape, floating point; float16 and bfloat16 are computed in float32. Scores
            that are all -inf along ``dim`` have no answer.
        alpha: a number >= 1, or a tensor of such numbers that broadcasts to ``scores`` with size 1
            in ``dim`` (for example (heads, 1, 1) with scores (batch, heads, queries, keys)). A
            tensor may be a parameter: it gets its gradient, at alpha = 1 too; make it of a free one
            that keeps it above 1 (``1 + sigmoid(a)``, as Correia, Niculae and Martins 2019 do). It
            takes several times as long as a number, and `torch.compile` makes a graph break there.
        dim: the dimension to normalise.

    Returns:
        Probabilities, the shape and type of ``scores`` (float32 under autocast, on a CPU too).

    Raises:
        ValueError: if alpha is below 1 or does not fit, the scores are not floating point, or are
            all -inf in a row (for alpha = 1 too, where PyTorch's softmax returns nan). Where
            looking for such a row or at such a tensor would mean waiting, as on a GPU, it gives
            nan.
        IndexError: if there is no such dimension.
    """
    return _along_dim(_entmax_last, scores, alpha, dim)


def log_entmax(scores: Tensor, alpha: float | Tensor = 1.5, dim: int = -1) -> Tensor:
    """Logarithm (natural) of :func:`entmax`, -inf exactly outside the support.

    Membership and logarithm both come from how far a score is above the threshold, so an entry
    whose probability is too small for its type still has a finite logarithm. In training, what
    arrives as gradient for an entry of -inf is not used.

    Args, returns and raises: as :func:`entmax`.
    """
    return _along_dim(_log_entmax_last, scores, alpha, dim)


def _along_dim(
    mapping: Callable[[Tensor, float | Tensor], Tensor],
    scores: Tensor,
    alpha: float | Tensor,
    dim: int,
) -> Tensor:
    """Apply a mapping of the last dimension, with alpha as :func:`checked_alpha` returns it."""
    given, dimensions = scores.dtype, scores.dim()
    dtype = working_type(scores)
    if dimensions == 0:
        return _along_dim(mapping, scores.unsqueeze(0), alpha, dim).squeeze(0)
    if not -dimensions <= dim < dimensions:
        raise IndexError(f"dim must be from {-dimensions} to {dimensions - 1}, got {dim}")
    checked = checked_alpha(alpha, scores, dim)
    if given != dtype and torch.is_autocast_enabled(scores.device.type):
        given = dtype
    if scores.numel() == 0:
        return scores.to(given, copy=True)
    if scores.dtype != dtype and not has_kernels(scores):
        scores = scores.to(dtype)
    if dim in (-1, dimensions - 1):
        result = mapping(scores, checked)
    else:
        rows = checked.movedim(dim, -1) if isinstance(checked, Tensor) else checked
        result = mapping(scores.movedim(dim, -1), rows).movedim(-1, dim).contiguous()
    return result if result.dtype == given else result.to(given)


def _entmax_last(scores: Tensor, alpha: float | Tensor) -> Tensor:
    if isinstance(alpha, Tensor):
        return Entmax.apply(scores, None, alpha)
    if alpha == 1:
        return _checked_softmax(torch.softmax(scores, -1, working_type(scores)), scores)
    if is_traced():
        return entmax_operator(scores, alpha)
    if scores.shape[-1] >= MEDIUM and scores.numel() >= _LONG_WORK and not has_kernels(scores):
        return LongEntmax.apply(scores, alpha)[0]
    return Entmax.apply(scores, alpha, None)


def _log_entmax_last(scores: Tensor, alpha: float | Tensor) -> Tensor:
    if isinstance(alpha, Tensor):
        return LogEntmax.apply(scores, None, alpha)
    if alpha == 1:
        logs = _checked_softmax(torch.log_softmax(scores, -1, working_type(scores)), scores)
        if not logs.requires_grad:
            return logs
        # What arrives for an entry of -inf stops here: times its probability it would be nan.
        return torch.where(logs == -torch.inf, -torch.inf, logs)
    if is_traced():
        return log_entmax_operator(scores, alpha)
    return LogEntmax.apply(scores, alpha, None)


def _checked_softmax(result: Tensor, scores: Tensor) -> Tensor:
    """The result, unless a row of the scores is -inf everywhere (the result is nan there)."""
    looking = scores.device.type == "cpu" and not is_traced()
    if looking and bool(result.detach()[..., 0].isnan().any()):
        refuse_rows_without_answer(scores.amax(-1))
    return result


class ClassTargets(NamedTuple):
    """Targets of rows of scores (rows, classes), as coefficients of one loss per row.

    The loss of a row is ``mass * conjugate(z) - own * z[label] - spread * sum(weight * z)``. Since
    ``mass`` is the sum of the other coefficients, only differences to the largest score matter.

    Attributes:
        label: (rows,) int64, the class of each row; any valid class where the row is ignored.
        mass: (rows,) what the row's target sums to, class weights included.
        own: (rows,) the part of it on the row's class.
        spread: (rows,) label smoothing's part per class; None without smoothing.
        weight: (classes,) class weights under ``spread``; None for ones.
    """

    label: Tensor
    mass: Tensor
    own: Tensor
    spread: Tensor | None
    weight: Tensor | None


class EntmaxRowLoss(Function):
    """One loss per row of scores (rows, classes); without targets, their conjugate.

    ``apply(scores, number, alpha, targets)``: contiguous scores, alpha as a number, or None and a
    tensor (rows, 1) in its place. Returns the losses (rows,), and the probabilities of the sparse
    rows' support: backward uses them, and as an output they carry gradients of gradients.
    """

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        number: float | None,
        alpha: Tensor | None,
        targets: ClassTargets | None,
    ) -> tuple[Tensor, Tensor]:
        solved = conjugate(scores, the_given(number, alpha), ctx.needs_input_grad[0])
        entries = solved.entries
        if targets is None:
            losses = solved.excess + solved.maxima.squeeze(1)
        else:
            losses = _loss_of(scores, solved.excess, solved.maxima, targets)
        ctx.number, ctx.targets, ctx.dense, ctx.shape = number, targets, solved.dense, scores.shape
        ctx.save_for_backward(
            scores if solved.dense else None,
            alpha,
            solved.maxima,
            solved.threshold,
            solved.whole,
            *entries,
        )
        ctx.set_materialize_grads(False)
        return losses, entries.probability

    @staticmethod
    def backward(
        ctx: Any, *gradients: Tensor | None
    ) -> tuple[Tensor | None, None, Tensor | None, None]:
        per_row, per_entry = gradients
        scores, alpha_tensor, maxima, threshold, whole_kept, *parts = ctx.saved_tensors
        entries = Entries(*parts)
        alpha = ctx.number if alpha_tensor is None else alpha_tensor
        scores_grad = alpha_grad = None
        if per_row is not None:
            massed = per_row if ctx.targets is None else per_row * ctx.targets.mass
            if torch.is_grad_enabled() or not has_memory(massed):  # several gradients at once
                whole = _differentiable_probabilities(ctx, scores, alpha, entries)
                scores_grad = whole * massed.unsqueeze(1)
            else:
                solved = Conjugate(massed, maxima, threshold, entries, ctx.dense, whole_kept)
                scores_grad = _times_probabilities(solved, scores, alpha, ctx.shape)
            if ctx.targets is not None:
                scores_grad = _minus_target(scores_grad, per_row, ctx.targets)
            if ctx.needs_input_grad[2]:
                whole = _differentiable_probabilities(ctx, scores, alpha, entries)
                derivative = entropy_alpha_derivative(whole, alpha.to(whole.dtype))
                alpha_grad = (massed.unsqueeze(1) * derivative).to(alpha.dtype)
        if per_entry is not None and per_entry.numel():
            second = entries_gradient(entries, alpha, per_entry, ctx.shape)
            scores_grad = second if scores_grad is None else scores_grad + second
        return scores_grad, None, alpha_grad, None


def _loss_of(scores: Tensor, excess: Tensor, maxima: Tensor, targets: ClassTargets) -> Tensor:
    """Losses (rows,) of scores (rows, classes), from the conjugate's excess (rows,) over the
    largest scores (rows, 1)."""
    label = scores.gather(1, targets.label.unsqueeze(1)).to(maxima.dtype)
    # A class of weight 0 counts nothing, also where its score is -inf.
    lead = torch.where(targets.own == 0, 0.0, (maxima - label).squeeze(1))
    losses = excess * targets.mass + targets.own * lead
    if targets.spread is not None:
        losses = losses + targets.spread * _leads(scores, maxima, targets.weight)
    # An ignored row counts nothing, also where its scores are huge.
    return torch.where(targets.mass == 0, 0.0, losses)


def _leads(scores: Tensor, maxima: Tensor, weight: Tensor | None) -> Tensor:
    """Sums (rows,) of what the largest scores (rows, 1) lead the others by, with weights (classes,)
    if there are any; a class of weight 0 may have a score of -inf."""
    leads = maxima - scores
    return leads.sum(1) if weight is None else torch.where(weight == 0, 0.0, leads) @ weight


def _times_probabilities(
    solved: Conjugate, scores: Tensor | None, alpha: float | Tensor, shape: torch.Size
) -> Tensor:
    """Each row's probabilities times its factor, in the place of the excess: (rows, classes)."""
    factors, maxima, threshold, entries, dense, whole = solved
    dtype = factors.dtype if scores is None else scores.dtype
    product = factors.new_empty(shape, dtype=dtype)
    if scores is not None:
        known = (alpha, maxima, threshold, product, factors)
        if by_kernel("write_probabilities", scores, *known) is not None:
            return product
    if entries.row.numel():
        product.zero_()
    for begin, end in dense:
        assert scores is not None
        if whole is not None:
            rows = slice(begin, end)
            torch.mul(whole[rows], factors[rows].unsqueeze(1), out=product[rows])
            continue
        for first, last in row_groups(begin, end, shape[1], WHOLE):
            rows = slice(first, last)
            alphas = alpha[rows] if isinstance(alpha, Tensor) else alpha
            part = product[rows]
            write_probabilities(scores[rows], alphas, maxima[rows], threshold[rows], part)
            part *= factors[rows].unsqueeze(1)
    values = entries.probability * factors.index_select(0, entries.row)
    product.view(-1).scatter_(0, entries.position, values)
    return product


def _differentiable_probabilities(
    ctx: Any, scores: Tensor | None, alpha: float | Tensor, entries: Entries
) -> Tensor:
    """The probabilities (rows, classes), with a graph to the scores."""
    whole = entries.probability.new_zeros(ctx.shape.numel())
    whole = whole.scatter(0, entries.position, entries.probability).view(ctx.shape)
    for begin, end in ctx.dense:
        assert scores is not None
        tensor = alpha[begin:end] if isinstance(alpha, Tensor) else None
        rows = Entmax.apply(scores[begin:end], ctx.number, tensor)
        whole = whole.slice_scatter(rows, 0, begin, end)
    return whole


def _minus_target(scores_grad: Tensor, per_row: Tensor, targets: ClassTargets) -> Tensor:
    """Subtract each row's target, times its gradient, from the gradient in the scores."""
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


def row_losses(
    scores: Tensor, alpha: float | Tensor, targets: ClassTargets | None = None
) -> Tensor:
    """Losses (rows,) of scores (rows, classes); alpha a number or (rows, 1)."""
    if isinstance(alpha, Tensor):
        return EntmaxRowLoss.apply(scores, None, alpha, targets)[0]
    if not is_traced():
        return EntmaxRowLoss.apply(scores, alpha, None, targets)[0]
    excess, maxima, _ = conjugate_operator(scores, alpha)
    if targets is None:
        return excess + maxima
    return _loss_of(scores, excess, maxima.unsqueeze(1), targets)


def entmax_loss(
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor = 1.5,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Fenchel-Young loss of entmax; at alpha = 1 equal to ``torch.nn.functional.cross_entropy``.

    Three differences from cross-entropy: a batch in which every target is ignored has mean 0, not
    nan, a class of probability 0 in the target may have a score of -inf, and no `torch.func`.

    Args:
        scores: (classes,), (rows, classes) or (rows, classes, d1, ...), floating point.
        target: class indices, the shape of ``scores`` without classes, integers; or distributions
            over the classes, the shape of ``scores``, floating point (for multi-label targets, or
            smoothing by a prior).
        alpha: a number >= 1, or a tensor that broadcasts to ``scores`` with 1 for classes.
        weight: (classes,) weight of each class.
        ignore_index: a class index whose rows count nothing; their scores must be numbers too.
        reduction: "none", "sum", or "mean", of the indices by weight or of all distributions.
        label_smoothing: in [0, 1], the part of each target spread evenly over all classes.

    Returns:
        A scalar, or the losses in the shape of ``scores`` without classes.

    Raises:
        ValueError: if alpha, reduction or label_smoothing is out of range, shapes do not fit, a
            class does not exist or is to be ignored in distributions, or a row of scores is all
            -inf (on a GPU that gives nan).
    """
    _check(scores, weight, reduction, label_smoothing)
    class_dim = 0 if scores.dim() == 1 else 1
    classes = scores.shape[class_dim]
    dtype = working_type(scores)
    returned = dtype if torch.is_autocast_enabled(scores.device.type) else scores.dtype
    checked = checked_alpha(alpha, scores, class_dim)
    rows = (scores if has_kernels(scores) else scores.to(dtype)).movedim(class_dim, -1)
    shape = rows.shape[:-1]
    rows = rows.reshape(-1, classes).contiguous()
    if isinstance(checked, Tensor):
        checked = checked.movedim(class_dim, -1).reshape(-1, 1)
    weight = None if weight is None else weight.to(dtype)
    if target.is_floating_point():
        _check_distributions(scores, target, ignore_index)
        distributions = target.to(dtype).movedim(class_dim, -1).reshape(-1, classes)
        losses = _distribution_losses(rows, distributions, checked, weight, label_smoothing)
        count: Tensor | int = max(losses.numel(), 1)
    else:
        if target.shape != shape or target.dtype == torch.bool:
            raise ValueError(_shape_message(scores, target))
        index = target.reshape(-1).long()
        targets, count = class_targets(index, rows, weight, ignore_index, label_smoothing)
        losses = row_losses(rows, checked, targets) if rows.numel() else rows.sum(1)
    if reduction == "none":
        return losses.reshape(shape).to(returned)
    total = losses.sum()
    return (total / count if reduction == "mean" else total).to(returned)


def _check(scores: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float) -> None:
    """Refuse arguments of :func:`entmax_loss` that do not fit, whatever the target."""
    check_options(reduction, label_smoothing)
    if scores.dim() == 0:
        raise ValueError("scores must have a dimension for the classes")
    classes = scores.shape[0 if scores.dim() == 1 else 1]
    if not classes:
        raise ValueError(f"scores of shape {tuple(scores.shape)} have no classes")
    if weight is not None and weight.shape != (classes,):
        raise ValueError(f"weight must have shape ({classes},), got {tuple(weight.shape)}")
    if weight is not None and weight.requires_grad:
        raise ValueError("weight has no gradient here (nor in cross_entropy): detach it")


def check_options(reduction: str, label_smoothing: float) -> None:
    """Refuse them where they are out of range.

    Raises:
        ValueError: names the one that is.
    """
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f'reduction must be "none", "sum" or "mean", got "{reduction}"')
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"label_smoothing must be between 0 and 1, got {label_smoothing}")


def _check_distributions(scores: Tensor, target: Tensor, ignore_index: int) -> None:
    if target.shape != scores.shape:
        raise ValueError(_shape_message(scores, target))
    if ignore_index >= 0:
        raise ValueError("ignore_index is of class indices; distributions have none")


def _shape_message(scores: Tensor, target: Tensor) -> str:
    return (
        f"target of shape {tuple(target.shape)} and type {target.dtype} does not fit scores of "
        f"shape {tuple(scores.shape)}: give integer class indices without the dimension of the "
        "classes, or floating-point distributions with it"
    )


def class_targets(
    index: Tensor,
    rows: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    label_smoothing: float,
) -> tuple[ClassTargets, Tensor]:
    """Targets (rows,) of scores ``rows`` (rows, classes), and the 0-dim divisor of their mean.

    Raises:
        ValueError: if a target that is not ignored is not a class.
    """
    classes = rows.shape[1]
    kept = index != ignore_index
    index = torch.where(kept, index, 0)
    if index.numel() and index.device.type == "cpu" and not is_traced():
        lowest, highest = torch.aminmax(index)
        if int(lowest) < 0 or int(highest) >= classes:
            wrong = int(lowest) if int(lowest) < 0 else int(highest)
            raise ValueError(
                f"target {wrong} is not one of the {classes} classes 0 to {classes - 1}, "
                f"nor ignore_index {ignore_index}"
            )
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


def _distribution_losses(
    rows: Tensor,
    distributions: Tensor,
    alpha: float | Tensor,
    weight: Tensor | None,
    label_smoothing: float,
) -> Tensor:
    """Losses (rows,) of scores against distributions, both (rows, classes)."""
    if not rows.numel():
        return rows.sum(1)
    if label_smoothing > 0:
        distributions = distributions * (1 - label_smoothing) + label_smoothing / rows.shape[1]
    if weight is not None:
        distributions = distributions * weight
    # Differences to the largest score, which keep their digits where all scores are far from 0.
    rows = rows.to(distributions.dtype)
    maxima = rows.detach().amax(1, keepdim=True)
    rows = rows - torch.where(maxima.isneginf(), 0.0, maxima)
    # 0 times a score of -inf counts 0.
    expected = torch.where(distributions == 0, 0.0, rows) * distributions
    return row_losses(rows, alpha) * distributions.sum(1) - expected.sum(1)
