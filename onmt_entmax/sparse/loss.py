"""The Fenchel-Young losses of entmax, with the interface of PyTorch's cross-entropy.

`loss_checks` checks the arguments; `row_losses` computes the losses of rows, and their gradients.
"""

from typing import NamedTuple

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

    For a distribution :math:`q` over the classes, the loss is :math:`\sum_c q_c L(z, c)`, as in
    cross-entropy. It is the sum of the Fenchel-Young divergence, which is 0 if entmax(z) = q, and
    of ``tsallis_entropy(q, alpha)``, which does not depend on the scores.

    Differences from cross-entropy:

    - If the weights of all targets sum to 0, the mean is the sum of the losses: nothing is divided
      by 0. If all targets are ignored, it is 0.
    - A class with target probability 0 may have a score of -inf.
    - With weights >= 0, no loss rounds below 0.
    - The transforms of `torch.func` do not work.

    Args:
        scores: ``(classes,)``, ``(rows, classes)`` or ``(rows, classes, d1, ...)``, floating point.
        target: integer class indices in the shape of ``scores`` without classes; or floating-point
            distributions over the classes in the shape of ``scores``, for example for multi-label
            targets or smoothing by a prior.
        alpha: a number >= 1, or a tensor that broadcasts to ``scores``, with size 1 in the
            dimension of the classes.
        weight: ``(classes,)`` weight of each class.
        ignore_index: rows with this class index do not count; their scores must not be nan.
        reduction: "none", "sum" or "mean". The mean divides the sum by the weights of the target
            classes, or by the number of distributions.
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
    dtype = working_type(scores)
    alpha = alpha_of_rows(alpha, scores, class_dim)
    by_class = scores.to(dtype).movedim(class_dim, -1)  # (..., classes)
    rows = by_class.reshape(-1, by_class.shape[-1]).contiguous()
    if isinstance(alpha, Tensor):
        alpha = alpha.movedim(class_dim, -1).reshape(-1, 1)
    weight = None if weight is None else weight.to(dtype)
    if target.is_floating_point():
        q = target.to(dtype).movedim(class_dim, -1).reshape(rows.shape)
        losses = _distribution_losses(rows, alpha, q, weight, label_smoothing)
    else:
        label = target.reshape(-1).long()
        losses = _label_losses(rows, alpha, label, weight, ignore_index, label_smoothing)
    if reduction == "none":
        result = losses.of_rows.reshape(by_class.shape[:-1])
    elif reduction == "sum":
        result = losses.of_rows.sum()
    else:
        result = losses.of_rows.sum() / losses.divisor
    return result.to(returned_type(scores))


class _Losses(NamedTuple):
    """Losses before they are reduced.

    Attributes:
        of_rows: ``(rows,)``.
        divisor: divisor of their sum in the mean.
    """

    of_rows: Tensor
    divisor: Tensor | int


def _label_losses(
    rows: Tensor,
    alpha: float | Tensor,
    label: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    label_smoothing: float,
) -> _Losses:
    """Return the losses for class indices; their mean divides by the weights of the targets.

    Args:
        rows: scores ``(rows, classes)``.
        alpha: a number, or ``(rows, 1)``.
        label: ``(rows,)`` int64.
        weight: ``(classes,)`` in the type of the scores, or None for ones.
        ignore_index: see :func:`entmax_loss`.
        label_smoothing: see :func:`entmax_loss`.

    Raises:
        ValueError: if a label is not a class.
    """
    classes = size_of(rows, 1)
    is_counted = label != ignore_index
    label = torch.where(is_counted, label, 0)  # any class, since ignored rows have no mass
    check_labels(label, classes, ignore_index)
    label_weight = is_counted.to(rows.dtype)
    if weight is not None:
        label_weight = torch.where(is_counted, weight[label], 0.0)
    targets = Targets(label, mass=label_weight, label_mass=label_weight)
    if label_smoothing > 0:
        # The coefficients of the smoothed distributions: a matrix of these would be as large as
        # the scores.
        label_mass = label_weight * (1 - label_smoothing)
        smoothing_mass = is_counted.to(rows.dtype) * (label_smoothing / classes)
        mass = label_mass + smoothing_mass * (classes if weight is None else weight.sum())
        targets = Targets(label, mass, label_mass, smoothing_mass, weight)
    total_weight = label_weight.sum()
    divisor = torch.where(total_weight == 0, 1.0, total_weight)
    return _Losses(row_losses(rows, alpha, targets), divisor)


def _distribution_losses(
    rows: Tensor,
    alpha: float | Tensor,
    q: Tensor,
    weight: Tensor | None,
    label_smoothing: float,
) -> _Losses:
    """Return the losses for distributions; their mean divides by the number of distributions.

    Args:
        rows: scores ``(rows, classes)``.
        alpha: a number, or ``(rows, 1)``.
        q: target probabilities ``(rows, classes)``.
        weight: ``(classes,)`` in the type of the scores, or None for ones.
        label_smoothing: see :func:`entmax_loss`.
    """
    if label_smoothing > 0:
        q = q * (1 - label_smoothing) + label_smoothing / size_of(rows, 1)
    if weight is not None:
        q = q * weight
    # Differences to the largest score keep their digits when all scores are far from 0.
    maxima = rows.detach().amax(1, keepdim=True)
    rows = rows - torch.where(maxima.isneginf(), 0.0, maxima)
    # A class of probability 0 adds nothing, even if its score is -inf.
    expected = (torch.where(q == 0, 0.0, rows) * q).sum(1)
    # With a label of mass 0, here class 0, the loss is the conjugate alone. `Targets` allows that,
    # since the largest score is now 0.
    zeros = torch.zeros_like(maxima.squeeze(1))
    conjugate_alone = Targets(label=zeros.long(), mass=zeros + 1, label_mass=zeros)
    losses = row_losses(rows, alpha, conjugate_alone) * q.sum(1) - expected
    return _Losses(losses, divisor=1 if is_empty(losses) else losses.numel())
