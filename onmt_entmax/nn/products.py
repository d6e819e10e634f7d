"""Matrix products of a training: layers, and the gradients of weights.

| function | product | autograd |
|---|---|---|
| `linear` | ``x @ weight.T + bias`` | can differentiate it once |
| `product` | the same | does not see it |
| `weight_gradient` | ``grad.T @ x`` | does not see it |
| `weight_gradient_of_padded` | the same, of factors that are padded already | does not see it |

On CPUs, oneDNN computes them; `onednn.py` says why, and why factors are padded. Factors may be
converted to bfloat16; even then, their products are summed in float32.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from onmt_entmax.nn.onednn import multiply_as_is, padded, uses_onednn


def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, dtype: torch.dtype | None = None
) -> Tensor:
    """Return ``x @ weight.T (+ bias)``, which can be differentiated once; see `product`."""
    return _Linear.apply(x, weight, bias, dtype)


def product(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, dtype: torch.dtype | None = None
) -> Tensor:
    """Return ``x @ weight.T (+ bias)``; autograd does not see it.

    Args:
        x: ``(rows, in)``.
        weight: ``(out, in)``, as in `torch.nn.Linear`; may be a transposed view.
        bias: ``(out,)`` in the type of `x`, or None.
        dtype: the type of the factors, such as `torch.bfloat16`; None keeps that of `x`.

    Returns:
        ``(rows, out)`` in the type of `x`.
    """
    return _product_of_padded(padded(x, dtype or x.dtype), weight, bias, x.dtype)[: len(x)]


def weight_gradient(grad: Tensor, x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return ``grad.T @ x``, the gradient with respect to the weight in ``y = x @ weight.T``.

    Args:
        grad: gradient with respect to y, ``(rows, out)``.
        x: ``(rows, in)``.
        dtype: as in `product`.

    Returns:
        ``(out, in)``, contiguous, in the type of `grad`.
    """
    padded_grad, padded_x = (
        padded(factor, dtype or grad.dtype).contiguous() for factor in (grad, x)
    )
    return weight_gradient_of_padded(padded_grad, padded_x, grad.dtype)


def weight_gradient_of_padded(grad: Tensor, x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return ``grad.T @ x`` of factors that are padded, see `onednn.padded`.

    Args:
        grad: ``(rows, out)``, contiguous.
        x: ``(rows, in)``, contiguous and in the type of `grad`.
        dtype: the type of the result.

    Returns:
        ``(out, in)``, contiguous.
    """
    if uses_onednn(x.device, x.dtype) and x.dtype == torch.bfloat16:
        # PyTorch sends these to oneDNN as they are; `multiply_as_is` would copy the transpose.
        return torch.mm(grad.t(), x).to(dtype)
    return multiply_as_is(grad.t(), x.t()).to(dtype)


class _Linear(torch.autograd.Function):
    """`product` with its gradients: ``apply(x, weight, bias, dtype)``."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype | None
    ) -> Tensor:
        padded_x = padded(x, dtype or x.dtype).contiguous()
        ctx.save_for_backward(padded_x, weight)
        return _product_of_padded(padded_x, weight, bias, x.dtype)[: len(x)]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        padded_x, weight = ctx.saved_tensors
        needs_x, _, needs_bias, _ = ctx.needs_input_grad
        padded_grad = padded(grad, padded_x.dtype).contiguous()
        x_grad = None
        if needs_x:
            x_grad = _product_of_padded(padded_grad, weight.t(), None, grad.dtype)[: len(grad)]
        weight_grad = weight_gradient_of_padded(padded_grad, padded_x, grad.dtype)
        bias_grad = grad.sum(0) if needs_bias else None
        return x_grad, weight_grad, bias_grad, None


def _product_of_padded(
    x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype
) -> Tensor:
    """Return ``x @ weight.T (+ bias)`` of factors that are padded, see `onednn.padded`.

    Args:
        x: ``(rows, in)``, in the type of the factors.
        weight: ``(out, in)``, in any type.
        bias: ``(out,)`` in the type of the result, or None.
        dtype: the type of the result. If it is not that of the factors, the bias is added after
            the conversion, and so is not rounded.
    """
    if x.dtype == dtype:
        return multiply_as_is(x, weight.to(x.dtype), bias).to(dtype)
    result = multiply_as_is(x, weight.to(x.dtype)).to(dtype)
    return result if bias is None else result.add_(bias)
