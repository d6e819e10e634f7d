"""Output loss on padded batches, for CUDA graphs: no shape depends on a value.

The forward pass computes scores for a chunk of rows, replaces them by the loss's gradient in the
scores, and multiplies this with states and weights at once. Nothing is read back from the GPU.
`static_loss_triton.py` has the kernels; PyTorch operations replace them without Triton and for
alpha above 2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from onmt_entmax.nn.output import OutputLayer, OutputLoss
from onmt_entmax.sparse.arguments import alpha_text
from onmt_entmax.sparse.autograd import conjugate_operator
from onmt_entmax.sparse.backends import LARGEST_ALPHA, has_kernels
from onmt_entmax.sparse.conjugate import row_groups

# Scores of a chunk: 512 MB in float32.
_SCORES = 1 << 27
# Above this alpha, the kernels of `static_loss_triton.py` are not exact; those of entmax are.
_LARGEST_FUSED_ALPHA = 2.0


def reason_against(layer: OutputLayer) -> str | None:
    """Return why the static loss cannot train a layer, or None if it can."""
    if layer.alpha > LARGEST_ALPHA:
        return f"the output's alpha is {alpha_text(layer.alpha)}, above {LARGEST_ALPHA:g}"
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
    """Return what `OutputLayer.loss` returns, for padded rows and without waiting for the GPU.

    Args:
        layer: one that `reason_against` accepts.
        hidden: states ``(rows, hidden)``, also of padding.
        target: ``(rows,)`` int64. Unlike there, nothing checks them.
        ignore_index: padding, also a class of the layer.
        label_smoothing: in [0, 1].
    """
    with torch.autocast(hidden.device.type, enabled=False):
        loss, statistics = _StaticLoss.apply(
            hidden.to(layer.weight.dtype),
            layer.weight,
            layer.bias,
            target,
            ignore_index,
            layer.alpha,
            float(label_smoothing),
            layer.spread(label_smoothing),
        )
    return OutputLoss(loss, *statistics.unbind(0))


class _StaticLoss(Function):
    """Sum of the losses, and statistics ``(3,)``: targets, correct targets, size of the support.

    The forward pass computes the gradients, since it has the scores; the backward pass scales them.
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
        statistics = []
        for begin, end in row_groups(0, rows, vocab, _SCORES):
            part = slice(begin, end)
            scores = torch.addmm(bias, hidden[part], weight.t())
            if spread is not None:
                loss = loss - (scores @ spread) @ counted[part]
            solved = row_losses(scores, target[part], counted[part], alpha)
            gradient = solved.gradient
            loss = loss + (solved.excess + (1 - smoothing) * solved.margins).sum()
            if smoothing:
                loss = loss + smoothing * solved.maxima.sum()
                own = (smoothing * counted[part]).unsqueeze(1)
                gradient.scatter_add_(1, target[part].unsqueeze(1), own)
            correct = ((solved.margins == 0) * counted[part]).sum()
            support = solved.support.sum().to(hidden.dtype)
            statistics.append(torch.stack([counted[part].sum(), correct, support]))
            torch.mm(gradient, weight, out=hidden_grad[part])
            weight_grad.addmm_(gradient.t(), hidden[part])
            bias_grad += gradient.sum(0)
        if spread is not None:
            hidden_grad.addr_(counted, spread @ weight, alpha=-1)
            weight_grad.addr_(spread, counted @ hidden, alpha=-1)
            bias_grad -= spread * counted.sum()
        ctx.save_for_backward(hidden_grad, weight_grad, bias_grad)
        total = statistics[0] if len(statistics) == 1 else torch.stack(statistics).sum(0)
        ctx.mark_non_differentiable(total)
        return loss, total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *unused: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError("static_loss has no second derivatives (create_graph=True)")
        grads = (part * gradient for part in ctx.saved_tensors)
        return (*grads, *[None] * 5)


class RowLosses(NamedTuple):
    """Losses of rows of scores, with zeros for ignored rows.

    The conjugate of a row is ``maxima + excess``, its loss ``margins + excess``.

    Attributes:
        excess: conjugate minus largest score, ``(rows,)``.
        margins: largest score minus the target's score, ``(rows,)``.
        maxima: largest score, ``(rows,)``.
        support: number of classes with a probability above 0, ``(rows,)``.
        gradient: ``weight * (p - y)`` with probabilities p and one-hot targets y, ``(rows, n)``.
    """

    excess: Tensor
    margins: Tensor
    maxima: Tensor
    support: Tensor
    gradient: Tensor


def row_losses(scores: Tensor, target: Tensor, weight: Tensor, alpha: float) -> RowLosses:
    """Return losses of rows and their gradient.

    Args:
        scores: ``(rows, n)``, contiguous; kernels overwrite them with the gradient.
        target: ``(rows,)`` int64.
        weight: factors of the gradient, ``(rows,)``; 0 for ignored rows.
        alpha: in [1, 3].
    """
    n = scores.shape[1]
    if alpha <= _LARGEST_FUSED_ALPHA and has_kernels(scores):
        from onmt_entmax.nn import static_loss_triton

        solved = RowLosses(*static_loss_triton.solve_rows(scores, target, weight, alpha))
    else:
        maxima, own = scores.amax(1), scores.gather(1, target.unsqueeze(1)).squeeze(1)
        excess, _, gradient = conjugate_operator(scores, alpha)
        real = weight != 0
        support = (gradient > 0).sum(1) * real
        gradient = gradient * weight.unsqueeze(1)
        gradient = gradient.scatter_add_(1, target.unsqueeze(1), -weight.unsqueeze(1))
        solved = RowLosses(excess * real, (maxima - own) * real, maxima * real, support, gradient)
    if alpha == 1:  # in softmax, small probabilities are rounded to 0
        solved = solved._replace(support=(weight != 0) * n)
    return solved
