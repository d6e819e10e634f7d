"""Matrix products of the recurrences: the same weight applied to a few rows, step after step.

PyTorch sends float32 products on CPUs to MKL, which leaves more than half of the speed of some
processors unused (104 of 250 GF/s on an AMD Zen 5 core); oneDNN, which PyTorch carries too, does
not. The sums are float32 in both, only their order differs.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor


@cache
def _has_onednn_linear() -> bool:
    """Whether oneDNN's fused linear layer is in this PyTorch and right on this machine."""
    if not torch.backends.mkldnn.is_available():
        return False
    x, weight = torch.randn(3, 5), torch.randn(4, 5)
    try:
        with torch.no_grad():
            product = PreparedWeight(weight, onednn=True)(x)
    except (AttributeError, RuntimeError):  # the operator is not public: it may be gone
        return False
    return torch.allclose(product, x @ weight.t(), atol=1e-4)


def _use_onednn(tensor: Tensor) -> bool:
    return (
        tensor.device.type == "cpu"
        and tensor.dtype in (torch.float32, torch.bfloat16)
        and torch.backends.mkldnn.flags is not None
        and _has_onednn_linear()
    )


class PreparedWeight:
    """A weight brought once into the layout (and type) in which many products use it.

    Only for use inside an autograd function: nothing is recorded.

    Args:
        weight: ``(out, in)``, as in `torch.nn.Linear`; transposed views are welcome.
        bias: ``(out,)`` or None.
        dtype: type in which the products are computed, e.g. `torch.bfloat16`; None keeps the
            weight's own. Results always have the weight's own type.
        onednn: use oneDNN; None decides by device and type.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None = None,
        dtype: torch.dtype | None = None,
        onednn: bool | None = None,
    ) -> None:
        self._result_type = weight.dtype
        self._bias = bias
        self._weight = weight.to(dtype or weight.dtype)
        self._onednn = _use_onednn(self._weight) if onednn is None else onednn
        if self._onednn:
            self._weight = torch.ops.mkldnn._reorder_linear_weight(self._weight.contiguous(), 64)

    def __call__(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """``x @ weight.T (+ bias) (+ add)``.

        Args:
            x: ``(rows, in)``.
            add: ``(rows, out)``, not together with a bias.
        """
        assert add is None or self._bias is None
        term = self._bias if add is None else add
        if self._weight.dtype != self._result_type:
            product = self._multiply(x.to(self._weight.dtype)).to(self._result_type)
            return product if term is None else product.add_(term)
        if not self._onednn:
            return self._multiply(x) if term is None else torch.addmm(term, x, self._weight.t())
        if add is None:
            return torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "none", [], "")
        return torch.ops.mkldnn._linear_pointwise.binary(x, add, self._weight, None, "add")

    def _multiply(self, x: Tensor) -> Tensor:
        if self._onednn:
            return torch.ops.mkldnn._linear_pointwise(x, self._weight, None, "none", [], "")
        return x @ self._weight.t()


def weight_gradient(grad: Tensor, x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Gradient of the weight of ``y = x @ weight.T``: ``grad.T @ x``.

    Args:
        grad: gradient of y, ``(rows, out)``.
        x: ``(rows, in)``.
        dtype: type of the factors, as in `PreparedWeight`.

    Returns:
        ``(out, in)`` in the type of `grad`.
    """
    result_type = grad.dtype
    if dtype is not None:
        grad, x = grad.to(dtype), x.to(dtype)
    if _use_onednn(grad):
        product = torch.ops.mkldnn._linear_pointwise(grad.t(), x.t(), None, "none", [], "")
    else:
        product = grad.t() @ x
    return product.to(result_type)
