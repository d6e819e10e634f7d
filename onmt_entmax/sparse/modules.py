"""Entmax and its loss as modules, in place of PyTorch's `Softmax` and `CrossEntropyLoss`."""

from torch import Tensor, nn

from onmt_entmax.sparse.arguments import check_alpha_number
from onmt_entmax.sparse.loss import entmax_loss
from onmt_entmax.sparse.loss_checks import check_options
from onmt_entmax.sparse.mapping import entmax


class Entmax(nn.Module):
    """Module form of :func:`entmax`, with alpha and dimension fixed.

    Args:
        alpha: a number >= 1: softmax at 1, sparsemax at 2. Or a tensor as :func:`entmax` takes it;
            it does not move to another device with the module, unless it is a parameter. A
            parameter is learned; a parametrization (``torch.nn.utils.parametrize``) can keep it
            above 1.
        dim: the dimension to normalise.

    Raises:
        ValueError: if alpha is a number below 1.
    """

    def __init__(self, alpha: float | Tensor = 1.5, dim: int = -1) -> None:
        super().__init__()
        check_alpha_number(alpha)
        self.alpha, self.dim = alpha, dim

    def forward(self, scores: Tensor) -> Tensor:
        """Return probabilities of scores of any shape."""
        return entmax(scores, self.alpha, self.dim)

    def extra_repr(self) -> str:
        """Return the arguments for printing."""
        return f"alpha={_alpha_text(self.alpha)}, dim={self.dim}"


class EntmaxLoss(nn.Module):
    """Module form of :func:`entmax_loss`, with the arguments of ``torch.nn.CrossEntropyLoss``.

    Args:
        alpha: as in :class:`Entmax`.
        weight: ``(classes,)`` weight of each class; a buffer of the module.
        ignore_index: rows with this class index do not count.
        reduction: "none", "sum" or "mean", see :func:`entmax_loss`.
        label_smoothing: in [0, 1], the part of each target spread evenly over all classes.

    Raises:
        ValueError: if alpha, reduction or label_smoothing is out of range.
    """

    weight: Tensor | None

    def __init__(
        self,
        alpha: float | Tensor = 1.5,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        check_options(reduction, label_smoothing)
        check_alpha_number(alpha)
        self.alpha = alpha
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        """Return the loss of scores ``(rows, classes, ...)``; :func:`entmax_loss` has targets."""
        return entmax_loss(
            scores,
            target,
            self.alpha,
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
        )

    def extra_repr(self) -> str:
        """Return the main arguments for printing."""
        return f"alpha={_alpha_text(self.alpha)}, reduction={self.reduction!r}"


def _alpha_text(alpha: float | Tensor) -> str:
    """Return an alpha for printing: a number, or the shape of a tensor."""
    return f"tensor{tuple(alpha.shape)}" if isinstance(alpha, Tensor) else f"{alpha:g}"
