"""Matrix products of recurrences and the output layer: on CPUs by oneDNN.

PyTorch sends float32 products on a CPU to MKL, which reaches less than half the speed of some
processors (104 of 250 GF/s on an AMD Zen 5 core); oneDNN, which PyTorch contains too, reaches all
of it. The sums are float32 in both and differ in their order only.

| function | product | for |
|---|---|---|
| `product` | ``x @ weight.T + bias`` | what autograd need not see |
| `linear` | the same | layers in training |
| `weight_gradient`, `transposed_times` | ``grad.T @ x`` | the gradient of a weight |
| `PreparedWeight` | ``x @ weight.T + bias`` | one weight and few rows, many times: steps |

Factors may be rounded to bfloat16; then sums are float32, too.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear as torch_linear

# oneDNN compiles a program for each shape, which takes about as long as using it once, and keeps
# the last 1024, of 0.7 to 2.8 MB each. A batch's packed rows are a new number each time, so they
# are padded to a multiple of this. Also the number of rows that a prepared weight is laid out for.
_ROWS = 64
# The multiple for the steps of a search, whose rows are fewer.
_SEARCH_ROWS = 8


# --- oneDNN's private operators --------------------------------------------------------------


def _onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return ``x @ weight.T (+ bias)``; the weight may be one of `_reordered`."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def _reordered(weight: Tensor) -> Tensor:
    """Return a weight in the layout that oneDNN multiplies fastest."""
    return torch.ops.mkldnn._reorder_linear_weight(_contiguous_or_transposed(weight), _ROWS)


def _contiguous_or_transposed(matrix: Tensor) -> Tensor:
    """Return a matrix that is contiguous, or its transpose; for slices oneDNN takes seconds."""
    return matrix if matrix.t().is_contiguous() else matrix.contiguous()


@cache
def _onednn_works(dtype: torch.dtype) -> bool:
    """Return whether the private operators exist, and multiply this type on this processor."""
    if dtype not in (torch.float32, torch.bfloat16) or not torch.backends.mkldnn.is_available():
        return False
    x, weight = torch.arange(15.0).view(3, 5), torch.arange(20.0).view(4, 5)
    expected = (x @ weight.t()).to(dtype)
    x, weight = x.to(dtype), weight.to(dtype)
    try:
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            products = (
                _onednn_linear(x, weight, None),
                _onednn_linear(x, _reordered(weight), None),
            )
    except (AttributeError, RuntimeError):
        return False
    return all(torch.allclose(product, expected) for product in products)


def uses_onednn(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether products of this type on this device are by oneDNN."""
    enabled = bool(torch.backends.mkldnn.enabled)  # PyTorch's own switch
    return device.type == "cpu" and enabled and _onednn_works(dtype)


# --- products --------------------------------------------------------------------------------


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``x @ weight.T (+ bias)`` of factors of one type, in that type or float32."""
    if uses_onednn(x.device, x.dtype):
        return _onednn_linear(_contiguous_or_transposed(x), _contiguous_or_transposed(weight), bias)
    if x.device.type == "cpu" and x.dtype == torch.bfloat16:  # not every processor multiplies it
        return torch_linear(x.float(), weight.float(), bias)
    return torch_linear(x, weight, bias)


def rounded_empty(
    rows: int, *sizes: int, like: Tensor, dtype: torch.dtype, multiple: int = _ROWS
) -> Tensor:
    """Return memory ``(..., rows, size)``, then rows of zeros up to a multiple.

    Args:
        rows: whose memory is not initialised.
        sizes: all others, ``(..., size)``.
        like: gives the device.
        dtype: of the memory.
        multiple: of the rows in all.
    """
    shape = (*sizes[:-1], -(-rows // multiple) * multiple, sizes[-1])
    rounded = like.new_empty(shape, dtype=dtype)
    rounded[..., rows:, :].zero_()
    return rounded


def _rounded(x: Tensor, dtype: torch.dtype, multiple: int = _ROWS) -> Tensor:
    """Return `x` ``(rows, in)`` in this type; for oneDNN with rows of zeros up to a multiple."""
    if not uses_onednn(x.device, dtype) or x.size(0) % multiple == 0:
        return x.to(dtype)
    rounded = rounded_empty(len(x), x.size(1), like=x, dtype=dtype, multiple=multiple)
    rounded[: len(x)] = x
    return rounded


def _times(x: Tensor, weight: Tensor, bias: Tensor | None, result: torch.dtype) -> Tensor:
    """Return ``x @ weight.T (+ bias)`` in the type `result`, for `x` that `_rounded` returned.

    The bias has that type; a product of rounded factors gets it afterwards.
    """
    if x.dtype == result:
        return _product(x, weight.to(x.dtype), bias).to(result)
    product = _product(x, weight.to(x.dtype)).to(result)
    return product if bias is None else product.add_(bias)


def product(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, dtype: torch.dtype | None = None
) -> Tensor:
    """Return ``x @ weight.T (+ bias)``; autograd does not see it.

    Args:
        x: ``(rows, in)``.
        weight: ``(out, in)``, as in `torch.nn.Linear`; may be a transposed view.
        bias: ``(out,)`` in the type of `x`, or None.
        dtype: of the factors, e.g. `torch.bfloat16`; None keeps that of `x`.

    Returns:
        ``(rows, out)`` in the type of `x`.
    """
    return _times(_rounded(x, dtype or x.dtype), weight, bias, x.dtype)[: len(x)]


def transposed_times(grad: Tensor, x: Tensor, result: torch.dtype) -> Tensor:
    """Return ``grad.T @ x``, contiguous and in a type, for what `_rounded` returned."""
    if uses_onednn(x.device, x.dtype) and x.dtype == torch.bfloat16:
        # PyTorch sends these to oneDNN as they are. `_product` would copy the first, transposed.
        return torch.mm(grad.t(), x).to(result)
    return _product(grad.t(), x.t()).to(result)


def weight_gradient(grad: Tensor, x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return ``grad.T @ x``, the gradient of the weight in ``y = x @ weight.T``.

    Args:
        grad: gradient of y, ``(rows, out)``.
        x: ``(rows, in)``.
        dtype: as in `product`.

    Returns:
        ``(out, in)``, contiguous, in the type of `grad`.
    """
    factors = [_rounded(factor, dtype or grad.dtype).contiguous() for factor in (grad, x)]
    return transposed_times(factors[0], factors[1], grad.dtype)


class _Linear(torch.autograd.Function):
    """`product` with its gradients: ``apply(x, weight, bias, dtype)``."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype | None
    ) -> Tensor:
        rounded = _rounded(x, dtype or x.dtype).contiguous()
        ctx.save_for_backward(rounded, weight)
        return _times(rounded, weight, bias, x.dtype)[: len(x)]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        wants_x, _, wants_bias, _ = ctx.needs_input_grad
        rounded = _rounded(grad, x.dtype).contiguous()
        in_x = None
        if wants_x:
            in_x = _times(rounded, weight.t(), None, grad.dtype)[: len(grad)]
        in_weight = transposed_times(rounded, x, grad.dtype)
        in_bias = grad.sum(0) if wants_bias else None
        return in_x, in_weight, in_bias, None


def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, dtype: torch.dtype | None = None
) -> Tensor:
    """Return `product` of the arguments, which autograd sees; once differentiable."""
    return _Linear.apply(x, weight, bias, dtype)


class PreparedWeight:
    """A weight prepared for many products with a few rows each; autograd does not see them.

    Args:
        weight: ``(out, in)``, which may be a transposed view, or ``(batch, out, in)``.
        bias: ``(out,)`` in the type of the weight, or None; not with another ``dtype``.
        dtype: of the factors, as in `product`; None keeps that of `weight`.
    """

    def __init__(
        self, weight: Tensor, bias: Tensor | None = None, dtype: torch.dtype | None = None
    ) -> None:
        self.dtype, self._result, self._bias = dtype or weight.dtype, weight.dtype, bias
        self._weight = weight.detach().to(self.dtype)
        self._is_prepared = weight.dim() == 2 and uses_onednn(weight.device, self.dtype)
        if self._is_prepared:
            self._weight = _reordered(self._weight)

    def multiply(self, x: Tensor) -> Tensor:
        """Return ``x @ weight.T (+ bias)`` for x ``(..., rows, in)`` in the type of the factors.

        The result has that type too, or float32 where the processor has no such products.
        """
        if self._is_prepared:
            return _onednn_linear(x, self._weight, self._bias)
        return x @ self._weight.mT if x.dim() == 3 else _product(x, self._weight, self._bias)

    def __call__(self, x: Tensor) -> Tensor:
        """Return ``x @ weight.T (+ bias)`` in the type of the weight, for x ``(..., rows, in)``."""
        return self.multiply_padded(x).to(self._result)

    def multiply_padded(self, x: Tensor) -> Tensor:
        """Return `multiply` of x ``(..., rows, in)`` of any type.

        Its rows are padded to few different numbers, since oneDNN compiles a program for each.
        """
        if not self._is_prepared:
            return self.multiply(x.to(self.dtype))
        return self.multiply(_rounded(x, self.dtype, _SEARCH_ROWS))[: len(x)]
