"""The Fenchel-Young losses of entmax, with the interface of PyTorch's cross-entropy."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from onmt_entmax.sparse import backends, derivatives, reference
from onmt_entmax.sparse.arguments import alpha_of_rows
from onmt_entmax.sparse.entropy import tsallis_entropy
from onmt_entmax.sparse.mapping import entmax
from onmt_entmax.sparse.precision import returned_type, working_type
from onmt_entmax.sparse.recording import (
    check_shapes,
    has_values,
    is_empty,
    is_readable_now,
    size_of,
)


def entmax_loss(
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor = 1.5,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""Return the Fenchel-Young loss of entmax, with the interface of PyTorch's cross-entropy.

    For a class :math:`y` the loss is :math:`L(z, y) = \Omega^*(z) - z_y` with
    :math:`\Omega^*(z) = \max_p p^\top z + H_\alpha(p)` (Peters, Niculae and Martins 2019, equation
    11). It is convex, its gradient is entmax(z) minus the one-hot target, and for alpha above 1 it
    is 0 once the target's score is 1 / (alpha - 1) above every other. At alpha = 1 it equals
    ``torch.nn.functional.cross_entropy``.

    For a distribution :math:`q` over the classes the loss is :math:`\sum_c q_c L(z, c)`, as in
    cross-entropy: the Fenchel-Young divergence, which is 0 at entmax(z) = q, plus
    ``tsallis_entropy(q, alpha)``, which does not depend on the scores.

    Unlike cross-entropy, a batch in which every target is ignored has mean 0, not nan; a class with
    target probability 0 may have a score of -inf; `torch.func` does not work. Where the weights of
    the targets sum to 0, the mean is nan in cross-entropy and the sum here: 0, but for the part
    that label smoothing gives to other classes. With weights >= 0, no loss rounds below 0.

    Args:
        scores: ``(classes,)``, ``(rows, classes)`` or ``(rows, classes, d1, ...)``, floating point.
        target: integer class indices, the shape of ``scores`` without classes; or floating-point
            distributions over the classes, the shape of ``scores`` (for multi-label targets, or
            smoothing by a prior).
        alpha: a number >= 1, or a tensor that broadcasts to ``scores`` with 1 for classes.
        weight: ``(classes,)`` weight of each class.
        ignore_index: a class index whose rows do not count; their scores must still be numbers.
        reduction: "none", "sum" or "mean", weighted for class indices, over all distributions else.
        label_smoothing: in [0, 1], the part of each target spread evenly over all classes.

    Returns:
        A scalar, or with "none" the losses in the shape of ``scores`` without classes.

    Raises:
        ValueError: if alpha, reduction or label_smoothing is out of range, shapes do not fit, a
            class does not exist, ignore_index is given with distributions, or a row of scores is
            all -inf (nan on a GPU).
    """
    check_options(reduction, label_smoothing)
    class_dim = check_shapes(_checked_class_dim, scores, target, weight, ignore_index)
    dtype, classes = working_type(scores), size_of(scores, class_dim)
    alpha = alpha_of_rows(alpha, scores, class_dim)
    rows = scores.to(dtype).movedim(class_dim, -1)
    shape = rows.shape[:-1]
    rows = rows.reshape(-1, scores.shape[class_dim]).contiguous()
    if isinstance(alpha, Tensor):
        alpha = alpha.movedim(class_dim, -1).reshape(-1, 1)
    weight = None if weight is None else weight.to(dtype)
    divisor: Tensor | int  # of the mean
    if target.is_floating_point():
        q = target.to(dtype).movedim(class_dim, -1).reshape(rows.shape)
        if label_smoothing > 0:
            q = q * (1 - label_smoothing) + label_smoothing / classes
        losses = _distribution_losses(rows, alpha, q if weight is None else q * weight)
        divisor = 1 if is_empty(losses) else losses.numel()
    else:
        label = target.reshape(-1).long()
        losses, divisor = _label_losses(
            rows, alpha, label, weight, classes, ignore_index, label_smoothing
        )
    if reduction == "none":
        return losses.reshape(shape).to(returned_type(scores))
    result = losses.sum()
    return (result / divisor if reduction == "mean" else result).to(returned_type(scores))


def _label_losses(
    rows: Tensor,
    alpha: float | Tensor,
    label: Tensor,
    weight: Tensor | None,
    classes: int | Tensor,
    ignore_index: int,
    label_smoothing: float,
) -> tuple[Tensor, Tensor]:
    """Return the losses ``(rows,)`` for class indices, and what their mean divides the sum by.

    Args:
        rows: scores ``(rows, classes)``.
        alpha: a number, or ``(rows, 1)``.
        label: ``(rows,)`` int64.
        weight: ``(classes,)``, or None.
        classes: number of classes.
        ignore_index: see :func:`entmax_loss`.
        label_smoothing: see :func:`entmax_loss`.

    Raises:
        ValueError: a label is no class.
    """
    is_counted = label != ignore_index
    label = torch.where(is_counted, label, 0)
    _check_labels(label, classes, ignore_index)
    label_weight = is_counted.to(rows.dtype)
    if weight is not None:
        label_weight = torch.where(is_counted, weight[label], 0.0)
    targets = _Targets(label, mass=label_weight, own=label_weight)
    if label_smoothing > 0:
        spread = is_counted.to(rows.dtype) * (label_smoothing / classes)
        targets = _smoothed(targets, label_smoothing, spread, weight, classes)
    total = label_weight.sum()
    return _losses(rows, alpha, targets), torch.where(total == 0, 1.0, total)


def _distribution_losses(rows: Tensor, alpha: float | Tensor, q: Tensor) -> Tensor:
    """Return the losses ``(rows,)`` for distributions, or weighted ones, ``(rows, classes)``."""
    # Differences to the largest score keep their digits when all scores are far from 0.
    maxima = rows.detach().amax(1, keepdim=True)
    rows = rows - torch.where(maxima.isneginf(), 0.0, maxima)
    # A class of probability 0 adds nothing, even if its score is -inf.
    expected = (torch.where(q == 0, 0.0, rows) * q).sum(1)
    # With no weight on the label, class 0, the loss is the conjugate.
    zeros = torch.zeros_like(maxima.squeeze(1))
    conjugate_alone = _Targets(label=zeros.long(), mass=zeros + 1, own=zeros)
    return _losses(rows, alpha, conjugate_alone) * q.sum(1) - expected


def _check_labels(label: Tensor, classes: int | Tensor, ignore_index: int) -> None:
    """Check that labels ``(rows,)`` are classes, where they can be read without waiting.

    Raises:
        ValueError: names one that is not.
    """
    if not is_readable_now(label) or not label.numel():
        return
    lowest, highest = (int(x) for x in torch.aminmax(label))
    if lowest < 0 or highest >= classes:
        raise ValueError(
            f"target {lowest if lowest < 0 else highest} is not a class from 0 to "
            f"{classes - 1}, nor ignore_index {ignore_index}"
        )


def _checked_class_dim(
    scores: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int
) -> int:
    """Check types and shapes, and return the dimension of the classes."""
    if scores.dim() == 0:
        raise ValueError("scores must have a dimension for the classes")
    class_dim = 0 if scores.dim() == 1 else 1
    classes = scores.shape[class_dim]
    if not classes:
        raise ValueError(f"scores of shape {tuple(scores.shape)} have no classes")
    if weight is not None and weight.shape != (classes,):
        raise ValueError(f"weight must have shape ({classes},), got {tuple(weight.shape)}")
    if weight is not None and weight.requires_grad:
        raise ValueError("weight has no gradient here (nor in cross_entropy): detach it")
    distributions = target.is_floating_point()
    shape = scores.shape[:class_dim] + scores.shape[class_dim + 1 :]
    if target.shape != (scores.shape if distributions else shape) or target.dtype == torch.bool:
        raise ValueError(
            f"target of shape {tuple(target.shape)} and type {target.dtype} does not fit scores of "
            f"shape {tuple(scores.shape)}: give integer class indices without the dimension of the "
            "classes, or floating-point distributions with it"
        )
    if distributions and ignore_index >= 0:
        raise ValueError("ignore_index is of class indices; distributions have none")
    return class_dim


def check_options(reduction: str, label_smoothing: float) -> None:
    """Check the options of :func:`entmax_loss` that are not tensors.

    Raises:
        ValueError: names the one that is out of range.
    """
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f'reduction must be "none", "sum" or "mean", got "{reduction}"')
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"label_smoothing must be between 0 and 1, got {label_smoothing}")


class _Targets(NamedTuple):
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
    spread: Tensor | None = None
    weight: Tensor | None = None

    def losses(self, scores: Tensor, shifted: Tensor, maxima: Tensor) -> Tensor:
        """Return the losses ``(rows,)``, from shifted conjugates and largest scores."""
        margin = maxima - scores.gather(1, self.label.unsqueeze(1)).squeeze(1)
        # A class of weight 0 adds nothing, even if its score is -inf.
        losses = shifted * self.mass + self.own * torch.where(self.own == 0, 0.0, margin)
        if self.spread is not None:
            margins = maxima.unsqueeze(1) - scores
            if self.weight is not None:  # no product, which autocast would round
                margins = torch.where(self.weight == 0, 0.0, margins * self.weight)
            losses = losses + self.spread * margins.sum(1)
        # An ignored row adds nothing, even if its scores are infinite: 0 times those would be nan.
        return torch.where(self.mass == 0, 0.0, losses)


def _smoothed(
    targets: _Targets,
    label_smoothing: float,
    spread: Tensor,
    weight: Tensor | None,
    classes: int | Tensor,
) -> _Targets:
    """Return targets under label smoothing.

    Args:
        targets: without it.
        label_smoothing: what a label gives to all classes.
        spread: what each class gets, ``(rows,)``.
        weight: ``(classes,)`` class weights; None for ones.
        classes: number of classes.
    """
    own = targets.own * (1 - label_smoothing)
    mass = own + spread * (classes if weight is None else weight.sum())
    return _Targets(targets.label, mass, own, spread, weight)


class _RowLosses(Function):
    """Losses ``(rows,)`` of `_Targets`: ``apply(scores, alpha, targets)``.

    Scores are ``(rows, n)``; alpha is a number, or ``(rows, 1)``. The gradient in the scores is
    ``mass * p``, minus ``own`` at the label, minus ``spread * weight``.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, alpha: float | Tensor, targets: _Targets) -> Tensor:
        if not isinstance(alpha, Tensor) and alpha == 1:
            p = torch.empty_like(scores)
            shifted, maxima = backends.solve(scores, 1, p)
            ctx.backend, kept = reference, (p,)
        else:
            ctx.backend = backends.backend_for(scores, alpha)
            shifted, maxima, kept = ctx.backend.conjugate(scores, alpha)
        ctx.targets = targets
        alphas = None
        if isinstance(alpha, Tensor):
            alphas = alpha
        else:
            ctx.number = alpha
        ctx.save_for_backward(scores, alphas, *kept)
        return targets.losses(scores, shifted, maxima)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, alphas, *kept = ctx.saved_tensors
        alpha = ctx.number if alphas is None else alphas
        targets, (per_row,) = ctx.targets, upstream
        factors = per_row * targets.mass
        # Only a plain tensor is written in place: without memory there are several gradients at
        # once, and autograd must see each operation that it will differentiate again.
        in_place = not torch.is_grad_enabled() and has_values(factors)
        if in_place:
            in_scores = ctx.backend.scaled(scores, alpha, kept, factors)
        else:
            p = entmax(scores, alpha)
            in_scores = p * factors.unsqueeze(1)
        if targets.spread is not None:
            of_spread = (per_row * targets.spread).unsqueeze(1)
            if targets.weight is not None:
                of_spread = of_spread * targets.weight
            in_scores = in_scores.sub_(of_spread) if in_place else in_scores - of_spread
        of_own = -(per_row * targets.own).unsqueeze(1)
        add = in_scores.scatter_add_ if in_place else in_scores.scatter_add
        in_scores = add(1, targets.label.unsqueeze(1), of_own)
        in_alpha = None
        if ctx.needs_input_grad[1]:
            if in_place:
                p = ctx.backend.scaled(scores, alpha, kept, torch.ones_like(factors))
            of_conjugate = derivatives.conjugate_in_alpha(p, alpha)
            in_alpha = (factors.unsqueeze(1) * of_conjugate).to(alpha.dtype)
        return in_scores, in_alpha, None


def _losses(rows: Tensor, alpha: float | Tensor, targets: _Targets) -> Tensor:
    """Return the losses of rows of scores, contiguous in float32 or float64."""
    if is_empty(rows):
        return rows.sum(1)
    if has_values(rows):
        return _RowLosses.apply(rows, alpha, targets)
    # A compiler sees the mapping and what follows. By Danskin's theorem the gradients of the
    # conjugate, in alpha too, are those of fixed probabilities.
    fixed = rows.detach()
    p = entmax(fixed, alpha.detach() if isinstance(alpha, Tensor) else alpha)
    maxima = fixed.amax(1)
    below = torch.where(p > 0, rows - maxima.unsqueeze(1), 0.0)
    shifted = (p * below).sum(1) + tsallis_entropy(p, alpha)
    return targets.losses(rows, shifted, maxima)
