"""Matrix products of the recurrences and the output layer, on CPUs by oneDNN.

PyTorch sends float32 products on a CPU to MKL, which reaches less than half the speed of some
processors (104 of 250 GF/s on an AMD Zen 5 core); oneDNN, which PyTorch contains too, does not. The
sums are float32 in both and differ in their order only. All functions are for use inside autograd
functions: they record nothing.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

# oneDNN compiles a program for each shape, which takes about as long as using it once, and keeps
# the last 1024, of 0.7 to 2.8 MB each. A batch's packed rows are a new number each time, so they
# are padded to a multiple of this.
_ROWS = 64
_ONEDNN_TYPES = (torch.float32, torch.bfloat16)
# The batch size for which oneDNN lays out a weight. A hint: fewer rows are as quick.
_LAYOUT_ROWS = 64


# --- oneDNN, by private operators of PyTorch ----------------------------------------------------
#
# Used in these three functions only. `has_onednn` tries them; where they are missing, every product
# falls back to PyTorch's public operators, which are slower.


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def _onednn_add(x: Tensor, weight: Tensor, add: Tensor) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise.binary(x, add, weight, None, "add")


def _onednn_layout(weight: Tensor) -> Tensor:
    return torch.ops.mkldnn._reorder_linear_weight(weight, _LAYOUT_ROWS)


@cache
def has_onednn() -> bool:
    """Return whether PyTorch's oneDNN operators exist and are right on this machine."""
    if not torch.backends.mkldnn.is_available():
        return False
    x, weight = torch.arange(15.0).view(3, 5), torch.arange(20.0).view(4, 5)
    rows = [30.0, 80.0, 130.0, 180.0], [80.0, 255.0, 430.0, 605.0], [130.0, 430.0, 730.0, 1030.0]
    expected = torch.tensor(rows)
    try:
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            prepared = _onednn_layout(weight)
            products = (
                _onednn(x, weight),
                _onednn(x, prepared),
                _onednn_add(x, prepared, torch.zeros(3, 4)),
            )
    except (AttributeError, RuntimeError):
        return False
    return all(torch.allclose(product, expected) for product in products)


def uses_onednn(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether products of this type on this device are by oneDNN."""
    return (
        device.type == "cpu"
        and dtype in _ONEDNN_TYPES
        and bool(torch.backends.mkldnn.enabled)  # PyTorch's own switch
        and has_onednn()
    )


def _dense(matrix: Tensor) -> Tensor:
    """Copy a matrix if it is a slice of columns, for which oneDNN takes seconds."""
    return matrix if matrix.t().is_contiguous() else matrix.contiguous()


# --- Single products of many rows ---------------------------------------------------------------


def rounded_empty(rows: int, size: int, like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return memory for ``(rows, size)``, followed by rows of zeros up to a multiple of `_ROWS`.

    `like` gives the device, and the type unless `dtype` does.
    """
    rounded = like.new_empty(-(-rows // _ROWS) * _ROWS, size, dtype=dtype or like.dtype)
    rounded[rows:].zero_()
    return rounded


def _rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return `x` in this type; for oneDNN with rows of zeros up to a multiple of `_ROWS`."""
    if not uses_onednn(x.device, dtype) or x.size(0) % _ROWS == 0:
        return x.to(dtype)
    rounded = rounded_empty(x.size(0), x.size(1), x, dtype)
    rounded[: x.size(0)] = x
    return rounded


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if uses_onednn(x.device, x.dtype):
        return _onednn(_dense(x), _dense(weight), bias)
    return torch.nn.functional.linear(x, weight, bias)


def product(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    dtype: torch.dtype | None = None,
    result: torch.dtype | None = None,
) -> Tensor:
    """Return ``x @ weight.T (+ bias)``.

    Args:
        x: ``(rows, in)``.
        weight: ``(out, in)``, as in `torch.nn.Linear`; may be a transposed view.
        bias: ``(out,)`` in the type of the result, or None.
        dtype: of the factors, e.g. `torch.bfloat16`; None keeps that of `x`.
        result: type of the product; None is that of `x`.

    Returns:
        ``(rows, out)``.
    """
    rows, dtype, result = x.size(0), dtype or x.dtype, result or x.dtype
    x, weight = _rounded(x, dtype), weight.to(dtype)
    if dtype == result:
        return _product(x, weight, bias)[:rows]
    made = _product(x, weight, None)[:rows].to(result)
    return made if bias is None else made.add_(bias)


def weight_gradient(
    grad: Tensor,
    x: Tensor,
    dtype: torch.dtype | None = None,
    result: torch.dtype | None = None,
) -> Tensor:
    """Return ``grad.T @ x``, the gradient of the weight in ``y = x @ weight.T``.

    Args:
        grad: gradient of y, ``(rows, out)``.
        x: ``(rows, in)``.
        dtype: as in `product`.
        result: type of the gradient; None is that of `grad`.

    Returns:
        ``(out, in)``, contiguous.
    """
    result, dtype = result or grad.dtype, dtype or grad.dtype
    grad, x = (_rounded(factor, dtype).contiguous().t() for factor in (grad, x))
    return _product(grad, x, None).to(result)


# --- Many products with one weight --------------------------------------------------------------


class PreparedWeight:
    """A weight prepared for many products with a few rows each.

    Args:
        weight: ``(out, in)``; may be a transposed view.
        bias: ``(out,)`` in the type of the result, or None.
        dtype: of the factors, as in `product`; None keeps that of `weight`.
        result: type of the products; None is that of `weight`.

    Attributes:
        bias: as given.
        dtype: of the factors.
        size: in, the length of a row that is multiplied.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None = None,
        dtype: torch.dtype | None = None,
        result: torch.dtype | None = None,
    ) -> None:
        self._result = result or weight.dtype
        self.bias = bias
        self.dtype = dtype or weight.dtype
        self.size = weight.size(1)
        self._weight = weight.to(self.dtype)
        self._prepared = uses_onednn(weight.device, self.dtype)
        if self._prepared:
            self._weight = _onednn_layout(_dense(self._weight))

    def __call__(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """Return the product ``x @ weight.T (+ bias)``, in the type of the result.

        Args:
            x: ``(rows, in)``.
            add: added to the product, ``(rows, out)``; only where there is no bias.
        """
        assert add is None or self.bias is None
        bias = self.bias if add is None else add
        if self.dtype != self._result:
            result = self.plain(x.to(self.dtype)).to(self._result)
            return result if bias is None else result.add_(bias)
        if not self._prepared:
            return x @ self._weight.t() if bias is None else bias.addmm(x, self._weight.t())
        if add is None:
            return _onednn(x, self._weight, bias)
        return _onednn_add(x, self._weight, add)

    def plain(self, x: Tensor) -> Tensor:
        """Return ``x @ weight.T`` in the type of the factors, which `x` ``(rows, in)`` has too."""
        return _onednn(x, self._weight) if self._prepared else x @ self._weight.t()
