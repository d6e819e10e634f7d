"""Checks of the arguments of `entmax_loss`, except alpha."""

import torch
from torch import Tensor

from onmt_entmax.sparse.recording import is_readable_now


def check_options(reduction: str, label_smoothing: float) -> None:
    """Check the options of :func:`entmax_loss` that are not tensors.

    Raises:
        ValueError: if one is out of range.
    """
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f'reduction must be "none", "sum" or "mean", got "{reduction}"')
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"label_smoothing must be between 0 and 1, got {label_smoothing}")


def checked_class_dim(
    scores: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int
) -> int:
    """Check types and shapes, and return the dimension of the classes, 0 or 1.

    Args:
        scores: ``(classes,)`` or ``(rows, classes, ...)``.
        target: integers in the shape of ``scores`` without classes, or numbers in its shape.
        weight: ``(classes,)``, or None.
        ignore_index: see :func:`entmax_loss`; below 0 with distributions.

    Raises:
        ValueError: if they do not fit; see :func:`entmax_loss`.
    """
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
    has_distributions = target.is_floating_point()
    shape = scores.shape[:class_dim] + scores.shape[class_dim + 1 :]
    if target.shape != (scores.shape if has_distributions else shape) or target.dtype == torch.bool:
        raise ValueError(
            f"target of shape {tuple(target.shape)} and type {target.dtype} does not fit scores of "
            f"shape {tuple(scores.shape)}: give integer class indices without the dimension of the "
            "classes, or floating-point distributions with it"
        )
    if has_distributions and ignore_index >= 0:
        raise ValueError("ignore_index is of class indices; distributions have none")
    return class_dim


def check_labels(label: Tensor, classes: int | Tensor, ignore_index: int) -> None:
    """Check that labels are classes, if they can be read without waiting for a GPU.

    Args:
        label: ``(rows,)`` int64, with a class instead of ``ignore_index``.
        classes: number of classes; a tensor in a trace, where no label can be read.
        ignore_index: see :func:`entmax_loss`, for the message.

    Raises:
        ValueError: if a label is not a class.
    """
    if not is_readable_now(label) or not label.numel():
        return
    lowest, highest = (int(x) for x in torch.aminmax(label))
    if lowest < 0 or highest >= classes:
        raise ValueError(
            f"target {lowest if lowest < 0 else highest} is not a class from 0 to "
            f"{classes - 1}, nor ignore_index {ignore_index}"
        )
