"""The Fenchel-Young losses of entmax, with the interface of PyTorch's cross-entropy.

`loss_checks` checks the arguments; `row_losses` computes the losses of rows, and their gradients.
"""

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import alpha_of_rows
from onmt_entmax.sparse.loss_checks import check_labels, check_options, checked_class_dim
from onmt_entmax.sparse.precision import returned_type, working_type
from onmt_entmax.sparse.recording import check_shapes, is_empty, size_of
from onmt_entmax.sparse.row_losses import Targets, row_losses


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
    class_dim = check_shapes(checked_class_dim, scores, target, weight, ignore_index)
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
    check_labels(label, classes, ignore_index)
    label_weight = is_counted.to(rows.dtype)
    if weight is not None:
        label_weight = torch.where(is_counted, weight[label], 0.0)
    targets = Targets(label, mass=label_weight, own=label_weight)
    if label_smoothing > 0:
        spread = is_counted.to(rows.dtype) * (label_smoothing / classes)
        targets = _smoothed(targets, label_smoothing, spread, weight, classes)
    total = label_weight.sum()
    return row_losses(rows, alpha, targets), torch.where(total == 0, 1.0, total)


def _smoothed(
    targets: Targets,
    label_smoothing: float,
    spread: Tensor,
    weight: Tensor | None,
    classes: int | Tensor,
) -> Targets:
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
    return Targets(targets.label, mass, own, spread, weight)


def _distribution_losses(rows: Tensor, alpha: float | Tensor, q: Tensor) -> Tensor:
    """Return the losses ``(rows,)`` for distributions, or weighted ones, ``(rows, classes)``."""
    # Differences to the largest score keep their digits when all scores are far from 0.
    maxima = rows.detach().amax(1, keepdim=True)
    rows = rows - torch.where(maxima.isneginf(), 0.0, maxima)
    # A class of probability 0 adds nothing, even if its score is -inf.
    expected = (torch.where(q == 0, 0.0, rows) * q).sum(1)
    # With no weight on the label, class 0, the loss is the conjugate.
    zeros = torch.zeros_like(maxima.squeeze(1))
    conjugate_alone = Targets(label=zeros.long(), mass=zeros + 1, own=zeros)
    return row_losses(rows, alpha, conjugate_alone) * q.sum(1) - expected
