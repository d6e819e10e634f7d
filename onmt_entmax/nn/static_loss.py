"""The loss of an output layer for CUDA graphs: no shape and no step depends on a value.

Scores are made for some rows at a time, solved, and overwritten by their gradient, which the two
products of the backward pass take at once. What a batch measures stays on the device.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from onmt_entmax.nn.output import OutputLayer, OutputLoss
from onmt_entmax.sparse.arguments import alpha_text
from onmt_entmax.sparse.autograd import conjugate_operator
from onmt_entmax.sparse.backends import has_kernels
from onmt_entmax.sparse.conjugate import row_groups

# Scores that are held at once: 512 MB of float32.
_SCORES = 1 << 27
# The kernels are exact up to this alpha; above it the curve is too steep at the threshold.
MOST_ALPHA = 2.0


def reason_against(layer: OutputLayer) -> str | None:
    """Why the static loss does not cover a layer, or None."""
    if layer.alpha > MOST_ALPHA:
        return f"the output's alpha is {alpha_text(layer.alpha)}, above {MOST_ALPHA:g}"
    if layer.weight.dtype not in (torch.float32, torch.float64):
        return f"the output layer is of type {layer.weight.dtype}"
    return None


def static_loss(
    layer: OutputLayer,
    hidden: Tensor,
    target: Tensor,
    ignore_index: int,
    label_smoothing: float = 0.0,
) -> OutputLoss:
    """As `OutputLayer.loss`, of padded rows, without waiting for the device.

    Args:
        layer: the output layer, covered (`reason_against`).
        hidden: (N, hidden) states, those of padding too.
        target: (N,) int64; every one a token, unchecked.
        ignore_index: the target whose rows count nothing, a token itself.
        label_smoothing: in [0, 1].
    """
    vocab = len(layer.weight)
    spread = None
    if label_smoothing > 0:
        even = layer.weight.new_full((vocab,), 1 / vocab)
        spread = label_smoothing * (even if layer.prior is None else layer.prior)
    with torch.autocast(hidden.device.type, enabled=False):
        loss, numbers = _StaticLoss.apply(
            hidden.to(layer.weight.dtype),
            layer.weight,
            layer.bias,
            target,
            ignore_index,
            layer.alpha,
            float(label_smoothing),
            spread,
        )
    return OutputLoss(loss, *numbers.unbind(0))


class _StaticLoss(Function):
    """Sum of the losses, and `(3,)` counts: targets that count, right ones, size of the support.

    The gradients are made in the forward pass, while the scores are there, and scaled in the other.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        target: Tensor,
        ignore_index: int,
        alpha: float,
        smoothing: float,
        spread: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        rows, vocab = len(hidden), len(weight)
        counted = (target != ignore_index).to(hidden.dtype)
        hidden_grad = torch.empty_like(hidden)
        weight_grad, bias_grad = torch.zeros_like(weight), torch.zeros_like(bias)
        loss = hidden.new_zeros(())
        numbers = []
        for begin, end in row_groups(0, rows, vocab, _SCORES):
            part = slice(begin, end)
            scores = torch.addmm(bias, hidden[part], weight.t())
            if spread is not None:
                loss = loss - (scores @ spread) @ counted[part]
            solved = loss_and_gradient(scores, target[part], counted[part], alpha)
            excess, leads, maxima, members, gradient = solved
            loss = loss + (excess + (1 - smoothing) * leads).sum()
            if smoothing:
                loss = loss + smoothing * maxima.sum()
                own = (smoothing * counted[part]).unsqueeze(1)
                gradient.scatter_add_(1, target[part].unsqueeze(1), own)
            right = ((leads == 0) * counted[part]).sum()
            many = members.sum().to(hidden.dtype)
            numbers.append(torch.stack([counted[part].sum(), right, many]))
            torch.mm(gradient, weight, out=hidden_grad[part])
            weight_grad.addmm_(gradient.t(), hidden[part])
            bias_grad += gradient.sum(0)
        if spread is not None:
            hidden_grad.addr_(counted, spread @ weight, alpha=-1)
            weight_grad.addr_(spread, counted @ hidden, alpha=-1)
            bias_grad -= spread * counted.sum()
        ctx.save_for_backward(hidden_grad, weight_grad, bias_grad)
        measured = numbers[0] if len(numbers) == 1 else torch.stack(numbers).sum(0)
        ctx.mark_non_differentiable(measured)
        return loss, measured

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *unused: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError("static_loss has no gradients of gradients (create_graph=True)")
        grads = (part * gradient for part in ctx.saved_tensors)
        return (*grads, *[None] * 5)


def loss_and_gradient(
    scores: Tensor, target: Tensor, weight: Tensor, alpha: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Losses of rows and their gradient, which may take the place of the scores.

    Args:
        scores: (rows, n), contiguous; overwritten where there are kernels.
        target: (rows,) int64.
        weight: (rows,) factors of the gradient; rows of weight 0 are left out.
        alpha: a number in [1, 2].

    Returns:
        Excess of the conjugate over the largest score, lead of that score over the target's, the
        largest score and the size of the support, all (rows,) and 0 for rows left out; and the
        gradient ``weight * (p - y)`` (rows, n).
    """
    n = scores.shape[1]
    if has_kernels(scores):
        from onmt_entmax.nn import static_loss_launch

        solved = static_loss_launch.loss_and_gradient(scores, target, weight, alpha)
        excess, leads, maxima, members, gradient = solved
    else:
        maxima, own = scores.amax(1), scores.gather(1, target.unsqueeze(1)).squeeze(1)
        excess, _, gradient = conjugate_operator(scores, alpha)
        real = weight != 0
        members = (gradient > 0).sum(1) * real
        leads, maxima, excess = ((maxima - own) * real, maxima * real, excess * real)
        gradient = gradient * weight.unsqueeze(1)
        gradient = gradient.scatter_add_(1, target.unsqueeze(1), -weight.unsqueeze(1))
    if alpha == 1:  # however small, no probability is 0
        members = (weight != 0) * n
    return excess, leads, maxima, members, gradient
