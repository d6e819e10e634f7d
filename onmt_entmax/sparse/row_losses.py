"""Losses of rows of scores, with their gradients, for targets of any kind.

`loss` turns classes, label smoothing and distributions into the coefficients of `Targets`.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from onmt_entmax.sparse import backends, derivatives, reference
from onmt_entmax.sparse.entropy import tsallis_entropy
from onmt_entmax.sparse.mapping import entmax
from onmt_entmax.sparse.recording import has_values, is_empty


class Targets(NamedTuple):
    """Targets of scores ``(rows, classes)``, as coefficients of one loss for each row.

    The loss of a row z, with the conjugate that `entmax_loss` defines, is::

        mass * conjugate(z) - label_mass * z[label] - smoothing_mass * sum(class_weight * z)

    ``mass`` must be ``label_mass + smoothing_mass * sum(class_weight)``: then only differences to
    the largest score matter, and :meth:`losses` computes with these. (Without smoothing it may be
    more, as for a conjugate alone, if the caller has subtracted the largest score.) The gradient
    with respect to the scores is ``mass * p``, minus ``label_mass`` at the label, minus
    ``smoothing_mass * class_weight``.

    Attributes:
        label: ``(rows,)`` int64, the class; any valid class in an ignored row.
        mass: ``(rows,)``, the mass of all classes together; 0 in an ignored row.
        label_mass: ``(rows,)``, the mass of the label alone.
        smoothing_mass: ``(rows,)``, the mass that label smoothing gives to each class; None without
            smoothing.
        class_weight: ``(classes,)``, a factor of `smoothing_mass` for each class; None for ones.
    """

    label: Tensor
    mass: Tensor
    label_mass: Tensor
    smoothing_mass: Tensor | None = None
    class_weight: Tensor | None = None

    def losses(self, scores: Tensor, shifted: Tensor, maxima: Tensor) -> Tensor:
        """Return the losses ``(rows,)``.

        Args:
            scores: ``(rows, classes)``.
            shifted: conjugates minus largest scores, ``(rows,)``.
            maxima: largest scores, ``(rows,)``.
        """
        margin = maxima - scores.gather(1, self.label.unsqueeze(1)).squeeze(1)
        # A label of mass 0 adds nothing, even if its score is -inf.
        label_part = self.label_mass * torch.where(self.label_mass == 0, 0.0, margin)
        losses = shifted * self.mass + label_part
        if self.smoothing_mass is not None:
            margins = maxima.unsqueeze(1) - scores
            if self.class_weight is not None:  # no matrix product, which autocast would round
                weighted = margins * self.class_weight
                margins = torch.where(self.class_weight == 0, 0.0, weighted)
            losses = losses + self.smoothing_mass * margins.sum(1)
        # An ignored row adds nothing, even if its scores are infinite: 0 times those would be nan.
        return torch.where(self.mass == 0, 0.0, losses)

    def scores_gradient(self, conjugate_part: Tensor, upstream: Tensor, in_place: bool) -> Tensor:
        """Return the gradient with respect to the scores, ``(rows, classes)``.

        Args:
            conjugate_part: the part that belongs to the conjugate, ``mass * p * upstream``,
                ``(rows, classes)``.
            upstream: gradient with respect to the losses, ``(rows,)``.
            in_place: whether to write the result over `conjugate_part`.
        """
        grad_scores = conjugate_part
        if self.smoothing_mass is not None:
            smoothing_part = (upstream * self.smoothing_mass).unsqueeze(1)
            if self.class_weight is not None:
                smoothing_part = smoothing_part * self.class_weight
            subtract = grad_scores.sub_ if in_place else grad_scores.sub
            grad_scores = subtract(smoothing_part)
        label_part = -(upstream * self.label_mass).unsqueeze(1)
        add = grad_scores.scatter_add_ if in_place else grad_scores.scatter_add
        return add(1, self.label.unsqueeze(1), label_part)


def row_losses(rows: Tensor, alpha: float | Tensor, targets: Targets) -> Tensor:
    """Return the losses ``(rows,)`` of rows of scores.

    Args:
        rows: scores ``(rows, classes)``, contiguous, float32 or float64.
        alpha: a number, or ``(rows, 1)``.
        targets: the targets of the rows.
    """
    if is_empty(rows):
        return rows.sum(1)
    if has_values(rows):
        return _RowLosses.apply(rows, alpha, targets)
    # While PyTorch records, the loss is composed of the mapping and PyTorch's operations. By
    # Danskin's theorem, the probabilities may be constants: this changes no gradient of the
    # conjugate, whether with respect to the scores or to alpha.
    fixed = rows.detach()
    p = entmax(fixed, alpha.detach() if isinstance(alpha, Tensor) else alpha)
    maxima = fixed.amax(1)
    below = torch.where(p > 0, rows - maxima.unsqueeze(1), 0.0)
    shifted = (p * below).sum(1) + tsallis_entropy(p, alpha)
    return targets.losses(rows, shifted, maxima)


class _RowLosses(Function):
    """Losses ``(rows,)`` of `Targets`: ``apply(scores, alpha, targets)``.

    Scores are ``(rows, n)``; alpha is a number, or ``(rows, 1)``. In the backward pass, the backend
    writes the probabilities of the rows times their factors, from what its forward pass kept. If
    autograd records a graph for second derivatives, :func:`entmax` computes the probabilities
    again.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, alpha: float | Tensor, targets: Targets) -> Tensor:
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
        (grad_losses,) = upstream  # (rows,)
        factors = grad_losses * ctx.targets.mass
        # Write in place only if no graph is recorded, since autograd must see each operation that
        # it will differentiate again, and only into a plain tensor: one without values, as under
        # `is_grads_batched`, stands for several gradients.
        in_place = not torch.is_grad_enabled() and has_values(factors)
        if in_place:
            conjugate_part = ctx.backend.scaled(scores, alpha, kept, factors)
        else:
            p = entmax(scores, alpha)
            conjugate_part = p * factors.unsqueeze(1)
        grad_scores = ctx.targets.scores_gradient(conjugate_part, grad_losses, in_place)
        grad_alpha = None
        if ctx.needs_input_grad[1]:
            if in_place:
                p = ctx.backend.scaled(scores, alpha, kept, torch.ones_like(factors))
            slope = derivatives.conjugate_alpha_derivative(p, alpha)
            grad_alpha = (factors.unsqueeze(1) * slope).to(alpha.dtype)  # (rows, 1)
        return grad_scores, grad_alpha, None
