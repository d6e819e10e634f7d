r"""Entmax, its logarithm and its loss as functions, for any alpha from 1 (softmax) upwards.

Sources: Martins and Astudillo (2016), Peters, Niculae and Martins (2019), and for the gradient in
alpha Correia, Niculae and Martins (2019).
"""

import torch
from torch import Tensor

from onmt_entmax.sparse.arguments import checked_alpha, is_traced, working_type
from onmt_entmax.sparse.autograd import (
    ClassLossFunction,
    ClassTargets,
    EntmaxFunction,
    LogEntmaxFunction,
    LongEntmaxFunction,
    RowLossFunction,
    check_classes,
    class_losses,
    class_targets,
    conjugate_operator,
    entmax_operator,
    log_entmax_operator,
)
from onmt_entmax.sparse.backends import has_kernels, kernels_for
from onmt_entmax.sparse.candidates import MEDIUM
from onmt_entmax.sparse.solvers import checked_softmax, smallest

__all__ = ["entmax", "entmax_loss", "log_entmax"]

# From so many scores on, a search for the support before solving pays.
_LONG_WORK = 1 << 16


def entmax(scores: Tensor, alpha: float | Tensor = 1.5, dim: int = -1) -> Tensor:
    r"""Map scores to probabilities by alpha-entmax, with exact zeros when alpha is above 1.

    .. math:: \arg\max_p \; p^\top z + H_\alpha(p), \qquad p \text{ a distribution}

    with the Tsallis entropy of :func:`tsallis_entropy` (Peters, Niculae and Martins 2019,
    equation 10): softmax at 1, 1.5-entmax at 1.5, sparsemax at 2. A score of -inf, or more than
    1 / (alpha - 1) below the largest, gets an exact 0. All others of the support get a positive
    number, at least the smallest of the type; only at the number alpha = 1 may they round to 0, as
    in PyTorch's softmax. Gradients of gradients work; forward mode and the transforms of
    `torch.func` (vmap, jacrev) do not.

    Args:
        scores: any shape, floating point; float16 and bfloat16 are computed in float32.
        alpha: a number >= 1, or a tensor of such numbers that broadcasts to ``scores`` with size 1
            in ``dim``, for example ``(heads, 1, 1)`` for ``(batch, heads, queries, keys)``. A
            tensor may be a parameter and gets its gradient, at alpha = 1 too; keep it above 1, for
            example as ``1 + sigmoid(a)`` (Correia, Niculae and Martins 2019). A tensor takes
            several times as long as a number, and breaks the graph of `torch.compile`.
        dim: the dimension to normalise.

    Returns:
        Probabilities, the shape and type of ``scores``; under autocast float32, on a CPU too.

    Raises:
        ValueError: if alpha is below 1 or does not broadcast, the scores are not floating point, or
            a row is all -inf (at alpha = 1 too, where PyTorch's softmax returns nan). On a GPU, a
            wrong tensor of alphas and rows of -inf give nan instead, to avoid a synchronisation.
        IndexError: if ``dim`` does not exist.
    """
    if scores.dim() == 0:
        return entmax(scores.unsqueeze(0), alpha, dim).squeeze(0)
    rows, alpha = _normalised_last(scores, alpha, dim)
    if not rows.numel():
        result = rows
    elif isinstance(alpha, Tensor):
        result = EntmaxFunction.apply(rows, alpha)
    elif alpha == 1:
        result = checked_softmax(torch.softmax(rows, -1, working_type(rows)), rows)
    elif is_traced():
        result = entmax_operator(rows, alpha)
    elif rows.shape[-1] >= MEDIUM and rows.numel() >= _LONG_WORK and not has_kernels(rows):
        result = LongEntmaxFunction.apply(rows, alpha)[0]
    else:
        result = EntmaxFunction.apply(rows, alpha)
    return _as_given(result, scores, dim, positive=isinstance(alpha, Tensor) or alpha > 1)


def log_entmax(scores: Tensor, alpha: float | Tensor = 1.5, dim: int = -1) -> Tensor:
    """Return the natural logarithm of :func:`entmax`, -inf exactly where that is 0.

    It is computed from the difference between score and threshold, so it has all its digits where a
    probability is too small for its type. Gradients that arrive for an entry of -inf are ignored.

    Args, returns and raises: as :func:`entmax`.
    """
    if scores.dim() == 0:
        return log_entmax(scores.unsqueeze(0), alpha, dim).squeeze(0)
    rows, alpha = _normalised_last(scores, alpha, dim)
    if not rows.numel():
        result = rows
    elif isinstance(alpha, Tensor):
        result = LogEntmaxFunction.apply(rows, alpha)
    elif alpha == 1:
        result = checked_softmax(torch.log_softmax(rows, -1, working_type(rows)), rows)
        if result.requires_grad:
            # Stops gradients that arrive for -inf: times the probability 0 they could be nan.
            result = torch.where(result == -torch.inf, -torch.inf, result)
    elif is_traced():
        result = log_entmax_operator(rows, alpha)
    else:
        result = LogEntmaxFunction.apply(rows, alpha)
    return _as_given(result, scores, dim)


def _normalised_last(
    scores: Tensor, alpha: float | Tensor, dim: int
) -> tuple[Tensor, float | Tensor]:
    """Check arguments, and return scores and alpha with the normalised dimension last.

    Scores are in the type to compute in, or in a half type if kernels read that.
    """
    dtype, dimensions = working_type(scores), scores.dim()
    if not -dimensions <= dim < dimensions:
        raise IndexError(f"dim must be from {-dimensions} to {dimensions - 1}, got {dim}")
    alpha = checked_alpha(alpha, scores, dim)
    if scores.dtype != dtype and not has_kernels(scores):
        scores = scores.to(dtype)
    if dim in (-1, dimensions - 1):
        return scores, alpha
    return scores.movedim(dim, -1), alpha.movedim(dim, -1) if isinstance(alpha, Tensor) else alpha


def _as_given(result: Tensor, scores: Tensor, dim: int, positive: bool = False) -> Tensor:
    """Return a result with the scores' dimensions in their order, and in the scores' type.

    With ``positive``, no positive number rounds to 0.
    """
    if dim not in (-1, scores.dim() - 1):
        result = result.movedim(-1, dim).contiguous()
    dtype = _returned_type(scores)
    if not result.numel():
        return result.to(dtype, copy=True)
    if result.dtype == dtype:
        return result
    rounded = result.to(dtype)
    if positive:
        # Added, not written: the probability keeps its gradient.
        rounded = rounded + ((rounded == 0) & (result > 0)).to(dtype) * smallest(dtype)
    return rounded


def _returned_type(scores: Tensor) -> torch.dtype:
    """Return the scores' type; under autocast float32 for the half types."""
    dtype = scores.dtype
    if dtype.itemsize < 4 and torch.is_autocast_enabled(scores.device.type):
        return torch.float32
    return dtype


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
    _check_loss_arguments(scores, target, weight, ignore_index, reduction, label_smoothing)
    class_dim = 0 if scores.dim() == 1 else 1
    classes = scores.shape[class_dim]
    dtype = working_type(scores)
    checked = checked_alpha(alpha, scores, class_dim)
    if not isinstance(checked, Tensor):
        smoothing = float(label_smoothing)
        fused = _fused_loss(scores, target, checked, weight, ignore_index, reduction, smoothing)
        if fused is not None:
            return fused
    rows = (scores if has_kernels(scores) else scores.to(dtype)).movedim(class_dim, -1)
    shape = rows.shape[:-1]
    rows = rows.reshape(-1, classes).contiguous()
    if isinstance(checked, Tensor):
        checked = checked.movedim(class_dim, -1).reshape(-1, 1)
    weight = None if weight is None else weight.to(dtype)
    if target.is_floating_point():
        distributions = target.to(dtype).movedim(class_dim, -1).reshape(-1, classes)
        losses = _distribution_losses(rows, distributions, checked, weight, label_smoothing)
        count: Tensor | int = max(losses.numel(), 1)
    else:
        index = target.reshape(-1)
        targets, count = class_targets(index, rows, weight, ignore_index, label_smoothing)
        losses = _row_losses(rows, checked, targets) if rows.numel() else rows.sum(1)
    returned = _returned_type(scores)
    if reduction == "none":
        return losses.reshape(shape).to(returned)
    total = losses.sum()
    return (total / count if reduction == "mean" else total).to(returned)


def _fused_loss(
    scores: Tensor,
    target: Tensor,
    alpha: float,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor | None:
    """Return the loss by kernels that also read the targets; None where none do."""
    kernels = None if target.is_floating_point() else kernels_for(scores, alpha)
    if kernels is None or is_traced() or not kernels.covers_losses(scores, target, weight, alpha):
        return None
    class_dim, shape = 0 if scores.dim() == 1 else 1, target.shape
    classes, rows = scores.shape[class_dim], scores
    if scores.dim() != 2:
        rows, target = scores.movedim(class_dim, -1).reshape(-1, classes), target.reshape(-1)
    rows, target = rows.contiguous(), target.contiguous()
    check_classes(target, classes, ignore_index)
    weight = None if weight is None else weight.contiguous()
    options = kernels.LossOptions(alpha, ignore_index, reduction, label_smoothing)
    solved = kernels.class_losses(rows, target, weight, options, _returned_type(scores))
    if solved is None:
        return None
    losses = ClassLossFunction.apply(rows, target, weight, options, solved)
    return losses.reshape(shape) if losses.dim() and len(shape) != 1 else losses


def _check_loss_arguments(
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> None:
    """Check the arguments of :func:`entmax_loss` but for alpha and the values of tensors."""
    check_options(reduction, label_smoothing)
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


def check_options(reduction: str, label_smoothing: float) -> None:
    """Check the options of :func:`entmax_loss` that are not tensors.

    Raises:
        ValueError: names the one that is out of range.
    """
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f'reduction must be "none", "sum" or "mean", got "{reduction}"')
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"label_smoothing must be between 0 and 1, got {label_smoothing}")


def _row_losses(
    scores: Tensor, alpha: float | Tensor, targets: ClassTargets | None = None
) -> Tensor:
    """Return the losses ``(rows,)`` of scores ``(rows, classes)``, or their conjugates."""
    if isinstance(alpha, Tensor) or not is_traced():
        return RowLossFunction.apply(scores, alpha, targets)[0]
    shifted, maxima, _ = conjugate_operator(scores, alpha)
    if targets is None:
        return shifted + maxima
    return class_losses(scores, shifted, maxima.unsqueeze(1), targets)


def _distribution_losses(
    rows: Tensor,
    distributions: Tensor,
    alpha: float | Tensor,
    weight: Tensor | None,
    label_smoothing: float,
) -> Tensor:
    """Return the losses ``(rows,)`` against distributions; both arguments ``(rows, classes)``."""
    if not rows.numel():
        return rows.sum(1)
    if label_smoothing > 0:
        distributions = distributions * (1 - label_smoothing) + label_smoothing / rows.shape[1]
    if weight is not None:
        distributions = distributions * weight
    # Differences to the largest score keep their digits when all scores are far from 0.
    rows = rows.to(distributions.dtype)
    maxima = rows.detach().amax(1, keepdim=True)
    rows = rows - torch.where(maxima.isneginf(), 0.0, maxima)
    # A class of probability 0 adds nothing, even if its score is -inf.
    expected = torch.where(distributions == 0, 0.0, rows) * distributions
    return _row_losses(rows, alpha) * distributions.sum(1) - expected.sum(1)
