"""Matrix products of the recurrences, on CPUs through oneDNN.

PyTorch sends float32 products on CPUs to MKL, which leaves more than half of the speed of some
processors unused (104 of 250 GF/s on an AMD Zen 5 core); oneDNN, which PyTorch carries too, does
not. The sums are float32 in both, only their order differs. All functions here are for the
inside of autograd functions: nothing is recorded.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

# oneDNN makes a program for each shape and keeps the last 1024, of 0.7 to 2.8 MB; making one takes
# about as long as using it once. So the many rows of a batch, which are never as many again, are
# rounded up.
_ROWS = 64
_ONEDNN_TYPES = (torch.float32, torch.bfloat16)


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


@cache
def _has_onednn() -> bool:
    """Whether oneDNN's linear layer is in this PyTorch, and right, on this machine."""
    if not torch.backends.mkldnn.is_available():
        return False
    x, weight = torch.arange(15.0).view(3, 5), torch.arange(20.0).view(4, 5)
    try:
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            prepared = torch.ops.mkldnn._reorder_linear_weight(weight, 3)
            products = (_onednn(x, weight), _onednn(x, prepared))
    except (AttributeError, RuntimeError):  # the operators are not public: they may be gone
        return False
    rows = [30.0, 80.0, 130.0, 180.0], [80.0, 255.0, 430.0, 605.0], [130.0, 430.0, 730.0, 1030.0]
    expected = torch.tensor(rows)
    return all(torch.allclose(product, expected) for product in products)


def _uses_onednn(tensor: Tensor) -> bool:
    return (
        tensor.device.type == "cpu"
        and tensor.dtype in _ONEDNN_TYPES
        and bool(torch.backends.mkldnn.enabled)  # PyTorch's own switch
        and _has_onednn()
    )


def _dense(matrix: Tensor) -> Tensor:
    """`matrix`, copied if need be: of a slice of columns oneDNN makes a product in seconds."""
    return matrix if matrix.t().is_contiguous() else matrix.contiguous()


def rounded_empty(rows: int, size: int, like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Memory for ``(rows, size)`` with rows of zeros after it, up to a multiple of `_ROWS`.

    Args:
        rows: to be filled.
        size: of a row.
        like: gives the device, and the type unless `dtype` does.
        dtype: or None.
    """
    rounded = like.new_empty(-(-rows // _ROWS) * _ROWS, size, dtype=dtype or like.dtype)
    rounded[rows:].zero_()
    return rounded


def _rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    """`x`, of this type and on the CPU, with rows of zeros up to a multiple of `_ROWS`."""
    if not _uses_onednn(x) or dtype not in _ONEDNN_TYPES or x.size(0) % _ROWS == 0:
        return x.to(dtype)
    rounded = rounded_empty(x.size(0), x.size(1), x, dtype)
    rounded[: x.size(0)] = x
    return rounded


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if _uses_onednn(x):
        return _onednn(_dense(x), _dense(weight), bias)
    return torch.nn.functional.linear(x, weight, bias)


def product(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    dtype: torch.dtype | None = None,
    result: torch.dtype | None = None,
) -> Tensor:
    """``x @ weight.T (+ bias)``, once, for many rows.

    Args:
        x: ``(rows, in)``.
        weight: ``(out, in)``, as in `torch.nn.Linear`; may be a transposed view.
        bias: ``(out,)`` in the type of the result, or None.
        dtype: type of the factors, e.g. `torch.bfloat16`; None keeps that of `x`.
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
    """Gradient of the weight of ``y = x @ weight.T``, which is ``grad.T @ x``.

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


class PreparedWeight:
    """A weight for the same product with a few rows, many times over.

    Args:
        weight: ``(out, in)``; may be a transposed view.
        bias: ``(out,)`` in the type of the result, or None.
        dtype: of the factors, as in `product`; None keeps that of `weight`.
        result: type of the products; None is that of `weight`.

    Attributes:
        bias: as given.
        dtype: of the factors.
        size: of a row that is multiplied.
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
        self._prepared = _uses_onednn(self._weight)
        if self._prepared:
            batch = 64  # a hint only: the layout it gives is as quick for fewer rows
            self._weight = torch.ops.mkldnn._reorder_linear_weight(_dense(self._weight), batch)

    def __call__(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """``x @ weight.T (+ bias) (+ add)``.

        Args:
            x: ``(rows, in)``.
            add: ``(rows, out)``; not together with a bias.

        Returns:
            ``(rows, out)`` in the type of the result.
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
        return torch.ops.mkldnn._linear_pointwise.binary(x, add, self._weight, None, "add")

    def plain(self, x: Tensor) -> Tensor:
        """``x @ weight.T`` of ``(rows, in)`` in the type of the factors, and in that type."""
        return _onednn(x, self._weight) if self._prepared else x @ self._weight.t()
