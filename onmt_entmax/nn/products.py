"""Matrix products of recurrences and the output layer: on CPUs by oneDNN, gradients deferred.

PyTorch sends float32 products on a CPU to MKL, which reaches less than half the speed of some
processors (104 of 250 GF/s on an AMD Zen 5 core); oneDNN, which PyTorch contains too, does not. The
sums are float32 in both and differ in their order only.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear as torch_linear
from torch.nn.functional import pad

# oneDNN compiles a program for each shape, which takes about as long as using it once, and keeps
# the last 1024, of 0.7 to 2.8 MB each. A batch's packed rows are a new number each time, so they
# are padded to a multiple of this. Also the number of rows that a prepared weight is laid out for.
_ROWS = 64
# Likewise for the steps of a search, whose rows are fewer.
_SEARCH_ROWS = 8


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    # oneDNN takes seconds for a slice of columns.
    x, weight = (m if m.t().is_contiguous() else m.contiguous() for m in (x, weight))
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def _prepared(weight: Tensor) -> Tensor:
    weight = weight if weight.t().is_contiguous() else weight.contiguous()
    return torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS)


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
            products = _onednn(x, weight, None), _onednn(x, _prepared(weight), None)
    except (AttributeError, RuntimeError):
        return False
    return all(torch.allclose(product, expected) for product in products)


def uses_onednn(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether products of this type on this device are by oneDNN."""
    enabled = bool(torch.backends.mkldnn.enabled)  # PyTorch's own switch
    return device.type == "cpu" and enabled and _onednn_works(dtype)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if uses_onednn(x.device, x.dtype):
        return _onednn(x, weight, bias)
    if x.device.type == "cpu" and x.dtype == torch.bfloat16:  # not every processor multiplies it
        return torch_linear(x.float(), weight.float(), bias)
    return torch_linear(x, weight, bias)


def rounded_empty(
    rows: int, *sizes: int, like: Tensor, dtype: torch.dtype, multiple: int = _ROWS
) -> Tensor:
    """Return memory ``(..., rows, size)``, then zeros up to a multiple of rows."""
    shape = (*sizes[:-1], -(-rows // multiple) * multiple, sizes[-1])
    rounded = like.new_empty(shape, dtype=dtype)
    rounded[..., rows:, :].zero_()
    return rounded


def _rounded(x: Tensor, dtype: torch.dtype, multiple: int = _ROWS) -> Tensor:
    """Return `x` in this type; for oneDNN with rows of zeros up to a multiple."""
    if not uses_onednn(x.device, dtype) or x.size(0) % multiple == 0:
        return x.to(dtype)
    rounded = rounded_empty(len(x), x.size(1), like=x, dtype=dtype, multiple=multiple)
    rounded[: len(x)] = x
    return rounded


def _times(x: Tensor, weight: Tensor, bias: Tensor | None, result: torch.dtype) -> Tensor:
    """Return ``x @ weight.T (+ bias)`` in a type, for `x` that `_rounded` returned."""
    product = _product(x, weight.to(x.dtype), bias if x.dtype == result else None).to(result)
    return product if bias is None or x.dtype == result else product.add_(bias)


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


def _transposed_times(grad: Tensor, x: Tensor, result: torch.dtype) -> Tensor:
    """Return ``grad.T @ x``, contiguous and in a type, for what `_rounded` returned."""
    if uses_onednn(x.device, x.dtype) and x.dtype == torch.bfloat16:
        # PyTorch sends these to oneDNN as they are. `_onednn` would copy the first, transposed.
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
    return _transposed_times(factors[0], factors[1], grad.dtype)


def nonzero(matrix: Tensor, most: float = 1.0) -> Tensor | None:
    """Return the ascending positions of the nonzero values in a flattened matrix.

    Eight values are looked at as one integer first, several times faster when few are not 0.

    Returns:
        int64, or None if more than the share ``most`` of the values is not 0.
    """
    limit = most * matrix.numel()
    mask = pad(matrix.to(torch.bool).flatten(), (0, -matrix.numel() % 8))
    packed = mask.view(torch.int64)
    eights = packed.nonzero().squeeze(1)
    if len(eights) > limit:
        return None
    inner = packed.index_select(0, eights).view(torch.bool).nonzero().squeeze(1)
    if len(inner) > limit:
        return None
    return eights.index_select(0, inner >> 3).mul_(8).add_(inner & 7)


class _Linear(torch.autograd.Function):
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
        (x, weight), (to_x, _, to_bias, _) = ctx.saved_tensors, ctx.needs_input_grad
        rounded = _rounded(grad, x.dtype).contiguous()
        return (
            _times(rounded, weight.t(), None, grad.dtype)[: len(grad)] if to_x else None,
            _transposed_times(rounded, x, grad.dtype),
            grad.sum(0) if to_bias else None,
            None,
        )


def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, dtype: torch.dtype | None = None
) -> Tensor:
    """Return `product` of the same arguments with its gradients, once differentiable."""
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
            self._weight = _prepared(self._weight)

    def multiply(self, x: Tensor) -> Tensor:
        """Return ``x @ weight.T (+ bias)`` for x ``(..., rows, in)`` in the type of the factors.

        The result has that type too, or float32 where the processor has no such products.
        """
        if self._is_prepared:
            multiply = torch.ops.mkldnn._linear_pointwise
            return multiply(x, self._weight, self._bias, "none", [], "")
        return x @ self._weight.mT if x.dim() == 3 else _product(x, self._weight, self._bias)

    def __call__(self, x: Tensor) -> Tensor:
        """Return ``x @ weight.T (+ bias)`` in the type of the weight, for x ``(..., rows, in)``."""
        return self.products(x).to(self._result)

    def products(self, x: Tensor) -> Tensor:
        """Return `multiply` of x ``(..., rows, in)`` of any type, padded to few numbers of rows."""
        if not self._is_prepared:
            return self.multiply(x.to(self.dtype))
        return self.multiply(_rounded(x, self.dtype, _SEARCH_ROWS))[: len(x)]


class _Anchor(torch.autograd.Function):
    """Goes back after all functions that took its result."""

    @staticmethod
    def forward(ctx: Any, owner: Any, *tensors: Tensor) -> Tensor:
        ctx.owner = owner
        return tensors[0].new_empty(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.owner.finish()


def anchor(owner: Any, *tensors: Tensor) -> Tensor:
    """Return a scalar that steps take, so that `owner.finish` gives the gradients after them all.

    An owner must not refer to the scalar, which refers to it.
    """
    return _Anchor.apply(owner, *tensors)


class Deferred:
    """A weight that the steps of a recurrence multiply, with one product for its gradient.

    In each step autograd would add to the gradients of weight and summand. Here steps only write
    their factors into `inputs` and `gradients`, and `finish` multiplies these once.

    Args:
        weight: ``(out, in)``, or ``(batch, out, in)``.
        summand: what the caller adds to the products, ``(..., rows, out)``, or None.
        sizes: rows of each step.
        dtype: of the factors, as in `product`.

    Attributes:
        multiply: an input by the weight, see `PreparedWeight.multiply`.
        summands: the summand of each step, ``(..., rows, out)``.
        inputs: receive the inputs of each step, ``(..., rows, in)``, in the type of the factors.
        gradients: in the backward pass, receive those of its products, ``(..., rows, out)``, in
            that type too, so that no product converts what a step has written.
        all_inputs: of all steps, followed by zeros.
        all_gradients: likewise.
    """

    def __init__(
        self,
        weight: Tensor,
        summand: Tensor | None,
        sizes: list[int],
        dtype: torch.dtype | None = None,
    ) -> None:
        self._sizes, self._result = sizes, weight.dtype
        self._weight = weight.detach().to(dtype or weight.dtype)  # once for both passes
        self.multiply = PreparedWeight(self._weight).multiply
        self.summands = [] if summand is None else self._split(summand.detach())
        self.all_inputs = self._memory(weight.size(-1))
        self.inputs = self._split(self.all_inputs)
        self._back: PreparedWeight | None = None

    def _memory(self, size: int) -> Tensor:
        shape = *self._weight.shape[:-2], size
        return rounded_empty(sum(self._sizes), *shape, like=self._weight, dtype=self._weight.dtype)

    def _split(self, packed: Tensor) -> Sequence[Tensor]:
        return packed[..., : sum(self._sizes), :].split(self._sizes, -2)

    def start_backward(self) -> bool:
        """Prepare the backward pass if this is its first step; return whether it is."""
        if self._back is not None:
            return False
        self._back = PreparedWeight(self._weight.mT)
        self.all_gradients = self._memory(self._weight.size(-2))
        self.gradients = self._split(self.all_gradients)
        return True

    def go_back(self, step: int) -> Tensor:
        """Return the gradient of a step's inputs, given its `gradients`."""
        assert self._back is not None
        return self._back.multiply(self.gradients[step]).to(self._result)

    def finish(self) -> tuple[Tensor, ...]:
        """Return the gradients of weight and summand, and forget those of the steps."""
        gradients, self._back = self.all_gradients, None
        del self.all_gradients, self.gradients
        if self._weight.dim() == 2:
            weight = _transposed_times(gradients, self.all_inputs, self._result)
        else:
            weight = gradients.mT.to(self._result) @ self.all_inputs.to(self._result)
        if not self.summands:
            return (weight,)
        return weight, gradients[..., : sum(self._sizes), :].to(self._result)
