"""How far two predictions of an output layer are apart, as one function with the linear layer.

As in `output_loss.py`, scores are made for some rows at a time and nothing of their size stays:
the gradients in states and weights are taken while the scores of a group are there.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from onmt_entmax.mappings import entmax
from onmt_entmax.mappings.conjugate import row_groups
from onmt_entmax.modules.recurrence.products import product, weight_gradient

# Scores that are held at once, but at least so many rows, for which the weights are read once.
_SCORES = 1 << 20
_ROWS = 128


def divergence(one: Tensor, other: Tensor, alpha: float) -> Tensor:
    """Symmetric Fenchel-Young divergence (rows,) of two sets of scores (rows, classes).

    With p and q the entmax of scores z and w, the Fenchel-Young losses of each prediction against
    the other as a target (Blondel, Martins and Niculae 2020, definition 2) add up to
    ``(p - q) @ (z - w)``: conjugates and entropies cancel. It is never negative, 0 where p = q,
    and for alpha = 1 the sum of the Kullback-Leibler divergences in both directions. A class
    outside both supports counts nothing, also where a score of it is -inf.
    """
    p, q = entmax(one, alpha), entmax(other, alpha)
    outside = (torch.isneginf(one) | torch.isneginf(other)) & (p == 0) & (q == 0)
    lead = torch.where(outside, 0.0, one) - torch.where(outside, 0.0, other)
    return ((p - q) * lead).sum(1)


def linear_divergence(
    one: Tensor, other: Tensor, weight: Tensor, bias: Tensor, alpha: float
) -> Tensor:
    """Sum of the divergences between a linear layer's scores of two sets of states (rows, hidden).

    See :meth:`OutputLayer.divergence`.
    """
    if torch.is_grad_enabled():
        return _LinearDivergence.apply(one, other, weight, bias, alpha)
    total = one.new_zeros(())
    for begin, end in row_groups(0, len(one), len(weight), _SCORES, _ROWS):
        first, second = (product(states[begin:end], weight, bias) for states in (one, other))
        total += divergence(first, second, alpha).sum()
    return total


class _LinearDivergence(Function):
    """`linear_divergence` with its gradients, which are there when it is."""

    @staticmethod
    def forward(
        ctx: Any, one: Tensor, other: Tensor, weight: Tensor, bias: Tensor, alpha: float
    ) -> Tensor:
        total = one.new_zeros(())
        gradients = [torch.zeros_like(tensor) for tensor in (one, other, weight, bias)]
        for begin, end in row_groups(0, len(one), len(weight), _SCORES, _ROWS):
            pair = [states[begin:end] for states in (one, other)]
            scores = [product(states, weight, bias).requires_grad_() for states in pair]
            with torch.enable_grad():
                between = divergence(scores[0], scores[1], alpha).sum()
            slopes = torch.autograd.grad(between, scores)
            total += between.detach()
            for number, (states, slope) in enumerate(zip(pair, slopes, strict=True)):
                gradients[number][begin:end] = product(slope, weight.t())
                gradients[2] += weight_gradient(slope, states)
                gradients[3] += slope.sum(0)
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    def backward(
        ctx: Any, gradient: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None, None]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "OutputLayer.divergence has no gradients of gradients (create_graph=True): use "
                "divergence of layer.scores instead"
            )
        one, other, weight, bias = (gradient * saved for saved in ctx.saved_tensors)
        return one, other, weight, bias, None
